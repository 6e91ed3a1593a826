/** Every payload limit: accepts the limit, and names the limit for one more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CborValue, encodeCbor } from '../../../src/foundation/cbor.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import {
  decodeEndpointsPayload,
  decodeProfilePayload,
  decodeServicePayload,
  EMPTY_PROFILE,
  type EndpointsPayload,
  encodeEncryptionKeysPayload,
  encodeEndpointsPayload,
  encodeProfilePayload,
  encodeServicePayload,
  fitEndpointsPayload,
} from '../../../src/foundation/records/payloads.ts';
import { testKeys } from '../../support/agents.ts';

const KEY = testKeys(1).publicKey;
const ENDPOINTS: EndpointsPayload = { endpoints: [], natType: 0, nodeKey: KEY, helpers: [], customTypes: [] };
const SERVICE = { service: 'a', name: '', protocols: [], tags: [], brief: '', meta: '' };

const text = (length: number) => 'x'.repeat(length);
const list = (length: number) => Array.from({ length }, (_, n) => `t${n}`);

/** Asserts that the limit is accepted, and that one more is rejected with its member and limit. */
function isLimit(member: string, limit: number, encode: (size: number) => unknown): void {
  encode(limit);
  assert.throws(
    () => encode(limit + 1),
    (error) => {
      assert.ok(error instanceof SvcError && error.code === 'too_large', member);
      assert.deepEqual(error.details, { field: member, limit, size: limit + 1 });
      return true;
    },
  );
}

test('the members of a service', () => {
  const encode = (change: object) => encodeServicePayload({ ...SERVICE, ...change });
  isLimit('name', 64, (n) => encode({ name: text(n) }));
  isLimit('brief', 256, (n) => encode({ brief: text(n) }));
  for (const member of ['protocols', 'tags']) {
    isLimit(member, 16, (n) => encode({ [member]: list(n) }));
    isLimit(member, 64, (n) => encode({ [member]: [text(n)] }));
    assert.throws(() => encode({ [member]: ['a', ''] }), { code: 'invalid_request', details: { field: member } });
  }
});

test('the members of a profile', () => {
  const encode = (change: object) => encodeProfilePayload({ ...EMPTY_PROFILE, ...change });
  isLimit('name', 64, (n) => encode({ name: text(n) }));
  isLimit('brief', 256, (n) => encode({ brief: text(n) }));
  isLimit('skills', 3, (n) => encode({ skills: list(n) }));
  isLimit('skills', 128, (n) => encode({ skills: [text(n)] }));
  isLimit('card_hash', 128, (n) => encode({ cardHash: text(n) }));
  for (const member of ['protocols', 'modalities']) {
    isLimit(member, 16, (n) => encode({ [member]: list(n) }));
    isLimit(member, 64, (n) => encode({ [member]: [text(n)] }));
  }
  assert.throws(() => encode({ meta: '[]' }), { code: 'invalid_request', details: { field: 'meta' } });
});

test('the members of endpoints', () => {
  const encode = (change: object) => encodeEndpointsPayload({ ...ENDPOINTS, ...change });
  const helper = { nodeKey: KEY, address: 'h.example:9' };
  isLimit('endpoints', 8, (n) => encode({ endpoints: Array.from({ length: n }, () => 'quic://a:1') }));
  isLimit('helpers', 4, (n) => encode({ helpers: Array.from({ length: n }, () => helper) }));
  isLimit('custom types', 14, (n) => encode({ customTypes: Array.from({ length: n }, () => 2) }));
  isLimit('service', 128, (n) => encode({ service: text(n) }));
  assert.throws(() => encode({ natType: 5 }), { code: 'invalid_request' });
  encode({ natType: 4 });
  const fitted = fitEndpointsPayload(
    {
      ...ENDPOINTS,
      endpoints: Array.from({ length: 9 }, () => 'quic://a:1'),
      helpers: Array.from({ length: 5 }, () => helper),
    },
    1000,
  );
  assert.deepEqual([fitted.endpoints.length, fitted.helpers.length], [8, 4]);
});

test('omits the worst items from the longer list first, and no more than necessary', () => {
  const helper = { nodeKey: KEY, address: 'h.example:9' };
  const full = { ...ENDPOINTS, endpoints: ['quic://a:1', 'quic://b:1'], helpers: [helper, helper] };
  const sizes = (maxBytes: number) => {
    const { endpoints, helpers } = fitEndpointsPayload(full, maxBytes);
    return [endpoints.length, helpers.length];
  };
  const size = (endpoints: number, helpers: number) =>
    encodeEndpointsPayload({
      ...full,
      endpoints: full.endpoints.slice(0, endpoints),
      helpers: full.helpers.slice(0, helpers),
    }).length;
  assert.deepEqual(sizes(size(2, 2)), [2, 2]);
  assert.deepEqual(sizes(size(2, 2) - 1), [2, 1]);
  assert.deepEqual(sizes(size(2, 1) - 1), [1, 1]);
  assert.deepEqual(sizes(size(1, 1) - 1), [1, 0]);
  assert.deepEqual(sizes(size(1, 0) - 1), [0, 0]);
  assert.deepEqual(sizes(0), [0, 0]);
});

test('four encryption keys, of X25519, with times that there are', () => {
  const key = (n: number, createdAt = 9) => ({ publicKey: new Uint8Array(32).fill(n), createdAt });
  isLimit('keys', 4, (n) => encodeEncryptionKeysPayload(Array.from({ length: n }, (_, i) => key(i))));
  encodeEncryptionKeysPayload([key(1, 253_402_300_799)]);
  for (const wrong of [key(1, 253_402_300_800), { publicKey: new Uint8Array(33), createdAt: 1 }])
    assert.throws(() => encodeEncryptionKeysPayload([wrong]), { code: 'invalid_request', details: { field: 'keys' } });
});

test('members of another form make no payload', () => {
  const wrong: readonly [(bytes: Uint8Array) => unknown, CborValue, readonly CborValue[]][] = [
    [
      decodeEndpointsPayload,
      { n: 0, k: KEY },
      [
        { e: 'quic://a:1' },
        { e: [1] },
        { n: 'x' },
        { n: -1 },
        { k: 'x' },
        { h: {} },
        { h: [7] },
        { h: [[KEY]] },
        { h: [[KEY, 'a:1', 1]] },
        { h: [['x', 'a:1']] },
        { h: [[KEY, 1]] },
        { c: 2 },
        { c: ['2'] },
        { s: 1 },
      ],
    ],
    [
      decodeServicePayload,
      { s: 'a' },
      [{ s: 1 }, { n: 1 }, { b: 1 }, { m: 1 }, { p: 1 }, { t: 1 }, { p: [1] }, { t: [1] }],
    ],
    [decodeProfilePayload, {}, [{ n: 1 }, { b: 1 }, { h: 1 }, { m: 1 }, { p: 1 }, { s: 1 }, { o: 1 }, { o: [1] }]],
  ];
  for (const [decode, good, changes] of wrong) {
    assert.notEqual(decode(encodeCbor(good)), null);
    for (const change of changes)
      assert.equal(decode(encodeCbor({ ...Object(good), ...Object(change) })), null, JSON.stringify(change));
    for (const other of [[], 'x', 1, null]) assert.equal(decode(encodeCbor(other)), null, JSON.stringify(other));
  }
});

test('a payload is read up to the size of its record', () => {
  // "z" is an unknown member: 3 bytes for its name and length, 1 for the map.
  const padded = (good: CborValue, size: number): Uint8Array => {
    const empty = encodeCbor({ ...Object(good), z: new Uint8Array(300) }).length - 300;
    return encodeCbor({ ...Object(good), z: new Uint8Array(size - empty) });
  };
  for (const [decode, good, limit] of [
    [decodeEndpointsPayload, { n: 0, k: KEY }, 1000],
    [decodeServicePayload, { s: 'a' }, 1000],
    [decodeProfilePayload, {}, 4096],
  ] as const) {
    assert.equal(padded(good, limit).length, limit);
    assert.notEqual(decode(padded(good, limit)), null);
    assert.equal(decode(padded(good, limit + 1)), null);
  }
});
