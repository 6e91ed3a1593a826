import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { toHex } from '../../../src/foundation/bytes.ts';
import type { AidScheme } from '../../../src/foundation/domain/agents.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import {
  aidFromBytes,
  aidOf,
  aidToBytes,
  nativeAid,
  nativePublicKey,
  parseAid,
  schemeOf,
} from '../../../src/foundation/identity/aid.ts';
import { aidVectors } from '../../../tools/vectors/aid.ts';
import { testAid } from '../../support/agents.ts';
import { failsWith, hex, readVectors } from '../../support/vectors.ts';

interface AidVectors {
  readonly valid: readonly { text: string; also: readonly string[]; scheme: AidScheme; canonical_hex: string }[];
  readonly invalid_texts: readonly { text: string; why: string }[];
  readonly invalid_bytes: readonly { hex: string; why: string }[];
}
const vectors = readVectors('aid') as AidVectors;

test('the vectors match the output of tools/make-vectors.ts', () => {
  assert.deepEqual(vectors, aidVectors());
});

test('every spelling of an AID becomes its canonical text and bytes', () => {
  for (const { text, also, scheme, canonical_hex } of vectors.valid) {
    for (const spelling of [text, ...also]) {
      const aid = parseAid(spelling);
      assert.equal(aid, text);
      assert.equal(toHex(aidToBytes(aid)), canonical_hex);
      assert.equal(schemeOf(aid), scheme);
    }
    assert.equal(aidFromBytes(hex(canonical_hex)), text);
  }
});

test('a cached AID equals a parsed one, and an invalid AID stays invalid', () => {
  const text = testAid(7);
  for (let i = 0; i < 3; i++) {
    assert.equal(parseAid(text), text);
    assert.equal(parseAid(text.toUpperCase()), text);
    assert.equal(parseAid(`${' '.repeat(500)}${text}`), text);
    assert.throws(() => parseAid(`${text}x`), { code: 'bad_aid' });
  }
});

test('everything else is refused', () => {
  for (const { text, why } of vectors.invalid_texts) assert.throws(() => parseAid(text), failsWith('bad_aid'), why);
  for (const { hex: bytes, why } of vectors.invalid_bytes)
    assert.throws(() => aidFromBytes(hex(bytes)), failsWith('bad_aid'), why);
});

test('letters that only look like ours are refused, in either case', () => {
  const aid = Array.from({ length: 20 }, (_, n) => testAid(n)).find((text) => text.includes('k')) ?? assert.fail();
  const kelvin = '\u212a';
  for (const text of [aid.toUpperCase().replace('K', kelvin), aid.replace('k', kelvin)])
    assert.throws(() => parseAid(text), failsWith('bad_aid'));
});

test('an Ethereum address has forty digits, and nothing behind them', () => {
  const address = `0x${'ab'.repeat(20)}`;
  assert.equal(schemeOf(parseAid(address)), 'ethereum');
  for (const text of [`${address}a`, `${address}zz`, address.slice(0, -1)])
    assert.throws(() => parseAid(text), failsWith('bad_aid'), text);
});

test('a native AID is its public key', () => {
  const key = hex('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
  const aid = nativeAid(key);
  assert.match(aid, /^aid1[02-9ac-hj-np-z]{58}$/);
  assert.deepEqual(nativePublicKey(aid), key);
  assert.equal(nativePublicKey(parseAid('0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed')), null);
  assert.throws(() => nativeAid(key.subarray(1)), failsWith('bad_aid'));
});

test('changing the bytes of an AID affects no other AID', () => {
  const key = new Uint8Array(32).fill(3);
  const aid = nativeAid(key);
  const bytes = aidToBytes(aid);
  for (let i = 0; i < 2; i++) {
    aidToBytes(aid).fill(0);
    nativePublicKey(aid)?.fill(0);
    assert.deepEqual(aidToBytes(aid), bytes);
    assert.equal(aidFromBytes(bytes), aid);
  }
  key[0] = 4;
  assert.notEqual(nativeAid(key), aid);
  const [paralism, ethereum] = [aidOf('paralism', key.subarray(12)), aidOf('ethereum', key.subarray(12))];
  assert.deepEqual([schemeOf(paralism), schemeOf(ethereum)], ['paralism', 'ethereum']);
});

const wallet = fc
  .tuple(fc.constantFrom<AidScheme>('paralism', 'ethereum'), fc.uint8Array({ minLength: 20, maxLength: 20 }))
  .map(([scheme, body]) => aidOf(scheme, body));
const native = fc.uint8Array({ minLength: 31, maxLength: 31 }).map((y) => nativeAid(Uint8Array.from([2, ...y])));
const aid = fc.oneof(wallet, native);

test('text and bytes lead back to each other', () => {
  fc.assert(
    fc.property(aid, (a) => {
      assert.equal(parseAid(a), a);
      assert.equal(aidFromBytes(aidToBytes(a)), a);
    }),
    { seed: 11, numRuns: 300 },
  );
});

test('one mistyped character is always noticed', () => {
  const character = fc.constantFrom(...Array.from('0123456789abcdefghijklmnopqrstuvwxyz'));
  fc.assert(
    fc.property(native, fc.nat(), character, (a, position, typed) => {
      const at = position % a.length;
      if (a[at] === typed) return;
      assert.throws(() => parseAid(a.slice(0, at) + typed + a.slice(at + 1)), failsWith('bad_aid'));
    }),
    { seed: 12, numRuns: 1000 },
  );
});

test('any text and bytes give bad_aid or a canonical AID', () => {
  const near = fc
    .tuple(aid, fc.nat(), fc.string({ unit: 'binary', maxLength: 2 }), fc.nat(2))
    .map(([a, at, put, cut]) => a.slice(0, at % a.length) + put + a.slice((at % a.length) + cut));
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 120 }), fc.base64String({ maxLength: 110 }), near);
  fc.assert(
    fc.property(text, (t) => {
      try {
        const parsed = parseAid(t);
        assert.equal(parseAid(parsed), parsed);
      } catch (error) {
        assert.ok(error instanceof SvcError && error.code === 'bad_aid');
      }
    }),
    { seed: 13, numRuns: 2000 },
  );
  const first = fc.constantFrom(0xa0, 0xa1, 0xa2, 0xa3, 0x00);
  fc.assert(
    fc.property(first, fc.uint8Array({ maxLength: 40 }), (version, body) => {
      const bytes = Uint8Array.from([version, ...body]);
      try {
        assert.deepEqual(aidToBytes(aidFromBytes(bytes)), bytes);
      } catch (error) {
        assert.ok(error instanceof SvcError && error.code === 'bad_aid');
      }
    }),
    { seed: 14, numRuns: 2000 },
  );
});
