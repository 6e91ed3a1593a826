import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { toHex } from '../../../src/foundation/bytes.ts';
import { type Aid, aidFromBytes, aidToBytes, nativeAid } from '../../../src/foundation/identity/aid.ts';
import { MAX_DELEGATION_BYTES } from '../../../src/foundation/identity/delegation.ts';
import {
  decodeHeader,
  encodeHeader,
  type LinkHeader,
  MAX_ACCESS_TOKEN_BYTES,
  MAX_LINK_HEADER_BYTES,
} from '../../../src/network/links/header.ts';
import { decodeProof, encodeProof, MAX_PROOF_BYTES, type Proof } from '../../../src/network/links/proofs.ts';

const RUNS = { seed: 20261121, numRuns: 300 };

function bytes(length: number): fc.Arbitrary<Uint8Array> {
  return fc.uint8Array({ minLength: length, maxLength: length });
}

const aids: fc.Arbitrary<Aid> = fc.oneof(
  bytes(32).map(nativeAid),
  bytes(20).map((body) => aidFromBytes(Uint8Array.of(0xa2, ...body))),
  bytes(20).map((body) => aidFromBytes(Uint8Array.of(0xa3, ...body))),
);
const proofs: fc.Arbitrary<Proof> = fc.record({
  delegation: fc.uint8Array({ maxLength: MAX_DELEGATION_BYTES }),
  signature: bytes(64),
});
const headers: fc.Arbitrary<LinkHeader> = fc.record({
  caller: aids,
  called: aids,
  purpose: fc.constantFrom('http', 'tcp', 'admin', 'a-later-purpose1'),
  accessToken: fc.option(fc.string({ minLength: 1, maxLength: 200, unit: 'grapheme' }), { nil: undefined }),
  proof: fc.option(proofs, { nil: null }),
  wantsProof: fc.boolean(),
});

test('a decoded header equals the encoded one', () => {
  fc.assert(
    fc.property(headers, (header) => {
      const encoded = encodeHeader(header);
      assert.ok(encoded.length <= MAX_LINK_HEADER_BYTES);
      const decoded = decodeHeader(encoded);
      assert.ok(decoded);
      assert.deepEqual(encodeHeader(decoded), encoded);
      assert.deepEqual(
        { ...decoded, proof: decoded.proof && toHex(encodeProof(decoded.proof)) },
        { ...header, proof: header.proof && toHex(encodeProof(header.proof)) },
      );
    }),
    RUNS,
  );
});

test('a decoder accepts only one encoding of a value, and never throws', () => {
  const mutated = fc
    .tuple(headers, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }), fc.nat())
    .map(([header, edits, cut]) => {
      const encoded = Uint8Array.from(encodeHeader(header));
      for (const [at, value] of edits) encoded[at % encoded.length] = value;
      return cut % 3 === 0 ? encoded.subarray(0, cut % encoded.length) : encoded;
    });
  fc.assert(
    fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 300 })), (input) => {
      const decoded = decodeHeader(input);
      if (decoded !== null) assert.deepEqual(Buffer.from(encodeHeader(decoded)), Buffer.from(input));
    }),
    { ...RUNS, numRuns: 2000 },
  );
});

test('a header with a misplaced field is rejected', () => {
  const caller = nativeAid(new Uint8Array(32).fill(1));
  const good = encodeHeader({
    caller,
    called: caller,
    purpose: 'tcp',
    accessToken: 'x',
    proof: null,
    wantsProof: true,
  });
  assert.ok(decodeHeader(good));
  const refused: Record<string, Uint8Array> = {
    empty: new Uint8Array(0),
    'unknown flag': Uint8Array.of(4, ...good.subarray(1)),
    'proof flag without a proof': Uint8Array.of(1, ...good.subarray(1)),
    'trailing byte': Uint8Array.of(...good, 0),
    truncated: good.subarray(0, -1),
    'unknown kind of AID': Uint8Array.of(good[0] ?? 0, 33, 0xa9, ...good.subarray(3)),
  };
  for (const [name, input] of Object.entries(refused)) assert.equal(decodeHeader(input), null, name);
  const withPurpose = (purpose: string): Uint8Array =>
    encodeHeader({ caller, called: caller, purpose, accessToken: undefined, proof: null, wantsProof: false });
  assert.ok(decodeHeader(withPurpose('x'.repeat(16))));
  for (const purpose of ['', 'x'.repeat(17), 'Tcp', 'a b', 'a\0'])
    assert.equal(decodeHeader(withPurpose(purpose)), null, JSON.stringify(purpose));
});

test('an access token is valid UTF-8 of limited length', () => {
  const caller = nativeAid(new Uint8Array(32).fill(1));
  const header = (accessToken: string): Uint8Array =>
    encodeHeader({ caller, called: caller, purpose: 'tcp', accessToken, proof: null, wantsProof: false });
  const longest = 'x'.repeat(MAX_ACCESS_TOKEN_BYTES);
  assert.equal(decodeHeader(header(longest))?.accessToken, longest);
  assert.throws(() => header(`${longest}x`), { code: 'too_large' });
  const invalid = Uint8Array.from(header('xy'));
  invalid[invalid.length - 1] = 0xff;
  assert.equal(decodeHeader(invalid), null);
});

test('the bytes of a header match docs/protocol-links.md', () => {
  const caller = nativeAid(new Uint8Array(32).fill(0x11));
  const called = aidFromBytes(Uint8Array.of(0xa3, ...new Uint8Array(20).fill(0x22)));
  const proof: Proof = { delegation: Uint8Array.of(0xde, 0x1e), signature: new Uint8Array(64).fill(0x33) };
  assert.equal(
    toHex(encodeHeader({ caller, called, purpose: 'http', accessToken: 'key', proof, wantsProof: true })),
    [
      '03',
      `21${toHex(aidToBytes(caller))}`,
      `15${toHex(aidToBytes(called))}`,
      '0468747470',
      '00036b6579',
      `0002de1e${'33'.repeat(64)}`,
    ].join(''),
  );
});

test('a proof is decoded only if it is complete and has no trailing bytes', () => {
  fc.assert(
    fc.property(proofs, fc.uint8Array({ minLength: 1, maxLength: 3 }), (proof, more) => {
      const encoded = encodeProof(proof);
      assert.ok(encoded.length <= MAX_PROOF_BYTES);
      const decoded = decodeProof(encoded);
      assert.ok(decoded);
      assert.deepEqual(encodeProof(decoded), encoded);
      assert.equal(decodeProof(encoded.subarray(0, -more.length)), null);
      assert.equal(decodeProof(Buffer.concat([encoded, more])), null);
    }),
    RUNS,
  );
  assert.equal(decodeProof(Buffer.concat([Uint8Array.of(0xff, 0xff), new Uint8Array(70_000)])), null);
});
