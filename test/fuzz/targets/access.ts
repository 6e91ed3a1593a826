/** Requests for access of strangers, and the answers of called nodes. */
import { decodeAsk, decodeVerdict, encodeAsk, encodeVerdict } from '../../../src/capabilities/access/asking.ts';
import { MAX_ACCESS_NOTE_BYTES, MAX_ASKED_BYTES, MAX_DECISION_WAIT_S } from '../../../src/foundation/domain/access.ts';
import { editCbor } from '../engine/cbor.ts';
import { decoder, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

/** Without the length. */
function body(framed: Uint8Array): Uint8Array {
  return framed.subarray(2);
}

const ask = decoder({
  name: 'access-ask',
  inputs: 4000,
  edit: editCbor,
  seeds: () => [
    body(encodeAsk({ kind: 'call', asked: 'GET /', tool: null, note: '', waitS: 0 })),
    body(encodeAsk({ kind: 'tunnel', asked: 'TCP', tool: 'search', note: 'Ada ✓', name: 'Ada', waitS: 60 })),
  ],
  decode: decodeAsk,
  encode: (value) => body(encodeAsk(value)),
  check: ({ asked, note, tool, waitS }, bytes) => {
    if (Buffer.byteLength(asked) > MAX_ASKED_BYTES || Buffer.byteLength(note) > MAX_ACCESS_NOTE_BYTES)
      throw violation('a text over its limit', bytes);
    if (/\p{Cc}/u.test(asked + note)) throw violation('a control character', bytes);
    if (waitS > MAX_DECISION_WAIT_S) throw violation('a wait over its limit', bytes);
    if (tool !== null && !/^[A-Za-z0-9_./-]{1,128}$/.test(tool)) throw violation('an invalid tool name', bytes);
  },
});

const verdict = decoder({
  name: 'access-verdict',
  inputs: 2000,
  edit: editCbor,
  seeds: () => [
    body(encodeVerdict({ state: 'pending', id: '0123456789abcdef' })),
    body(encodeVerdict({ state: 'allowed', id: null })),
  ],
  decode: decodeVerdict,
  encode: (value) => body(encodeVerdict(value)),
  check: ({ id }, bytes) => {
    if (id !== null && !/^[0-9a-f]{16}$/.test(id)) throw violation('an invalid id', bytes);
  },
});

export const accessTargets: readonly FuzzTarget[] = [ask, verdict];
