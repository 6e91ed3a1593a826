import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { type CborValue, encodeCbor } from '../../../src/foundation/cbor.ts';
import { isServiceName } from '../../../src/foundation/domain/services.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { parseMeta } from '../../../src/foundation/records/fields.ts';
import {
  decodeEncryptionKeysPayload,
  decodeEndpointsPayload,
  decodeProfilePayload,
  decodeServicePayload,
  EMPTY_PROFILE,
  type EndpointsPayload,
  encodeEncryptionKeysPayload,
  encodeEndpointsPayload,
  encodeProfilePayload,
  encodeServicePayload,
  encryptionKeyId,
  fitEndpointsPayload,
  type ProfilePayload,
  type ServicePayload,
} from '../../../src/foundation/records/payloads.ts';
import { failsWith, hex, readVectors } from '../../support/vectors.ts';

const KEY = KeyPair.fromSeed(new Uint8Array(32).fill(1)).publicKey;

const ENDPOINTS: EndpointsPayload = {
  endpoints: ['quic://192.0.2.1:4122'],
  natType: 0,
  nodeKey: KEY,
  helpers: [],
  customTypes: [],
};
const SERVICE: ServicePayload = { service: 'lang.translate', name: '', protocols: [], tags: [], brief: '', meta: '' };

const word = fc.string({ unit: fc.constantFrom(...Array.from('abcäöß 日本🙂-')), minLength: 1, maxLength: 8 });
const words = fc.array(word, { maxLength: 6 });
const meta = fc.oneof(
  fc.constant(''),
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })).map((object) => JSON.stringify(object).slice(0, 300)),
);
const service: fc.Arbitrary<ServicePayload> = fc
  .record(
    {
      service: fc.constantFrom('a', 'lang.translate', 'x-1_y.z'),
      name: word,
      protocols: words,
      tags: words,
      brief: word,
      meta,
      wakesWithinS: fc.integer({ min: 1, max: 3600 }),
    },
    { noNullPrototype: true, requiredKeys: ['service', 'name', 'protocols', 'tags', 'brief', 'meta'] },
  )
  .filter((payload) => parseMeta(payload.meta) !== null);
const profile: fc.Arbitrary<ProfilePayload> = fc
  .record(
    {
      name: word,
      brief: word,
      protocols: words,
      skills: fc.array(word, { maxLength: 3 }),
      modalities: words,
      cardHash: word,
      meta,
      wakesWithinS: fc.integer({ min: 1, max: 3600 }),
    },
    {
      noNullPrototype: true,
      requiredKeys: ['name', 'brief', 'protocols', 'skills', 'modalities', 'cardHash', 'meta'],
    },
  )
  .filter((payload) => parseMeta(payload.meta) !== null);
const endpoints: fc.Arbitrary<EndpointsPayload> = fc.record(
  {
    endpoints: fc.array(fc.constantFrom('quic://192.0.2.1:1', 'quic://[::1]:65535', 'quic://a.example:4122'), {
      maxLength: 8,
    }),
    natType: fc.nat(4),
    nodeKey: fc.constant(KEY),
    helpers: fc.array(fc.constant({ nodeKey: KEY, address: 'h.example:9' }), { maxLength: 4 }),
    customTypes: fc.array(fc.integer({ min: 2, max: 15 }), { maxLength: 14 }),
    meeting: fc.constantFrom({ publicKey: KEY, host: '192.0.2.7' }, { publicKey: KEY, host: '10.0.0.1' }),
    hasTurn: fc.constant(true as const),
  },
  {
    noNullPrototype: true,
    requiredKeys: ['endpoints', 'natType', 'nodeKey', 'helpers', 'customTypes'],
  },
);

test('payloads come back as they were', () => {
  fc.assert(
    fc.property(service, profile, endpoints, (s, p, e) => {
      assert.deepEqual(decodeServicePayload(encodeServicePayload(s)), s);
      assert.deepEqual(decodeProfilePayload(encodeProfilePayload(p)), p);
      const encoded = encodeEndpointsPayload(e);
      if (encoded.length <= 1000) assert.deepEqual(decodeEndpointsPayload(encoded), e);
    }),
    { seed: 61, numRuns: 500 },
  );
});

test('the payloads of the vectors', () => {
  const { payloads } = readVectors('record') as { payloads: Record<string, { payload_hex: string }> };
  const bytes = (name: string) => hex(payloads[name]?.payload_hex ?? '');
  assert.equal(decodeEndpointsPayload(bytes('endpoints'))?.endpoints.length, 3);
  assert.equal(decodeServicePayload(bytes('service'))?.name, 'Übersetzer');
  assert.deepEqual(decodeProfilePayload(bytes('profile'))?.skills, ['translate', 'count']);
  assert.deepEqual(decodeProfilePayload(bytes('empty_profile')), EMPTY_PROFILE);
  assert.equal(decodeEncryptionKeysPayload(bytes('encryption_keys'))?.length, 2);
});

test('members that a later version adds are passed over', () => {
  const more = { zz: [1, { a: 2 }] };
  assert.deepEqual(decodeServicePayload(encodeCbor({ s: 'lang.translate', ...more })), SERVICE);
  assert.deepEqual(decodeProfilePayload(encodeCbor(more)), EMPTY_PROFILE);
  assert.deepEqual(decodeEndpointsPayload(encodeCbor({ n: 0, k: KEY, ...more })), { ...ENDPOINTS, endpoints: [] });
  assert.equal(decodeEncryptionKeysPayload(encodeCbor({ k: [[KEY, 1]], ...more }))?.length, 1);
});

test('service payloads over a limit are refused with it', () => {
  const tooLarge: readonly Partial<ServicePayload>[] = [
    { brief: 'x'.repeat(257) },
    { brief: 'ä'.repeat(129) },
    { name: 'x'.repeat(65) },
    { tags: Array.from({ length: 17 }, (_, n) => `t${n}`) },
    { protocols: ['x'.repeat(65)] },
  ];
  for (const changes of tooLarge)
    assert.throws(
      () => encodeServicePayload({ ...SERVICE, ...changes }),
      (error) => failsWith('too_large')(error) && /limit is \d+/.test(String(error)),
    );
  assert.ok(encodeServicePayload({ ...SERVICE, brief: 'x'.repeat(256) }));
});

test('texts that could trick a terminal or a reader are refused', () => {
  for (const text of [
    'a\nb',
    'a\u001b[2Jb',
    'a\u0000',
    'a\u202eb',
    'a\u2066b',
    'a\u2028b',
    '\ufeffa',
    'a\u009bb',
    '\ud800',
  ]) {
    assert.throws(() => encodeServicePayload({ ...SERVICE, brief: text }), failsWith('invalid_request'), text);
    assert.throws(() => encodeServicePayload({ ...SERVICE, tags: [text] }), failsWith('invalid_request'), text);
    assert.throws(() => encodeProfilePayload({ ...EMPTY_PROFILE, name: text }), failsWith('invalid_request'), text);
  }
  assert.equal(decodeServicePayload(encodeCbor({ s: 'a', b: 'x\u001b[2Jy' })), null);
  assert.equal(decodeProfilePayload(encodeCbor({ n: 'x\u202ey' })), null);
});

test('other malformed services and profiles are refused', () => {
  for (const name of ['', 'A', 'a..b', '.a', 'a.', 'a b', 'ä', 'x'.repeat(129), 'a/b']) {
    assert.ok(!isServiceName(name), name);
    assert.throws(() => encodeServicePayload({ ...SERVICE, service: name }), failsWith('invalid_request'));
  }
  assert.ok(isServiceName('lang.translate-2_b') && isServiceName('x'.repeat(128)));
  for (const text of ['[]', '1', 'null', '{', '"x"'])
    assert.throws(() => encodeServicePayload({ ...SERVICE, meta: text }), failsWith('invalid_request'), text);
  assert.throws(() => encodeServicePayload({ ...SERVICE, tags: [''] }), failsWith('invalid_request'));
  const four = ['a', 'b', 'c', 'd'];
  assert.throws(() => encodeProfilePayload({ ...EMPTY_PROFILE, skills: four }), failsWith('too_large'));
  const refused: readonly CborValue[] = [
    {},
    { s: 1 },
    { s: 'a', n: 1 },
    { s: 'a', p: 'x' },
    { s: 'a', t: [1] },
    { s: 'a', m: '[]' },
  ];
  for (const value of refused) assert.equal(decodeServicePayload(encodeCbor(value)), null);
  assert.equal(decodeProfilePayload(encodeCbor({ s: four })), null);
  assert.equal(decodeProfilePayload(encodeCbor([])), null);
});

test('endpoints must be dialable', () => {
  const bad = [
    '192.0.2.1:1',
    'http://a:1',
    'quic://a',
    'quic://a:0',
    'quic://a:65536',
    'quic://:1',
    'quic://256.1.1.1:1',
  ];
  bad.push('quic://[::1:1', 'quic://::1:1', 'quic://a b:1', 'quic://[fe80::1%eth0]:1', 'quic://a:1/', 'quic://a:1 ');
  for (const endpoint of bad) {
    assert.throws(
      () => encodeEndpointsPayload({ ...ENDPOINTS, endpoints: [endpoint] }),
      failsWith('invalid_request'),
      endpoint,
    );
    assert.equal(decodeEndpointsPayload(encodeCbor({ e: [endpoint], n: 0, k: KEY })), null, endpoint);
    const helpers = [{ nodeKey: KEY, address: endpoint.replace(/^192.*/, 'quic://') }];
    assert.throws(() => encodeEndpointsPayload({ ...ENDPOINTS, helpers }), failsWith('invalid_request'), endpoint);
  }
  const wrong: readonly Partial<EndpointsPayload>[] = [
    { natType: 5 },
    { natType: 0.5 },
    { nodeKey: KEY.subarray(1) },
    { customTypes: [1] },
    { helpers: [{ nodeKey: KEY.subarray(1), address: 'a:1' }] },
    { meeting: { publicKey: KEY.subarray(1), host: '192.0.2.7' } },
    { meeting: { publicKey: KEY, host: 'a.example' } },
  ];
  for (const changes of wrong)
    assert.throws(() => encodeEndpointsPayload({ ...ENDPOINTS, ...changes }), failsWith('invalid_request'));
  for (const more of [{ r: [KEY] }, { r: [KEY, 7] }, { r: [KEY, '::1'] }, { r: [KEY, 'a.example'] }, { t: 1 }])
    assert.equal(decodeEndpointsPayload(encodeCbor({ n: 0, k: KEY, ...more })), null, JSON.stringify(more));
  const nine = Array.from({ length: 9 }, () => 'quic://a:1');
  assert.throws(() => encodeEndpointsPayload({ ...ENDPOINTS, endpoints: nine }), failsWith('too_large'));
});

test('which endpoints are ports of a router goes along, by their places', () => {
  const endpoints = ['quic://a:1', 'quic://b:2', 'quic://c:3'];
  const payload: EndpointsPayload = { ...ENDPOINTS, endpoints, mapped: ['quic://c:3', 'quic://a:1', 'quic://gone:4'] };
  assert.deepEqual(decodeEndpointsPayload(encodeEndpointsPayload(payload))?.mapped, ['quic://a:1', 'quic://c:3']);
  const encoded = encodeCbor({ e: endpoints, m: 5, n: 0, k: KEY });
  assert.deepEqual(decodeEndpointsPayload(encoded)?.mapped, ['quic://a:1', 'quic://c:3']);
  const none = encodeEndpointsPayload({ ...ENDPOINTS, mapped: [] });
  assert.deepEqual(none, encodeEndpointsPayload(ENDPOINTS), 'no note is included without a value');
  assert.equal(decodeEndpointsPayload(none)?.mapped, undefined);
  for (const m of [-1, 256, 0.5, 'x'])
    assert.equal(decodeEndpointsPayload(encodeCbor({ e: endpoints, m, n: 0, k: KEY })), null, String(m));
});

test('omits the worst endpoints and helpers until the rest fits', () => {
  const many: EndpointsPayload = {
    ...ENDPOINTS,
    endpoints: Array.from({ length: 20 }, (_, n) => `quic://${n}.a-rather-long-host-name.example:4122`),
    helpers: Array.from({ length: 9 }, (_, n) => ({
      nodeKey: KEY,
      address: `${n}.another-long-host-name.example:4122`,
    })),
  };
  const fitted = fitEndpointsPayload(many, 470);
  assert.ok(encodeEndpointsPayload(fitted).length <= 470);
  assert.ok(fitted.endpoints.length >= 3 && fitted.helpers.length >= 2);
  assert.deepEqual(fitted.endpoints, many.endpoints.slice(0, fitted.endpoints.length));
  assert.deepEqual(fitted.helpers, many.helpers.slice(0, fitted.helpers.length));
  assert.deepEqual(fitEndpointsPayload(ENDPOINTS, 470), ENDPOINTS);
  assert.deepEqual(fitEndpointsPayload(many, 1).endpoints, []);
});

test('encryption keys come newest first, each once, and carry their id', () => {
  const keys = [3, 2, 2, 1].map((createdAt, n) => ({ publicKey: new Uint8Array(32).fill(n + 1), createdAt }));
  const decoded = decodeEncryptionKeysPayload(encodeEncryptionKeysPayload(keys));
  assert.deepEqual(
    decoded,
    keys.map((key) => ({ keyId: encryptionKeyId(key.publicKey), ...key })),
  );
  const [first, second] = keys;
  assert.ok(first !== undefined && second !== undefined);
  assert.throws(() => encodeEncryptionKeysPayload([]), failsWith('invalid_request'));
  assert.throws(() => encodeEncryptionKeysPayload([second, first]), failsWith('invalid_request'));
  assert.throws(() => encodeEncryptionKeysPayload([first, first]), failsWith('invalid_request'));
  assert.throws(() => encodeEncryptionKeysPayload([{ ...first, createdAt: -1 }]), failsWith('invalid_request'));
  assert.throws(
    () => encodeEncryptionKeysPayload([{ ...first, publicKey: new Uint8Array(31) }]),
    failsWith('invalid_request'),
  );
  assert.throws(() => encodeEncryptionKeysPayload([...keys, { ...first, createdAt: 0 }]), failsWith('too_large'));
  const refused: readonly CborValue[] = [
    {},
    { k: [] },
    { k: 1 },
    { k: [[KEY]] },
    {
      k: [
        [KEY, 1],
        [KEY, 1],
      ],
    },
    { k: [[KEY, -1]] },
  ];
  for (const value of refused) assert.equal(decodeEncryptionKeysPayload(encodeCbor(value)), null);
});

test('random and damaged payloads decode to null or to a value that encodes again, without exceptions', () => {
  const valid = fc.oneof(
    service.map(encodeServicePayload),
    profile.map(encodeProfilePayload),
    endpoints.map(encodeEndpointsPayload),
  );
  const damaged = fc
    .tuple(valid, fc.nat(), fc.integer({ min: 1, max: 255 }))
    .map(([bytes, at, by]) =>
      Uint8Array.from(bytes, (byte, index) => (index === at % bytes.length ? byte ^ by : byte)),
    );
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 100 }), damaged), (bytes) => {
      const [s, p] = [decodeServicePayload(bytes), decodeProfilePayload(bytes)];
      const [e, k] = [decodeEndpointsPayload(bytes), decodeEncryptionKeysPayload(bytes)];
      if (s !== null) assert.deepEqual(decodeServicePayload(encodeServicePayload(s)), s);
      if (p !== null) assert.deepEqual(decodeProfilePayload(encodeProfilePayload(p)), p);
      if (e !== null) assert.deepEqual(decodeEndpointsPayload(encodeEndpointsPayload(e)), e);
      if (k !== null) assert.deepEqual(decodeEncryptionKeysPayload(encodeEncryptionKeysPayload(k)), k);
    }),
    { seed: 62, numRuns: 2000 },
  );
});
