import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { declare } from '../../../src/operations/declare.ts';
import { bind } from '../../../src/operations/operation.ts';
import { closed } from '../../../src/operations/schemas.ts';
import { startWorld } from './support.ts';

test('a path is served regardless of earlier requests and of its spelling', async (t) => {
  const world = await startWorld(t);
  const both = await Promise.all([world.request('GET', '/ping?n=1'), world.request('GET', '/ping?n=2')]);
  assert.deepEqual(
    both.map(({ status }) => status),
    [200, 200],
  );
  for (const path of ['/%70ing?n=3', '/%70%69%6e%67?n=4']) assert.equal((await world.request('GET', path)).status, 200);
  assert.equal((await world.request('HEAD', '/ping')).status, 200);
});

test('an unmatched request is 404 or 405 according to all paths of the API', async (t) => {
  const world = await startWorld(t);
  for (const [method, path, status] of [
    ['GET', '//ping', 404],
    ['GET', '/ping/', 404],
    ['GET', '/things', 404],
    ['DELETE', '/secret', 405],
    ['DELETE', '/%73ecret', 405],
    ['GET', '/nothing/at/all', 404],
    ['GET', '/ping;n=1', 404],
    ['GET', '/%zz', 400],
  ] as const) {
    const answer = await world.request(method, path);
    assert.equal(answer.status, status, `${method} ${path}`);
  }
});

const Result = Type.Object({ by: Type.String(), got: Type.String() });

const items = declare(
  { tag: 'Test' },
  {
    read: {
      summary: 'Reads.',
      route: 'GET /items/{id}',
      params: closed({ id: Type.String() }),
      query: closed({ n: Type.Optional(Type.Array(Type.Integer())) }),
      output: Result,
    },
    remove: {
      summary: 'Removes.',
      route: 'DELETE /items/{name}',
      params: closed({ name: Type.String() }),
      output: Result,
    },
    newest: { summary: 'The newest item.', route: 'GET /items/new', output: Result },
    part: {
      summary: 'A part.',
      route: 'GET /items/{id}/new',
      params: closed({ id: Type.String() }),
      output: Result,
    },
  },
);

test('the most precise path serves a request, with its own parameter names', async (t) => {
  const operations = bind(items, {
    read: async ({ id, n }) => ({ by: 'read', got: n === undefined ? id : `${id} ${n.join('+')}` }),
    remove: async ({ name }) => ({ by: 'remove', got: name }),
    newest: async () => ({ by: 'newest', got: '' }),
    part: async ({ id }) => ({ by: 'part', got: id }),
  });
  const world = await startWorld(t, { operations });
  const json = { headers: { 'content-type': 'application/json' } };
  for (const [method, path, by, got] of [
    ['GET', '/items/new', 'newest', ''],
    ['GET', '/items/n%65w', 'newest', ''],
    ['GET', '/items/newer', 'read', 'newer'],
    ['GET', '/items/a%2Fb%20c', 'read', 'a/b c'],
    ['GET', '/items/%2525', 'read', '%25'],
    ['GET', '/items/x?n=1&n=2', 'read', 'x 1+2'],
    ['GET', '/items/x?n=%31', 'read', 'x 1'],
    ['GET', '/items/new/new', 'part', 'new'],
    ['DELETE', '/items/y', 'remove', 'y'],
  ] as const) {
    const { json: result } = await world.request(method, path, method === 'GET' ? {} : json);
    assert.deepEqual(result, { by, got }, `${method} ${path}`);
  }
  // The general path has DELETE, but the more precise one decides.
  const refused = await world.request('DELETE', '/items/new', json);
  assert.deepEqual([refused.status, refused.headers.allow], [405, 'GET, HEAD']);
  assert.equal((await world.request('OPTIONS', '/items/y')).headers.allow, 'DELETE, GET, HEAD');
  for (const path of ['/items/', '/items//new', '/items', '/items/y/other'])
    assert.equal((await world.request('GET', path)).status, 404, path);
});
