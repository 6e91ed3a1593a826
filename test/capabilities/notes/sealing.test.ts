/** Letters of every length around the padding come out as they went in. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoteOpener, sealLetter } from '../../../src/capabilities/notes/letter.ts';
import { sealingKeyOf } from '../../../src/foundation/keys/sealed-box.ts';
import { decodeNotePayload } from '../../../src/foundation/records/notes.ts';
import { newIdentity } from '../../support/identities.ts';

const PADDING = 256;
const LENGTH = 4;
/** Of AES-GCM. */
const TAG = 16;

test('a letter is padded to whole blocks, and opened without its padding', async () => {
  const recipient = newIdentity().aid;
  const key = sealingKeyOf(new Uint8Array(32).fill(7));
  const opener = new NoteOpener(key);
  for (const length of [0, 1, PADDING - LENGTH - 1, PADDING - LENGTH, PADDING - LENGTH + 1, 2 * PADDING - LENGTH]) {
    const letter = new Uint8Array(length).fill(9);
    const payload = sealLetter(letter, new Uint8Array(16), recipient, key.publicKey);
    const sealed = decodeNotePayload(payload) ?? assert.fail();
    assert.equal((sealed.ciphertext.length - TAG) % PADDING, 0);
    assert.deepEqual(opener.open(sealed, recipient), letter, `${length} bytes`);
  }
});
