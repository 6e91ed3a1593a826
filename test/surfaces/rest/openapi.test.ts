import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { PATCHABLE_KEYS } from '../../../src/foundation/config/schema.ts';
import { ERRORS, isErrorCode, SvcError } from '../../../src/foundation/errors.ts';
import { operations, streams } from '../../../src/operations/index.ts';
import type { Declaration } from '../../../src/operations/operation.ts';
import { pageStreams } from '../../../src/operations/pages.ts';
import { openApiDocument } from '../../../src/surfaces/rest/openapi.ts';
import { JSON_HEADERS, startWorld, testOperations } from './support.ts';

const { broken, change, echo, ping, secret } = testOperations;

interface Media {
  schema?: object;
  example?: unknown;
}
interface Item {
  operationId: string;
  summary: string;
  tags: string[];
  parameters: { name: string; in: string; required: boolean; description?: string; schema: object }[];
  requestBody?: { required: boolean; content: Record<string, Media> };
  responses: Record<string, { description: string; content: Record<string, Media> }>;
}
interface OpenApi {
  openapi: string;
  info: { version: string };
  paths: Record<string, Record<string, Item>>;
  tags: { name: string; description: string }[];
  components: { schemas: Record<string, object> };
}

function parse(value: unknown): OpenApi {
  return JSON.parse(JSON.stringify(value)) as OpenApi;
}

function check(document: OpenApi): void {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'openapi', ...document });
  const ids = new Set<string>();
  const shapes = Object.keys(document.paths).map((path) => path.replaceAll(/\{\w+\}/g, '{}'));
  assert.equal(new Set(shapes).size, shapes.length, 'paths that differ only in parameter names');
  const compile = (...pointer: string[]) => {
    const ref = pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')));
    return ajv.compile({ $ref: `openapi#/${ref.join('/')}` });
  };
  const checkMedia = (content: Record<string, Media>, ...pointer: string[]): void => {
    for (const [type, { schema, example }] of Object.entries(content)) {
      if (schema === undefined) continue;
      const validate = compile(...pointer, 'content', type, 'schema');
      if (type !== 'application/json') continue;
      assert.ok(example !== undefined, `${pointer.join(' ')}: no example`);
      assert.ok(
        validate(example),
        `${pointer.join(' ')}: ${JSON.stringify(validate.errors)} ${JSON.stringify(example)}`,
      );
    }
  };
  for (const [path, items] of Object.entries(document.paths)) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    for (const [method, item] of Object.entries(items)) {
      const where = `${method} ${path}`;
      assert.ok(!ids.has(item.operationId), `${where}: operationId ${item.operationId} twice`);
      ids.add(item.operationId);
      assert.ok(item.summary.endsWith('.'), `${where}: the summary is no sentence`);
      const declared = item.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
      assert.deepEqual(declared.toSorted(), inPath.toSorted(), where);
      for (const { schema } of item.parameters) ajv.compile(schema);
      checkMedia(item.requestBody?.content ?? {}, 'paths', path, method, 'requestBody');
      for (const [status, { description, content }] of Object.entries(item.responses)) {
        assert.ok(description.length > 0, where);
        checkMedia(content, 'paths', path, method, 'responses', status);
        for (const [, code] of description.matchAll(/`(\w+)`:/g)) {
          assert.ok(code !== undefined && isErrorCode(code), `${where}: unknown code ${code}`);
          const { status: main, otherStatuses } = ERRORS[code];
          const own = [main, ...otherStatuses].map(String).includes(status);
          assert.ok(own || (path === '/mcp/call' && status === '422'), `${where}: ${code} at ${status}`);
        }
      }
    }
  }
}

test('the document of the whole table is valid, including every schema', () => {
  const document = parse(
    openApiDocument({ version: '1', operations: Object.values(operations), streams: Object.values(streams) }),
  );
  assert.equal(document.openapi, '3.1.0');
  check(document);
  for (const { name, description } of document.tags)
    assert.ok(description.length > name.length, `${name} has a description`);
  for (const [path, items] of Object.entries(document.paths)) {
    for (const [method, { requestBody, parameters }] of Object.entries(items)) {
      const byOperation = Object.values(operations).some(
        ({ path: own, method: of }) => own === path && of.toLowerCase() === method,
      );
      if (byOperation && method !== 'get') assert.ok(requestBody, `${method} ${path} requires JSON and documents it`);
      for (const { name, schema } of parameters) {
        if (Reflect.get(schema, 'type') === 'integer')
          assert.ok('maximum' in schema && 'minimum' in schema, `${path} ${name}`);
      }
    }
  }
  const service = document.paths['/agents/{aid}/services/{service}']?.['delete']?.parameters.find(
    ({ name }) => name === 'service',
  );
  const pattern = new RegExp(String(Reflect.get(service?.schema ?? {}, 'pattern')));
  assert.deepEqual(
    ['lang.translate', 'Lang', '', 'a b', 'a..b'].map((name) => pattern.test(name)),
    [true, false, false, false, false],
  );
  const cas = document.paths['/agents/{aid}/cas']?.['post'];
  assert.deepEqual(cas?.requestBody?.content, {
    'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
  });
  assert.deepEqual(cas?.responses['200']?.content['application/json']?.schema, {
    $ref: '#/components/schemas/StoredObject',
  });
  const config = document.paths['/config']?.['patch']?.requestBody?.content['application/json']?.schema;
  assert.deepEqual(Object.keys(Reflect.get(config ?? {}, 'properties')).sort(), [...PATCHABLE_KEYS].sort());
  const opened = document.paths['/tunnel/{id}']?.['post']?.parameters[0];
  assert.match(opened?.description ?? '', /^Here `aid`, not `id`/);
  // Requests accept labels, results contain AIDs only.
  assert.equal(Reflect.get(opened?.schema ?? {}, 'pattern'), undefined);
  assert.match(String(Reflect.get(document.components.schemas['Aid'] ?? {}, 'pattern')), /aid1/);
  assert.equal(document.paths['/tunnel/{id}']?.['get']?.parameters[0]?.description, undefined);
});

test('the served document lists the served paths', async (t) => {
  const world = await startWorld(t);
  const document = parse((await world.request('GET', '/openapi.json')).json);
  assert.equal(document.info.version, '1.2.3');
  check(document);
  for (const path of ['/openapi.json', '/docs', '/metrics', '/ping', '/things/{aid}/echo'])
    assert.ok(document.paths[path] !== undefined, path);
  for (const [path, items] of Object.entries(document.paths)) {
    for (const method of Object.keys(items)) {
      const target = path.replace('{how}', 'known').replaceAll(/\{\w+\}/g, 'x');
      const answer = path === '/wait' ? undefined : await world.request(method.toUpperCase(), target);
      assert.notEqual(answer?.status, 405, `${method} ${path}`);
    }
  }
});

/** Methods that a client may try. */
const TRIED = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'];

test('every path accepts exactly the documented methods, and reports them', async (t) => {
  const stub = async (): Promise<never> => {
    throw new SvcError('gone');
  };
  const world = await startWorld(t, {
    operations: Object.values(operations).map((declaration) => ({ declaration, run: stub })),
    streams: Object.values({ ...streams })
      .filter(({ name }) => !Object.hasOwn(pageStreams, name))
      .map((declaration) => ({ declaration, handle: stub })),
  });
  const document = parse((await world.request('GET', '/openapi.json')).json);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const wrong: string[] = [];
  for (const [path, items] of Object.entries(document.paths)) {
    const named = Object.keys(items).map((method) => method.toUpperCase());
    // The gateway and MCP accept all methods.
    if (path.startsWith('/aid/') || named.includes('OPTIONS')) continue;
    const isOperation = Object.values(operations).some((one) => one.path === path && one.method === 'GET');
    const takes = new Set([...named, ...(isOperation ? ['HEAD'] : [])]);
    const target = path.replaceAll(/\{\w+\}/g, 'x');
    for (const method of TRIED) {
      const { status, headers } = await world.request(method, target, { agent, headers: JSON_HEADERS });
      const allow = (headers.allow ?? '').split(', ').sort().join();
      if (takes.has(method) ? status === 405 : status !== 405 || allow !== [...takes].sort().join())
        wrong.push(`${method} ${target}: ${status} ${allow}`);
    }
  }
  assert.deepEqual(wrong, []);
  const { status, headers } = await world.request('GET', '/agents/generate');
  assert.deepEqual([status, headers.allow], [405, 'POST']);
});

test('every operation documents the errors of its kind, and its body formats', () => {
  const { paths } = parse(
    openApiDocument({ version: '1', operations: Object.values(operations), streams: Object.values(streams) }),
  );
  const codesAt = (path: string, method: string, status: string): string[] =>
    [...(paths[path]?.[method]?.responses[status]?.description ?? '').matchAll(/`(\w+)`:/g)].map(
      ([, code = '']) => code,
    );
  for (const [path, items] of Object.entries(paths)) {
    for (const [method, { responses }] of Object.entries(items)) {
      for (const status of ['400', '401', '403', '408', '429', '431', '500'])
        assert.ok(status in responses, `${method} ${path}: ${status}`);
    }
  }
  for (const { path = '', methods, permission, accepts } of [
    ...Object.values(operations).map((one) => ({ ...one, methods: [one.method], accepts: 'application/json' })),
    ...Object.values(streams),
  ]) {
    if (methods === 'ANY' || path === '') continue;
    const spelt = Object.keys(paths).find(
      (one) => one.replaceAll(/\{\w+\}/g, '') === path.replaceAll(/\{\w+\*?\}/g, ''),
    );
    for (const method of methods) {
      const at = (status: string): string[] => codesAt(spelt ?? '', method.toLowerCase(), status);
      if (permission === 'local_only') assert.ok(at('403').includes('local_only'), `${method} ${path}: local_only`);
      if (accepts !== undefined && !['GET', 'HEAD'].includes(method))
        assert.ok(at('415').includes('unsupported_media_type'), `${method} ${path}: unsupported_media_type`);
    }
  }
  const passed = new Set(codesAt('/mcp/call', 'post', '422'));
  for (const { tool, errors } of Object.values<Declaration>(operations)) {
    if (tool !== undefined) for (const code of errors) assert.ok(passed.has(code), `${tool.name}: ${code}`);
  }
  const formsAt = (path: string): unknown => {
    const schema = paths[path]?.['post']?.requestBody?.content['application/json']?.schema ?? {};
    return Reflect.get(schema, 'oneOf');
  };
  for (const path of ['/agents/{aid}/acl/allow', '/node/remote-admin/allow'])
    assert.deepEqual(formsAt(path), [
      { required: ['aid'] },
      { required: ['secret'] },
      { required: ['generate_secret'] },
    ]);
  for (const path of [
    '/agents/{aid}/chat/send',
    '/agents/ethereum/delegation-message',
    '/agents/ethereum/proof',
    '/agents/ethereum/register',
    '/agents/paralism/proof',
    '/panel/session',
  ])
    assert.ok(Array.isArray(formsAt(path)), path);
});

test('an operation documents its input, its success response and all its error codes', () => {
  const operations = [ping, echo, change, secret, broken];
  const { paths } = parse(openApiDocument({ version: '1', operations, streams: [] }));
  const item = paths['/things/{aid}/echo']?.['post'];
  assert.ok(item);
  assert.deepEqual(Object.keys(item.responses), ['201', '400', '401', '403', '408', '413', '415', '429', '431', '500']);
  assert.match(item.responses['400']?.description ?? '', /`bad_aid`/);
  assert.equal(item.requestBody?.required, true, 'clients send no content type without a body');
  assert.match(paths['/secret']?.['get']?.responses['403']?.description ?? '', /`local_only`/);
  assert.match(paths['/broken/{how}']?.['get']?.responses['404']?.description ?? '', /`not_found`/);
  assert.equal(paths['/things/{aid}']?.['delete']?.requestBody?.required, true);
  assert.deepEqual(paths['/ping']?.['get']?.parameters[0], {
    name: 'n',
    in: 'query',
    required: false,
    schema: { type: 'integer', minimum: 0, maximum: 999_999_999_999_999 },
  });
});
