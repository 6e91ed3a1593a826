/** Messages of TURN servers, and of others that write to our port in their name. */
import {
  ATTRIBUTE,
  decodeErrorCode,
  decodeStun,
  decodeXorAddress,
  encodeStun,
  encodeXorAddress,
  hasValidIntegrity,
  MAX_STUN_BYTES,
  STUN,
  uint32,
} from '../../../src/network/reachability/turn/stun.ts';
import { decoder, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const KEY = new Uint8Array(16).fill(3);
const TRANSACTION = new Uint8Array(12).fill(4);

const message = decoder({
  name: 'stun',
  inputs: 5000,
  maxBytes: MAX_STUN_BYTES,
  edit: () => null,
  seeds: () => [
    encodeStun({ type: STUN.allocate, transaction: TRANSACTION, attributes: [[ATTRIBUTE.lifetime, uint32(600)]] }, KEY),
    encodeStun({
      type: STUN.data | 0x10,
      transaction: TRANSACTION,
      attributes: [
        [ATTRIBUTE.xorPeerAddress, encodeXorAddress({ host: '203.0.113.7', port: 4122 })],
        [ATTRIBUTE.data, KEY],
      ],
    }),
    encodeStun({
      type: STUN.refresh | 0x110,
      transaction: TRANSACTION,
      attributes: [[ATTRIBUTE.errorCode, Uint8Array.of(0, 0, 4, 38)]],
    }),
  ],
  decode: decodeStun,
  encode: encodeStun,
  check: ({ attributes }, bytes) => {
    if (hasValidIntegrity(bytes, Uint8Array.of(9))) throw violation('verified with a wrong key', bytes);
    for (const [, value] of attributes) {
      decodeErrorCode(value);
      const address = decodeXorAddress(value);
      if (address !== null && decodeXorAddress(encodeXorAddress(address))?.port !== address.port)
        throw violation('an address decodes to another value', value);
    }
  },
});

export const turnTargets: readonly FuzzTarget[] = [message];
