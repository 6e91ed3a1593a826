/** Messages between nodes of the record network. */
import {
  decodeFindReply,
  decodeFindRequest,
  decodeNodeRequest,
  decodePage,
  decodeProbeRequest,
  decodeRemoveReply,
  decodeRemoveRequest,
  decodeStoreReply,
  encodeFindReply,
  encodeFindRequest,
  encodeNodeRequest,
  encodePage,
  encodeProbeRequest,
  encodeRemoveReply,
  encodeRemoveRequest,
  encodeStoreReply,
} from '../../../src/network/records/messages.ts';
import { packAddresses, unpackAddresses } from '../../../src/network/records/node-address.ts';
import { decoder } from '../engine/properties.ts';
import { vectorBytes } from '../engine/seeds.ts';
import type { FuzzTarget } from '../engine/target.ts';

const DIGEST = new Uint8Array(8).fill(7);
const TOKEN = new Uint8Array(16).fill(9);
const KEY = new Uint8Array(32).fill(5);

function firstRecord(): Uint8Array {
  return vectorBytes('record', 'valid.*.record_hex')[0] ?? new Uint8Array();
}

const findRequest = decoder({
  name: 'find-request',
  inputs: 5000,
  seeds: () => [
    encodeFindRequest({ types: [1, 2, 16], wantsRecords: true, part: { index: 3, of: 8 } }),
    encodeFindRequest({ types: [], wantsRecords: false }),
  ],
  decode: decodeFindRequest,
  encode: encodeFindRequest,
});

const findReply = decoder({
  name: 'find-reply',
  inputs: 5000,
  seeds: () => [
    encodeFindReply({
      nodeKey: KEY,
      quicPort: 4122,
      nodes: [{ host: '192.0.2.1', port: 4121 }],
      count: 2,
      digest: DIGEST,
      records: [firstRecord()],
      summaries: [{ type: 16, issuedAt: 1_760_000_000, seq: 1, timestamp: 1_760_000_000, digest: DIGEST }],
      time: 1_760_000_000,
    }),
  ],
  decode: decodeFindReply,
  encode: encodeFindReply,
});

const storeReply = decoder({
  name: 'store-reply',
  inputs: 5000,
  seeds: () => [
    encodeStoreReply({ code: 'kept' }),
    encodeStoreReply({ code: 'newer', record: firstRecord() }),
    encodeStoreReply({ code: 'removed', token: TOKEN }),
  ],
  decode: decodeStoreReply,
  encode: encodeStoreReply,
  canonical: true,
});

const probeRequest = decoder({
  name: 'probe-request',
  inputs: 5000,
  seeds: () => [encodeProbeRequest({ port: 4121, otherSocket: true })],
  decode: decodeProbeRequest,
  encode: encodeProbeRequest,
  canonical: true,
});

const removeRequest = decoder({
  name: 'remove-request',
  inputs: 5000,
  seeds: () => [
    encodeRemoveRequest([
      { digest: DIGEST, token: TOKEN },
      { digest: DIGEST, token: TOKEN },
    ]),
  ],
  decode: decodeRemoveRequest,
  encode: encodeRemoveRequest,
  canonical: true,
});

const removeReply = decoder({
  name: 'remove-reply',
  inputs: 3000,
  seeds: () => [encodeRemoveReply(3)],
  // Zero is a valid response.
  decode: (bytes) => {
    const count = decodeRemoveReply(bytes);
    return count === null ? null : { count };
  },
  encode: ({ count }) => encodeRemoveReply(count),
  canonical: true,
});

const nodeRequest = decoder({
  name: 'node-request',
  inputs: 5000,
  seeds: () => [
    encodeNodeRequest({ kind: 'store', tag: DIGEST, key: KEY, record: firstRecord() }),
    encodeNodeRequest({ kind: 'page', tag: DIGEST, key: KEY, types: [1, 16], from: 5 }),
    encodeNodeRequest({ kind: 'page', tag: DIGEST, key: KEY, types: [], from: 0, known: new Uint8Array(16) }),
  ],
  decode: decodeNodeRequest,
  encode: encodeNodeRequest,
  canonical: true,
});

const page = decoder({
  name: 'node-page',
  inputs: 4000,
  seeds: () => [encodePage({ records: [firstRecord(), firstRecord()], next: 7 }), encodePage({ records: [], next: 0 })],
  decode: decodePage,
  encode: encodePage,
  canonical: true,
});

const addresses = decoder({
  name: 'packed-addresses',
  inputs: 3000,
  seeds: () => [
    packAddresses([
      { host: '192.0.2.1', port: 4121 },
      { host: '127.0.0.1', port: 1 },
    ]),
  ],
  decode: (bytes) => unpackAddresses(bytes, 20),
  encode: packAddresses,
});

export const dhtTargets: readonly FuzzTarget[] = [
  findRequest,
  findReply,
  storeReply,
  probeRequest,
  removeRequest,
  removeReply,
  nodeRequest,
  page,
  addresses,
];
