import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ERRORS } from '../../src/foundation/errors.ts';
import { operations } from '../../src/operations/index.ts';
import type { Declaration } from '../../src/operations/operation.ts';
import { restPage } from '../../tools/rest-doc.ts';
import { type Schema, shapeText } from '../../tools/rest-shapes.ts';

test('docs/reference/rest.md is up to date', () => {
  const page = readFileSync(new URL('../../docs/reference/rest.md', import.meta.url), 'utf8');
  assert.ok(page === restPage(), 'run "npm run docs"');
});

test('every operation and every error code is on the page', () => {
  const page = restPage();
  const table: readonly Declaration[] = Object.values(operations);
  for (const { name, method, path } of table.filter((one) => one.path !== undefined))
    assert.ok(page.includes(`### ${method} ${path}\n`), name);
  for (const code of Object.keys(ERRORS)) assert.match(page, new RegExp(`\\|\\d[^|]*\\|\\d\\|[^|]*\`${code}\``), code);
  assert.ok(!page.includes('[object Object]') && !page.includes('undefined'));
});

test('shows the shape of a response', () => {
  const schema = {
    type: 'object',
    required: ['aid', 'path', 'list', 'any', 'map'],
    properties: {
      aid: { type: 'string', format: 'aid' },
      path: { anyOf: [{ enum: ['direct', 'lan'] }, { type: 'null' }] },
      at: { type: 'string', format: 'date-time' },
      list: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } },
      any: { type: 'object', properties: {} },
      map: { type: 'object', patternProperties: { '.*': { type: 'number' } } },
      shared: { type: 'object', title: 'Agent', properties: { a: { const: 1 } } },
    },
  };
  const nameOf = ({ title }: Schema): string | undefined => (typeof title === 'string' ? title : undefined);
  assert.equal(
    shapeText(schema, nameOf),
    '{\n  aid:AID, path:"direct"|"lan"|null, at?:timestamp, list:[{n?:integer}], any:object, map:{…:number},\n  shared?:Agent\n}',
  );
  assert.equal(shapeText({ properties: { ok: { const: true } }, required: ['ok'] }, nameOf), '{ok:true}');
});
