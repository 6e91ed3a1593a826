import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeLetter, encodeLetter } from '../../../src/capabilities/notes/letter.ts';
import { type CborValue, encodeCbor } from '../../../src/foundation/cbor.ts';
import { MAX_NOTE_BODY_BYTES, MAX_NOTE_TYPE } from '../../../src/foundation/domain/notes.ts';
import { MAX_UNIX_MS } from '../../../src/foundation/domain/time.ts';
import { encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { localIdentity, newIdentity } from '../../support/identities.ts';

const [writer, recipient] = [newIdentity(), newIdentity().aid];
const content = {
  sender: writer.aid,
  recipient,
  sentAt: MAX_UNIX_MS,
  msgType: MAX_NOTE_TYPE,
  body: new Uint8Array(MAX_NOTE_BODY_BYTES),
  nonce: new Uint8Array(16),
};
const letter = encodeLetter(content, localIdentity(writer), new Uint8Array(32));

/** The letter with another value in one member. */
function changed(key: string, value: CborValue | undefined): Uint8Array {
  const { sentAt, msgType, body, nonce } = content;
  const d = encodeDelegation(writer.delegation);
  return encodeCbor({ v: 1, d, t: sentAt, y: msgType, b: body, n: nonce, g: new Uint8Array(64), [key]: value });
}

test('the largest letter is decoded unchanged', () => {
  const { signature: _signature, delegation: _delegation, ...read } = decodeLetter(letter, recipient);
  assert.deepEqual(read, content);
});

test('each member of a letter is checked separately', () => {
  assert.equal(decodeLetter(changed('t', 1), recipient).sentAt, 1);
  const wrong: readonly (readonly [string, CborValue | undefined])[] = [
    ['v', 2],
    ['d', 'text'],
    ['t', MAX_UNIX_MS + 1],
    ['t', 'text'],
    ['y', MAX_NOTE_TYPE + 1],
    ['y', -1],
    ['b', new Uint8Array(MAX_NOTE_BODY_BYTES + 1)],
    ['b', 'text'],
    ['n', new Uint8Array(15)],
    ['g', new Uint8Array(63)],
    ['g', undefined],
    ['z', 1],
  ];
  for (const [key, value] of wrong)
    assert.throws(() => decodeLetter(changed(key, value), recipient), { code: 'bad_record' }, key);
});
