import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeCbor } from '../../src/foundation/cbor.ts';
import {
  bool,
  bytes,
  CborMap,
  flag,
  fromBytes,
  hex,
  list,
  nullable,
  optional,
  orElse,
  text,
  toBytes,
  tuple,
  uint,
  union,
  type ValueOf,
  where,
  word,
} from '../../src/foundation/cbor-map.ts';

const PLACE = new CborMap({ x: ['x', uint(9)], note: ['o', optional(text((value) => value.length < 3))] });
const THING = new CborMap(
  {
    id: ['i', hex(2)],
    size: ['s', nullable(uint())],
    name: [
      'n',
      orElse(
        text(() => true),
        '',
      ),
    ],
    parts: ['p', orElse(list(bytes(1), 2), [])],
    pair: ['t', tuple({ a: uint(), b: bool })],
    state: ['w', word(['new', 'old'])],
    isLate: ['f', flag],
    place: [null, PLACE],
  },
  { version: 3 },
);
type Thing = ValueOf<typeof THING>;

const FULL: Thing = {
  id: 'ab01',
  size: 7,
  name: 'n',
  parts: [Uint8Array.of(1)],
  pair: { a: 1, b: true },
  state: 'old',
  isLate: true,
  place: { x: 1, note: 'no' },
};
const WIRE = { v: 3, i: Uint8Array.of(0xab, 1), t: [1, true], w: 1, x: 1 };
const read = (members: Parameters<typeof encodeCbor>[0]) => fromBytes(THING, encodeCbor(members), 99);

test('a declared map has one encoding, and omits what is empty', () => {
  assert.deepEqual(fromBytes(THING, toBytes(THING, FULL), 99), FULL);
  const bare = { ...FULL, size: null, name: '', parts: [], isLate: false, place: { x: 1 } };
  assert.deepEqual(toBytes(THING, bare), encodeCbor(WIRE));
  assert.deepEqual(read(WIRE), bare);
});

test('every member is checked', () => {
  for (const change of [
    { v: 2 },
    { i: Uint8Array.of(1) },
    { s: -1 },
    { n: 4 },
    { p: [Uint8Array.of(1), Uint8Array.of(1), Uint8Array.of(1)] },
    { t: [1] },
    { t: [1, 1] },
    { w: 2 },
    { f: false },
    { x: 10 },
    { o: 'long' },
    { y: 1 },
    { x: undefined },
  ])
    assert.equal(read({ ...WIRE, ...change }), null, JSON.stringify(change));
  assert.equal(fromBytes(THING, encodeCbor(WIRE), 9), null, 'too long');
});

test('an open map ignores other members, and a condition covers the whole map', () => {
  const open = new CborMap({ a: ['a', uint()], b: ['b', uint()] }, { isOpen: true, isValid: ({ a, b }) => a < b });
  assert.deepEqual(fromBytes(open, encodeCbor({ a: 1, b: 2, c: 3 }), 99), { a: 1, b: 2 });
  assert.equal(fromBytes(open, encodeCbor({ a: 2, b: 2 }), 99), null);
  const even = where(uint(), (n) => n % 2 === 0);
  assert.deepEqual([fromBytes(even, encodeCbor(2), 9), fromBytes(even, encodeCbor(3), 9)], [2, null]);
});

test('a map has one of several forms', () => {
  const message = union('kind', 'k', { ask: [1, { n: ['n', uint()] }], end: [2, {}] });
  const ask: ValueOf<typeof message> = { kind: 'ask', n: 5 };
  assert.deepEqual(toBytes(message, ask), encodeCbor({ k: 1, n: 5 }));
  assert.deepEqual(fromBytes(message, toBytes(message, ask), 99), ask);
  assert.deepEqual(fromBytes(message, encodeCbor({ k: 2, other: 1 }), 99), { kind: 'end' });
  for (const bad of [{ k: 3 }, { n: 5 }, { k: 1 }, { k: '1', n: 5 }])
    assert.equal(fromBytes(message, encodeCbor(bad), 99), null);
});
