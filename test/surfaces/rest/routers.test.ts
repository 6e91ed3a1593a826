import assert from 'node:assert/strict';
import { test } from 'node:test';
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
    ['DELETE', '/%73ecret', 404],
    ['GET', '/nothing/at/all', 404],
    ['GET', '/ping;n=1', 404],
    ['GET', '/%zz', 400],
  ] as const) {
    const answer = await world.request(method, path);
    assert.equal(answer.status, status, `${method} ${path}`);
  }
});
