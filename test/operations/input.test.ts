import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { SHA256_PATTERN } from '../../src/foundation/domain/objects.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { nativeAid } from '../../src/foundation/identity/aid.ts';
import { operations } from '../../src/operations/index.ts';
import { compileInput } from '../../src/operations/input.ts';
import type { Declaration } from '../../src/operations/operation.ts';
import { AidText, AnyObject, closed, NONE } from '../../src/operations/schemas.ts';

const aid = nativeAid(new Uint8Array(32).fill(7));
const read = compileInput({
  params: closed({ aid: AidText, n: Type.Optional(Type.Integer({ minimum: 1 })) }),
  query: closed({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
    ratio: Type.Optional(Type.Number()),
    loud: Type.Optional(Type.Boolean()),
    tag: Type.Optional(Type.Array(Type.String())),
    id: Type.Optional(Type.Array(Type.Integer())),
  }),
  body: closed({
    to: Type.Optional(Type.Array(AidText)),
    peer: Type.Optional(AidText),
    filter: Type.Optional(closed({ tags: Type.Array(Type.String()) })),
    when: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
    meta: Type.Optional(AnyObject),
  }),
});

function problem(raw: { params?: object; query?: object; body?: unknown }): SvcError {
  try {
    read({ params: { aid, ...raw.params }, query: { ...raw.query }, body: raw.body });
  } catch (error) {
    if (error instanceof SvcError) return error;
    throw error;
  }
  throw new Error('the input was accepted');
}

test('the parts become one input; text of the path and query gets its type', () => {
  const input = read({
    params: { aid: ` ${aid.toUpperCase()} `, n: '7' },
    query: { limit: '50', ratio: '-0.5', loud: 'false', tag: 'one', id: ['1', '2'] },
    body: { to: [aid.toUpperCase()], peer: aid, meta: { a: [1] } },
  });
  const query = { limit: 50, ratio: -0.5, loud: false, tag: ['one'], id: [1, 2] };
  assert.deepEqual(input, { aid, n: 7, ...query, to: [aid], peer: aid, meta: { a: [1] } });
});

test('a pasted ID is cleaned', () => {
  const id = 'ab'.repeat(32);
  const Hex = Type.String({ pattern: SHA256_PATTERN });
  const ids = compileInput({
    params: closed({ id: Hex }),
    query: NONE,
    body: closed({ ids: Type.Optional(Type.Array(Hex)), text: Type.Optional(Type.String()) }),
  });
  const pasted = [id.toUpperCase(), `${id}\n`, `"${id}".`, `\u200b${id}`, `${id.slice(0, 20)}\r\n  ${id.slice(20)}`];
  for (const one of pasted)
    assert.deepEqual(
      ids({ params: { id: one }, query: {}, body: { ids: [one], text: one } }),
      { id, ids: [id], text: one },
      JSON.stringify(one),
    );
  for (const bad of [`${id}0`, `0x${id}`, id.slice(1), 5, null])
    assert.throws(() => ids({ params: { id: bad }, query: {}, body: {} }), { code: 'invalid_request' });
});

test('a body member named like a path parameter has its own place, and cannot replace it', () => {
  const twins = compileInput({ params: closed({ aid: AidText }), query: NONE, body: closed({ aid: AidText }) });
  const other = nativeAid(new Uint8Array(32).fill(9));
  const input = twins({ params: { aid }, query: {}, body: { aid: other.toUpperCase() } });
  assert.deepEqual(input, { aid, body_aid: other });
  assert.throws(() => twins({ params: { aid }, query: {}, body: { aid, body_aid: other } }), {
    code: 'invalid_request',
  });
});

test('without a body, the input comes from path and query', () => {
  assert.deepEqual(read({ params: { aid }, query: {}, body: undefined }), { aid });
});

test('text that is not a plain number or boolean is refused', () => {
  for (const limit of ['1e1', '0x10', ' 5', '5 ', '', '1.0', '+3', '9'.repeat(16), ['1', '2'], '51', '0'])
    assert.equal(problem({ query: { limit } }).code, 'invalid_request', String(limit));
  for (const loud of ['1', 'TRUE', 'yes', '']) assert.equal(problem({ query: { loud } }).code, 'invalid_request');
});

test('an error names the member, never the value', () => {
  const cases: [Parameters<typeof problem>[0], string, string][] = [
    [{ query: { limit: 'secret-value' } }, 'query', '/limit'],
    [{ query: { limt: '5' } }, 'query', '/limt'],
    [{ body: { tos: 'secret-value' } }, 'body', '/tos'],
    [{ body: { filter: {} } }, 'body', '/filter/tags'],
    [{ body: { filter: { tags: ['a', 5] } } }, 'body', '/filter/tags/1'],
    [{ body: { filter: { tags: [], secret: 'secret-value' } } }, 'body', '/filter/secret'],
    [{ body: { when: 'secret-value' } }, 'body', '/when'],
    [{ body: [] }, 'body', ''],
    [{ body: null }, 'body', ''],
    [{ body: 'secret-value' }, 'body', ''],
    [{ params: { n: '0' } }, 'path', '/n'],
  ];
  for (const [raw, part, path] of cases) {
    const error = problem(raw);
    assert.equal(error.code, 'invalid_request');
    assert.deepEqual([error.details?.['in'], error.details?.['path']], [part, path], JSON.stringify(raw));
    assert.ok(!JSON.stringify([error.message, error.details]).includes('secret-value'));
  }
});

test('a malformed AID of any length is bad_aid in every place', () => {
  assert.equal(problem({ params: { aid: 'aid1nonsense' } }).code, 'bad_aid');
  assert.equal(problem({ params: { aid: 'a'.repeat(10_000) } }).code, 'bad_aid');
  const inList = problem({ body: { to: [aid, 'nobody'] } });
  assert.deepEqual([inList.code, inList.details?.['in'], inList.details?.['path']], ['bad_aid', 'body', '/to/1']);
  assert.equal(problem({ body: { to: [5] } }).code, 'invalid_request');
});

test('an optional member that is null or empty is omitted, and a required one is refused', () => {
  const wide = compileInput({
    params: NONE,
    query: NONE,
    body: closed({
      name: Type.String({ minLength: 1 }),
      peer: Type.Optional(AidText),
      count: Type.Optional(Type.Integer()),
      text: Type.Optional(Type.String()),
      end: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
      filter: Type.Optional(closed({ tags: Type.Optional(Type.Array(Type.String())) })),
      all: Type.Optional(Type.Array(closed({ aid: Type.String(), skill: Type.Optional(Type.String()) }))),
    }),
  });
  const input = (body: object) => wide({ params: {}, query: {}, body });
  const nothing = { peer: null, count: null, text: null, filter: null, all: null };
  assert.deepEqual(input({ name: 'x', ...nothing }), { name: 'x' });
  assert.deepEqual(input({ name: 'x', peer: '', count: '' }), { name: 'x' });
  assert.deepEqual(
    input({ name: 'x', text: '', end: null }),
    { name: 'x', text: '', end: null },
    'the schema accepts them',
  );
  assert.deepEqual(input({ name: 'x', filter: { tags: null }, all: [{ aid: 'a', skill: null }] }), {
    name: 'x',
    filter: {},
    all: [{ aid: 'a' }],
  });
  for (const body of [{ name: null }, { name: '' }, { name: 'x', all: [{ aid: null }] }, { name: 'x', peer: [null] }])
    assert.throws(() => input(body), { code: 'invalid_request' }, JSON.stringify(body));
});

test('prototype members are no input', () => {
  const inherited = compileInput({ params: NONE, query: NONE, body: closed({ name: Type.String() }) });
  const body: unknown = Object.create({ name: 'inherited' });
  assert.throws(() => inherited({ params: {}, query: {}, body }), { code: 'invalid_request' });
  const own: unknown = JSON.parse('{"name":"x","__proto__":{"polluted":1}}');
  assert.throws(() => inherited({ params: {}, query: {}, body: own }), { code: 'invalid_request' });
});

test('a body has numbers and booleans as JSON values, in every operation: text is refused', () => {
  let checked = 0;
  for (const { name, body } of Object.values<Declaration>(operations)) {
    for (const [key, schema] of Object.entries(body.properties)) {
      const type: unknown = Reflect.get(schema, 'type');
      if (type !== 'integer' && type !== 'number' && type !== 'boolean') continue;
      const read = compileInput({ params: NONE, query: NONE, body: closed({ [key]: schema }) });
      const text = type === 'boolean' ? 'true' : '1';
      assert.throws(
        () => read({ params: {}, query: {}, body: { [key]: text } }),
        (error) => error instanceof SvcError && error.code === 'invalid_request',
        `${name} ${key}`,
      );
      checked++;
    }
  }
  assert.ok(checked > 20, `${checked} members`);
});
