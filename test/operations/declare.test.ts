import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declare, declareStreams } from '../../src/operations/declare.ts';
import { AidParams, NONE, Ok } from '../../src/operations/schemas.ts';

const COMMON = { params: AidParams, heartbeat: true, errors: ['not_found'], tag: 'Test' } as const;

const table = declare(COMMON, {
  look: { summary: 'Looks.', route: 'GET /things/{aid}', output: Ok },
  ask: { summary: 'Asks.', route: 'POST /things/{aid}', permission: 'read', output: Ok },
  change: { summary: 'Changes.', route: 'PUT /things/{aid}', output: Ok, errors: [] },
  here: { summary: 'Acts here.', route: 'DELETE /here', params: NONE, permission: 'local_only', output: Ok },
  tool: { summary: 'Acts.', route: 'POST', heartbeat: 'local_aid', output: Ok },
});

test('omitted members come from the table, and members omitted there get the defaults', () => {
  const { name, params, query, body, errors, tag, status } = table.look;
  assert.deepEqual(
    { name, errors, tag, status },
    { name: 'look', errors: ['not_found'], tag: 'Test', status: undefined },
  );
  assert.deepEqual([params, query, body], [AidParams, NONE, NONE]);
  assert.deepEqual([table.change.errors, table.here.params], [[], NONE]);
});

test('a route is a method and a path, or a method that only MCP offers', () => {
  const routes = Object.values(table).map(({ method, path }) => [method, path]);
  assert.deepEqual(routes, [
    ['GET', '/things/{aid}'],
    ['POST', '/things/{aid}'],
    ['PUT', '/things/{aid}'],
    ['DELETE', '/here'],
    ['POST', undefined],
  ]);
});

test('by default GET reads and other methods write, and read-only operations are no heartbeats', () => {
  const kinds = Object.values(table).map(({ permission, heartbeat }) => [permission, heartbeat]);
  assert.deepEqual(kinds, [
    ['read', false],
    ['read', false],
    ['write', true],
    ['local_only', true],
    ['write', 'local_aid'],
  ]);
});

test('a stream is named after its key, and overrides its table', () => {
  const common = {
    methods: ['GET'],
    params: NONE,
    query: NONE,
    produces: '*/*',
    permission: 'read',
    tag: 'Test',
  } as const;
  const { one, two } = declareStreams(common, {
    one: { summary: 'One.', path: '/one', errors: [] },
    two: { summary: 'Two.', path: '/two', errors: [], permission: 'peer' },
  });
  assert.deepEqual(one, { ...common, name: 'one', summary: 'One.', path: '/one', errors: [] });
  assert.equal(two.permission, 'peer');
});
