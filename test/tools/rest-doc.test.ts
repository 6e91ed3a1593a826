import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Compile } from 'typebox/compile';
import { ERRORS } from '../../src/foundation/errors.ts';
import { operations } from '../../src/operations/index.ts';
import { compileInput } from '../../src/operations/input.ts';
import type { Declaration } from '../../src/operations/operation.ts';
import { requestOf, restPage, typeText } from '../../tools/rest-doc.ts';
import { requestText, type Schema } from '../../tools/rest-examples.ts';
import { shapeText } from '../../tools/rest-shapes.ts';

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

test('describes types in a few words', () => {
  assert.equal(typeText({ type: 'array', items: { type: 'string', format: 'aid' } }), 'list of AID');
  assert.equal(typeText({ anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] }), 'timestamp or null');
  assert.equal(typeText({ const: 'ok' }), '`ok`');
  assert.equal(typeText({ enum: ['a', 'b'] }), '`a`, `b`');
  assert.equal(typeText({}), 'any');
});

test('every example of a request is valid input of its operation', () => {
  const table: readonly Declaration[] = Object.values(operations);
  for (const declaration of table) {
    const { params, query, body } = requestOf(declaration);
    const texts = Object.fromEntries(
      [params, query].flatMap((part) => Object.entries(part).map(([name, value]) => [name, String(value)])),
    );
    const own = (part: object) => Object.fromEntries(Object.keys(part).map((name) => [name, texts[name]]));
    const raw = { params: own(params), query: own(query), body };
    assert.doesNotThrow(() => compileInput(declaration)(raw), `${declaration.name}: ${JSON.stringify(raw)}`);
    const shown = Compile(declaration.shownBody ?? declaration.body).Errors(body);
    assert.deepEqual(shown, [], declaration.name);
  }
});

test('shows requests in one line, with cut AIDs and hashes', () => {
  const { chatRead, mailboxSend } = operations;
  assert.match(
    requestText('GET', chatRead.path ?? '', requestOf(chatRead)),
    /^GET \/agents\/aid1…\/chat\/peers\/aid1…\?after_seq=\d+&wait_s=\d+$/,
  );
  assert.equal(
    requestText('POST', mailboxSend.path ?? '', requestOf(mailboxSend)),
    'POST /agents/aid1…/mailbox/send {"recipient":"aid1…","text":"Hello"}',
  );
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
