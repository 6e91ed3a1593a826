import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { isObject, memberOf, parseJson, readJson } from '../../src/foundation/json.ts';

/** `depth` arrays inside each other. */
function nested(depth: number, inner = ''): string {
  return '['.repeat(depth) + inner + ']'.repeat(depth);
}

/** Text that is not JSON, is too deep, or has a forbidden key. */
const REFUSED = [
  ...['', ' ', '{', '[1,]', '{"a":1,}', "{'a':1}", '01', 'NaN', 'undefined', '"\n"', '{}{}', '\uFEFF{}', '// a\n1'],
  ...[nested(65), '{"a":'.repeat(65) + '1' + '}'.repeat(65), `${nested(1)}${nested(65)}`],
  ...['{"__proto__":1}', '{"\\u005f_proto__":1}', '{"a":[{"__proto__":{}}]}', '[[{"b":{"__pr\\u006fto__":null}}]]'],
];

test('accepts the same input as JSON.parse', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      assert.deepEqual(parseJson(text), JSON.parse(text));
      assert.deepEqual(readJson(text), JSON.parse(text));
    }),
    { seed: 2 },
  );
  for (const text of ['null', ' {"constructor":{"prototype":{}}} ', '"__proto__"', '{"a":"__proto__"}', '["\\u0041"]'])
    assert.deepEqual(parseJson(text), JSON.parse(text), text);
});

test('rejects invalid and dangerous JSON without quoting it', () => {
  for (const text of REFUSED) {
    assert.throws(() => parseJson(text), { code: 'invalid_json' }, text);
    assert.equal(readJson(text), undefined, text);
  }
  assert.throws(
    () => parseJson('{"secret": hunter2}'),
    (error) => !String(error).includes('hunter2'),
  );
  assert.throws(() => parseJson(nested(65)), /more than 64 levels deep/);
  assert.throws(() => parseJson('{"__proto__":1}'), /"__proto__"/);
});

test('counts the nesting of arrays and objects, but not their number or texts', () => {
  for (const text of [
    nested(64),
    '{"a":'.repeat(64) + '1' + '}'.repeat(64),
    `[${Array.from({ length: 100 }, () => '[],{}').join()}]`,
    nested(64, `"${'['.repeat(9)}"`),
    nested(64, '"\\"["'),
    nested(64, '"\\\\"'),
    `{"${'{'.repeat(99)}":1}`,
  ])
    assert.deepEqual(parseJson(text), JSON.parse(text), text);
  assert.throws(() => parseJson(`["\\\\", ${nested(64)}]`), /deep/, 'the text ends behind an escaped backslash');
});

test('depth is looked at before anything is built', () => {
  assert.throws(() => parseJson('['.repeat(1_000_000)), /deep/);
});

test('tells objects from all else', () => {
  for (const value of [{}, { a: 1 }, Object.create(null)]) assert.equal(isObject(value), true);
  for (const value of [null, undefined, [], 'a', 1, true, () => {}]) assert.equal(isObject(value), false);
});

test('finds members along a path', () => {
  const value = { a: { b: [{ c: 0 }], n: null }, t: 'text' };
  assert.equal(memberOf(value), value);
  assert.equal(memberOf(value, 't'), 'text');
  assert.equal(memberOf(value, 'a', 'b', '0', 'c'), 0);
  assert.equal(memberOf(value, 'a', 'n'), null);
  for (const path of [['x'], ['a', 'x'], ['a', 'x', 'y'], ['a', 'n', 'x'], ['t', 'length']])
    assert.equal(memberOf(value, ...path), undefined, path.join('.'));
  for (const other of [null, undefined, 'text', 1]) assert.equal(memberOf(other, 'length'), undefined);
});
