import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_UNIX_S } from '../../../src/foundation/domain/time.ts';
import { IP_SCOPE } from '../../../src/foundation/ip.ts';
import {
  decodeFindReply,
  decodeFindRequest,
  decodeNodeRequest,
  decodePage,
  decodeProbeRequest,
  decodeStoreReply,
  encodeFindReply,
  encodeFindRequest,
  encodeNodeRequest,
  encodePage,
  encodeProbeRequest,
  encodeStoreReply,
  type FindReply,
  MAX_SENT_DATAGRAM_BYTES,
  STORE_CODES,
} from '../../../src/network/records/messages.ts';
import { nodeScope, packAddresses, unpackAddresses } from '../../../src/network/records/node-address.ts';

const SEED = { seed: 20_261, numRuns: 300 };
const DECODERS = [
  decodeFindRequest,
  decodeFindReply,
  decodeProbeRequest,
  (bytes: Uint8Array) => decodeStoreReply(bytes),
  decodeNodeRequest,
  decodePage,
];

const type = fc.constantFrom(1, 2, 7, 15, 0x10, 0x11, 0x80);
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const uint = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const port = fc.integer({ min: 1, max: 65_535 });
const address = {
  host: fc.tuple(fc.integer({ min: 1, max: 223 }), fc.nat(255), fc.nat(255), fc.nat(255)).map((b) => b.join('.')),
  port,
};
const plain = { noNullPrototype: true };
const summary = fc.record({ type, issuedAt: uint, seq: uint, timestamp: uint, digest: bytes(8) }, plain);
const findReply: fc.Arbitrary<FindReply> = fc.record(
  {
    nodeKey: bytes(32),
    quicPort: fc.nat(65_535),
    nodes: fc.array(fc.record(address, plain), { maxLength: 20 }),
    count: uint,
    digest: bytes(8),
    records: fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 3 }),
    summaries: fc.array(summary, { maxLength: 4 }),
    time: fc.nat({ max: MAX_UNIX_S }),
  },
  plain,
);

/** An example of every message that an encoder produces, to be damaged. */
const encoded = fc.oneof(
  findReply.map(encodeFindReply),
  fc.record({ types: fc.array(type, { maxLength: 16 }), wantsRecords: fc.boolean() }).map(encodeFindRequest),
  fc.record({ port, otherSocket: fc.boolean() }).map(encodeProbeRequest),
  fc.record({ code: fc.constantFrom(...STORE_CODES), record: fc.uint8Array() }).map(encodeStoreReply),
  fc.record({ next: uint, records: fc.array(fc.uint8Array(), { maxLength: 5 }) }).map(encodePage),
);

test('every decoded message equals the encoded one', () => {
  fc.assert(
    fc.property(findReply, (reply) => {
      assert.deepEqual(decodeFindReply(encodeFindReply(reply)), reply);
    }),
    SEED,
  );
  for (const part of [undefined, { index: 2, of: 5 }])
    for (const wantsRecords of [true, false]) {
      const request = { types: [1, 0x80], wantsRecords, ...(part === undefined ? {} : { part }) };
      assert.deepEqual(decodeFindRequest(encodeFindRequest(request)), request);
    }
  for (const code of STORE_CODES) assert.deepEqual(decodeStoreReply(encodeStoreReply({ code })), { code });
  const probe = { port: 4121, otherSocket: true };
  assert.deepEqual(decodeProbeRequest(encodeProbeRequest(probe)), probe);
  const [tag, key, record] = [new Uint8Array(8), new Uint8Array(32), new Uint8Array(2000)];
  for (const request of [
    { kind: 'store', tag, key, record },
    { kind: 'page', tag, key, types: [0x10], from: 7 },
  ] as const)
    assert.deepEqual(decodeNodeRequest(encodeNodeRequest(request)), request);
  const page = { next: 8, records: [record, new Uint8Array(1)] };
  assert.deepEqual(decodePage(encodePage(page)), page);
});

test('no input makes a decoder throw', () => {
  const damaged = fc.tuple(encoded, fc.nat(), fc.nat(255), fc.nat(40)).map(([message, at, byte, cut]) => {
    const copy = Uint8Array.from(message);
    if (copy.length > 0) copy.set([byte], at % copy.length);
    return cut === 0 ? copy.subarray(0, at % (copy.length + 1)) : copy;
  });
  fc.assert(
    fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 1500 })), (message) => {
      for (const decode of DECODERS) decode(message);
    }),
    { ...SEED, numRuns: 3000 },
  );
});

test('a message beyond a limit is invalid', () => {
  const reply: FindReply = {
    nodeKey: new Uint8Array(32),
    quicPort: 1,
    nodes: [],
    count: 0,
    digest: new Uint8Array(8),
    records: [],
    summaries: [],
    time: 1,
  };
  const many = Array.from({ length: 21 }, (_, i) => ({ host: '192.0.2.1', port: i + 1 }));
  const summaries = Array.from({ length: 17 }, () => ({
    type: 1,
    issuedAt: 1,
    seq: 1,
    timestamp: 1,
    digest: new Uint8Array(8),
  }));
  assert.ok(decodeFindReply(encodeFindReply({ ...reply, nodes: many.slice(1), summaries: summaries.slice(1) })));
  assert.equal(decodeFindReply(encodeFindReply({ ...reply, nodes: many })), null);
  assert.equal(decodeFindReply(encodeFindReply({ ...reply, summaries })), null);
  assert.equal(decodeFindReply(encodeFindReply({ ...reply, records: [new Uint8Array(1001)] })), null);
  assert.equal(decodeFindReply(encodeFindReply({ ...reply, time: MAX_UNIX_S + 1 })), null);
  assert.equal(decodeFindReply(encodeFindReply({ ...reply, nodeKey: new Uint8Array(31) })), null);
  assert.equal(decodeFindRequest(encodeFindRequest({ types: [0x33], wantsRecords: false })), null);
  assert.equal(
    decodeFindRequest(encodeFindRequest({ types: Array.from({ length: 17 }, () => 1), wantsRecords: false })),
    null,
  );
  assert.equal(
    decodeFindRequest(encodeFindRequest({ types: [], wantsRecords: true, part: { index: 3, of: 3 } })),
    null,
  );
  assert.equal(
    decodeFindRequest(encodeFindRequest({ types: [], wantsRecords: true, part: { index: 0, of: 2 ** 30 + 1 } })),
    null,
  );
  assert.equal(decodeProbeRequest(encodeProbeRequest({ port: 0, otherSocket: false })), null);
  assert.equal(decodePage(encodePage({ next: 0, records: [new Uint8Array(50_000)] })), null);
  const store = { kind: 'store', tag: new Uint8Array(8), key: new Uint8Array(32) } as const;
  assert.equal(decodeNodeRequest(encodeNodeRequest({ ...store, record: new Uint8Array(50_000) })), null);
  assert.equal(
    decodeNodeRequest(encodeNodeRequest({ ...store, key: new Uint8Array(31), record: new Uint8Array(9) })),
    null,
  );
  const page = { ...store, kind: 'page', types: [], from: 0 } as const;
  assert.ok(decodeNodeRequest(encodeNodeRequest({ ...page, known: new Uint8Array(4000 * 8) })));
  assert.ok(decodeNodeRequest(encodeNodeRequest({ ...page, known: new Uint8Array(4001 * 8) })) === null);
  assert.equal(decodeNodeRequest(encodeNodeRequest({ ...page, known: new Uint8Array(9) })), null);
});

test('a request for records is padded to a third of the longest response', () => {
  assert.ok(encodeFindRequest({ types: [1], wantsRecords: true }).length * 3 > MAX_SENT_DATAGRAM_BYTES - 200);
  assert.ok(encodeFindRequest({ types: [1], wantsRecords: false }).length < 100);
});

test('unroutable addresses are omitted', () => {
  const packed = packAddresses([
    { host: '0.0.0.0', port: 1 },
    { host: '224.0.0.251', port: 5353 },
    { host: '255.255.255.255', port: 9 },
    { host: '192.0.2.1', port: 0 },
    { host: '192.0.2.1', port: 258 },
  ]);
  assert.deepEqual(unpackAddresses(packed, 5), [{ host: '192.0.2.1', port: 258 }]);
  assert.equal(unpackAddresses(packed, 4), null);
  assert.equal(unpackAddresses(packed.subarray(1), 5), null);
});

test('the scope of an address is detected', () => {
  const scopes = {
    '127.0.0.1': IP_SCOPE.loopback,
    '10.0.0.1': IP_SCOPE.private,
    '172.15.0.1': IP_SCOPE.public,
    '172.16.0.1': IP_SCOPE.private,
    '172.32.0.1': IP_SCOPE.public,
    '192.168.1.1': IP_SCOPE.private,
    '169.254.1.1': IP_SCOPE.link,
    '100.63.0.1': IP_SCOPE.public,
    '100.64.0.1': IP_SCOPE.private,
    '100.128.0.1': IP_SCOPE.public,
    '8.8.8.8': IP_SCOPE.public,
    '0.0.0.0': IP_SCOPE.none,
    '239.1.1.1': IP_SCOPE.none,
    '::1': IP_SCOPE.none,
    'example.org': IP_SCOPE.none,
  };
  for (const [host, scope] of Object.entries(scopes)) assert.equal(nodeScope(host), scope, host);
});
