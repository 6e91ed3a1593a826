import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  asMap,
  type CborValue,
  decodeCbor,
  encodeCbor,
  isBytes,
  isUint,
  MAX_CBOR_DEPTH,
  MAX_CBOR_ITEMS,
} from '../../src/foundation/cbor.ts';
import { hex } from '../support/vectors.ts';

const LIMIT = 100_000;

/** JSON values and bytes, with any well-formed Unicode text. */
const value = fc.letrec<{ value: CborValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(null, true, false),
    fc.maxSafeInteger(),
    fc.string({ unit: 'binary' }),
    fc.uint8Array(),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(fc.string({ unit: 'binary', maxLength: 30 }), tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
})).value;

test('encoded values decode to the same values', () => {
  fc.assert(
    fc.property(value, (v) => {
      assert.deepEqual(decodeCbor(encodeCbor(v), LIMIT), v);
    }),
    { seed: 1, numRuns: 500 },
  );
});

test('the order of keys does not change the encoding', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.nat(), { noNullPrototype: true }), (map) => {
      const reversed = Object.fromEntries(Object.entries(map).reverse());
      assert.deepEqual(encodeCbor(map), encodeCbor(reversed));
    }),
    { seed: 2 },
  );
});

test('random bytes are refused with RangeError or are the one encoding of a value', () => {
  const random = fc.uint8Array({ maxLength: 60 });
  const mutated = fc
    .tuple(value, fc.nat(), fc.nat(255))
    .map(([v, at, byte]) => encodeCbor(v).map((old, index, all) => (index === at % all.length ? byte : old)));
  fc.assert(
    fc.property(fc.oneof(random, mutated), (bytes) => {
      let decoded: unknown;
      try {
        decoded = decodeCbor(bytes, LIMIT);
      } catch (error) {
        assert.ok(error instanceof RangeError);
        return;
      }
      assert.deepEqual(encodeCbor(decoded as CborValue), new Uint8Array(bytes));
    }),
    { seed: 3, numRuns: 5000 },
  );
});

test('other spellings of a value are refused', () => {
  const others = {
    'an integer in two bytes': '1801',
    'an integer as a float': 'f93c00',
    'minus zero': 'f98000',
    'a float that is not the shortest': 'fb3ff8000000000000',
    'an indefinite array': '9f01ff',
    'an indefinite text': '7f6161ff',
    'an integer above 2^53': '1b0020000000000001',
    undefined: 'f7',
    NaN: 'f97e00',
    infinity: 'f97c00',
    'a tag': 'c001',
    'unsorted keys': 'a2616201616101',
    'the longer key first': 'a262616101616201',
    'a key twice': 'a2616101616102',
    'a key that is a number': 'a10101',
    'text that is no UTF-8': '61ff',
    'half a surrogate pair in text': '63eda080',
    'a value behind the value': '0101',
    nothing: '',
    'an array without its items': '8201',
    'an array of 2^53 items': '9b001fffffffffffff00',
    'a text of 2^53 bytes': '7b001fffffffffffff00',
  };
  for (const [why, text] of Object.entries(others)) assert.throws(() => decodeCbor(hex(text), LIMIT), RangeError, why);
});

test('depth and size are limited', () => {
  const nested = (depth: number) => Uint8Array.from({ length: depth + 1 }, (_, index) => (index < depth ? 0x81 : 0));
  assert.doesNotThrow(() => decodeCbor(nested(MAX_CBOR_DEPTH), LIMIT));
  assert.throws(() => decodeCbor(nested(MAX_CBOR_DEPTH + 1), LIMIT), RangeError);
  assert.throws(() => decodeCbor(nested(LIMIT - 1), LIMIT), RangeError);
  const flat = encodeCbor(Array.from({ length: 100 }, () => [[], { a: [] }]));
  assert.doesNotThrow(() => decodeCbor(flat, flat.length));
  assert.throws(() => decodeCbor(flat, flat.length - 1), RangeError);
});

test('a byte order mark is kept, and text without UTF-8 is not encoded', () => {
  assert.deepEqual(decodeCbor(encodeCbor(['\ufeff', '\ufeffx']), LIMIT), ['\ufeff', '\ufeffx']);
  assert.throws(() => encodeCbor('\ud800'), RangeError);
  assert.throws(() => encodeCbor({ '\udfff': 1 }), RangeError);
});

test('decoded bytes do not share the memory of their source', () => {
  const source = Buffer.from('4401020304', 'hex');
  const decoded = decodeCbor(source, LIMIT);
  source.fill(0);
  assert.deepEqual(decoded, Uint8Array.of(1, 2, 3, 4));
});

test('omits undefined members', () => {
  assert.deepEqual(encodeCbor({ a: 1, b: undefined }), encodeCbor({ a: 1 }));
});

test('asMap accepts exactly the given members', () => {
  assert.deepEqual(asMap({ a: 1, b: 2 }, ['a'], ['b', 'c']), { a: 1, b: 2 });
  assert.deepEqual(asMap({ a: 1, z: 2 }, ['a'], 'any'), { a: 1, z: 2 });
  assert.equal(asMap({ a: 1, z: 2 }, ['a'], ['b']), null);
  assert.equal(asMap({ b: 2 }, ['a'], ['b']), null);
  assert.equal(asMap({}, ['toString']), null);
  assert.equal(asMap(decodeCbor(hex('a1695f5f70726f746f5f5fa0'), LIMIT), [], ['a']), null);
  for (const other of [null, 1, 'a', [], Uint8Array.of(1)]) assert.equal(asMap(other, []), null);
});

test('isUint and isBytes', () => {
  assert.ok(isUint(0) && isUint(Number.MAX_SAFE_INTEGER) && isUint(5, 5));
  for (const other of [-1, 1.5, Number.NaN, 2 ** 53, '1', null, 1n]) assert.ok(!isUint(other));
  assert.ok(!isUint(6, 5));
  assert.ok(isBytes(new Uint8Array(3)) && isBytes(new Uint8Array(3), 3));
  assert.ok(!isBytes(new Uint8Array(3), 4) && !isBytes([1, 2, 3]) && !isBytes('abc'));
});

test('limits the number of items independently of the bytes', () => {
  const list = (length: number) => encodeCbor(Array.from({ length }, () => 0));
  // The list itself is one of them.
  assert.ok(decodeCbor(list(MAX_CBOR_ITEMS - 1), LIMIT));
  assert.throws(() => decodeCbor(list(MAX_CBOR_ITEMS), LIMIT), RangeError);
  const pairs = Object.fromEntries(Array.from({ length: MAX_CBOR_ITEMS / 2 }, (_, i) => [String(i), 0]));
  assert.throws(() => decodeCbor(encodeCbor([pairs]), LIMIT), RangeError);
});
