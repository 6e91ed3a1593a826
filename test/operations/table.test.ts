import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isErrorCode } from '../../src/foundation/errors.ts';
import { operations, streams } from '../../src/operations/index.ts';
import { bodyInputKey, type Declaration, isOpen } from '../../src/operations/operation.ts';

const table: readonly [string, Declaration][] = Object.entries(operations);

/** Operations that check their body in their handler. */
const OPEN_BODIES = new Set(['configPatch', 'updateApply']);

test('each declaration has its own name as key, and names and summaries have the right form', () => {
  for (const [key, { name, summary }] of [...table, ...Object.entries(streams)]) {
    assert.equal(name, key);
    assert.match(name, /^[a-z][a-zA-Z0-9]*$/);
    assert.match(summary, /^[A-Z`].*\.$/s, name);
  }
});

test('the declared path parameters are in the path', () => {
  for (const [name, { path, params }] of table) {
    const inPath = [...(path ?? '').matchAll(/\{(\w+)\}/g)].map(([, parameter = '']) => parameter);
    if (path !== undefined) assert.deepEqual(Object.keys(params.properties).sort(), inPath.sort(), name);
  }
});

test('every part of a request has its own place in the flat input', () => {
  for (const [name, { params, query, body }] of table) {
    const fromBody = Object.keys(body.properties).map((key) => bodyInputKey(key, params));
    const all = [...Object.keys(params.properties), ...Object.keys(query.properties), ...fromBody];
    assert.equal(new Set(all).size, all.length, name);
  }
});

test('a request refuses unknown keys at every described level', () => {
  const walk = (schema: unknown, where: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const properties: unknown = Reflect.get(schema, 'properties');
    if (typeof properties === 'object' && properties !== null && Object.keys(properties).length > 0)
      assert.equal(Reflect.get(schema, 'additionalProperties'), false, where);
    for (const [key, inner] of Object.entries(schema)) walk(inner, `${where}/${key}`);
  };
  for (const [name, { params, query, body }] of table) {
    for (const part of [params, query, body]) {
      if (OPEN_BODIES.has(name) && part === body) continue;
      assert.ok(!isOpen(part), name);
      walk(part, name);
    }
  }
});

test('reads have no body; every operation with an AID may return bad_aid', () => {
  for (const [name, { method, body, permission, errors }] of table) {
    if (method === 'GET') assert.equal(Object.keys(body.properties).length, 0, name);
    if (permission === 'read' || permission === 'local_only') continue;
    if (permission === 'write') assert.notEqual(method, 'GET', name);
    for (const code of errors) assert.ok(isErrorCode(code), `${name}: ${code}`);
  }
});

test('two operations never share a route or a tool', () => {
  const routes = table.flatMap(([, { method, path }]) =>
    path === undefined ? [] : [`${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`],
  );
  assert.equal(new Set(routes).size, routes.length);
  const tools = table.flatMap(([, { tool }]) => (tool ? [tool.name] : []));
  assert.equal(new Set(tools).size, tools.length);
});
