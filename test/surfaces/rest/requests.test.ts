import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { bind } from '../../../src/operations/operation.ts';
import { updateOperations } from '../../../src/operations/process.ts';
import { eventually } from '../../support/eventually.ts';
import { JSON_HEADERS, speak, startWorld } from './support.ts';

const aid = nativeAid(new Uint8Array(32).fill(3));
const MIB = 1024 * 1024;

interface ErrorBody {
  error: string;
  message: string;
  details?: Record<string, unknown>;
}

test('a read returns JSON that caches do not store and browsers do not reinterpret', async (t) => {
  const world = await startWorld(t);
  const answer = await world.request('GET', '/ping?n=5');
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.json, { origin: 'local', n: 5 });
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.equal(answer.headers['x-content-type-options'], 'nosniff');
  assert.match(String(answer.headers['content-security-policy']), /frame-ancestors 'none'/);
  assert.equal(answer.headers['x-powered-by'], undefined);
});

test('HEAD answers like GET without a body', async (t) => {
  const world = await startWorld(t);
  const get = await world.request('GET', '/ping');
  const head = await world.request('HEAD', '/ping');
  assert.equal(head.status, 200);
  assert.equal(head.text, '');
  assert.equal(head.headers['content-length'], get.headers['content-length']);
});

test('a write returns its declared status, and AIDs are canonical for the handler', async (t) => {
  const world = await startWorld(t);
  const body = JSON.stringify({ text: 'hi', to: [aid.toUpperCase()] });
  const answer = await world.request('POST', `/things/%20${aid.toUpperCase()}/echo`, { headers: JSON_HEADERS, body });
  assert.equal(answer.status, 201);
  assert.deepEqual(answer.json, { aid, text: 'hi', to: [aid] });
});

test('a write without the JSON content type is rejected, with and without a body', async (t) => {
  const world = await startWorld(t);
  const types = [
    undefined,
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/merge-patch+json',
    'application/json, text/plain',
    '',
  ];
  for (const [method, path] of [
    ['POST', `/things/${aid}/echo`],
    ['DELETE', `/things/${aid}`],
  ] as const) {
    for (const type of types) {
      for (const body of ['{}', undefined]) {
        const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
        const answer = await world.request(method, path, { headers, ...(body === undefined ? {} : { body }) });
        assert.equal(answer.status, 415, `${method} ${type} ${body}`);
        assert.equal((answer.json as ErrorBody).error, 'unsupported_media_type');
      }
    }
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON ;charset=UTF-8'])
      assert.ok((await world.request(method, path, { headers: { 'content-type': type } })).status < 300, type);
  }
});

test('a compressed body is rejected, not decompressed', async (t) => {
  const world = await startWorld(t);
  const headers = { ...JSON_HEADERS, 'content-encoding': 'gzip' };
  const answer = await world.request('POST', `/things/${aid}/echo`, { headers, body: 'x' });
  assert.equal(answer.status, 415);
});

test('a body that is not JSON is invalid_json, and is not quoted', async (t) => {
  const world = await startWorld(t);
  const bodies: (string | Uint8Array)[] = [
    '{',
    'hunter2',
    '{"text":"hunter2"',
    "{'text':1}",
    '{"text":"a"}}',
    new Uint8Array([0x22, 0xff, 0x22]),
    `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
    '{"meta":{"__proto__":{"admin":true}}}',
    '{"meta":{"\\u005f_pr\\u006fto__":{"admin":true}}}',
    ' ',
  ];
  for (const body of bodies) {
    const answer = await world.request('POST', `/things/${aid}/echo`, { headers: JSON_HEADERS, body });
    assert.equal(answer.status, 400, String(body).slice(0, 40));
    assert.equal((answer.json as ErrorBody).error, 'invalid_json');
    assert.ok(!answer.text.includes('hunter2'));
  }
});

test('an ignored body may have any content, but its media type and size are checked', async (t) => {
  const world = await startWorld(t, {
    operations: bind({ updateApply: updateOperations.updateApply }, { updateApply: () => ({ message: 'looked for' }) }),
  });
  for (const body of [undefined, '', '{', '[]', '"x"', 'no JSON', '{"version":"1.2.3"}']) {
    const answer = await world.request('POST', '/update/apply', {
      headers: JSON_HEADERS,
      ...(body === undefined ? {} : { body }),
    });
    assert.equal(answer.status, 202, `${body}: ${answer.text}`);
  }
  assert.equal((await world.request('POST', '/update/apply', { body: '{}' })).status, 415);
  const large = 'x'.repeat(MIB + 1);
  assert.equal((await world.request('POST', '/update/apply', { headers: JSON_HEADERS, body: large })).status, 413);
});

test('brackets in strings do not count as depth, and a key that looks dangerous is allowed', async (t) => {
  const world = await startWorld(t);
  const text = `${'['.repeat(200)}\\"${'{'.repeat(200)} __proto__`;
  const body = JSON.stringify({ text, meta: { __proto: 1, 'a\u0001': '__proto__' } });
  const answer = await world.request('POST', `/things/${aid}/echo`, { headers: JSON_HEADERS, body });
  assert.equal(answer.status, 201);
  assert.deepEqual(answer.json, { aid, ...(JSON.parse(body) as object) });
});

test('a body that does not match the schema is invalid_request with the path of the field', async (t) => {
  const world = await startWorld(t);
  const cases: [string, string, string | undefined, string, string][] = [
    ['GET', '/ping?m=5', undefined, 'query', '/m'],
    ['GET', '/ping?n=-1', undefined, 'query', '/n'],
    ['GET', '/ping?n=1&n=2', undefined, 'query', '/n'],
    ['POST', `/things/${aid}/echo?x=1`, '{}', 'query', '/x'],
    ['POST', `/things/${aid}/echo`, '{"txt":"a"}', 'body', '/txt'],
    ['POST', `/things/${aid}/echo`, '{"text":1}', 'body', '/text'],
    ['POST', `/things/${aid}/echo`, '[]', 'body', ''],
    ['POST', `/things/${aid}/echo`, 'null', 'body', ''],
    ['DELETE', `/things/${aid}`, '{"force":true}', 'body', '/force'],
  ];
  for (const [method, path, body, place, failing] of cases) {
    const answer = await world.request(method, path, {
      headers: JSON_HEADERS,
      ...(body === undefined ? {} : { body }),
    });
    const { error, details } = answer.json as ErrorBody;
    assert.deepEqual([answer.status, error], [400, 'invalid_request'], `${method} ${path}`);
    assert.deepEqual([details?.['in'], details?.['path']], [place, failing], `${method} ${path} ${body}`);
  }
});

test('a malformed AID is bad_aid, in the path and in the body', async (t) => {
  const world = await startWorld(t);
  const wrong = `${aid.slice(0, -1)}${aid.endsWith('q') ? 'p' : 'q'}`;
  for (const text of [wrong, 'x', 'a'.repeat(5000), '%00', '..%2f..'])
    assert.equal(
      ((await world.request('DELETE', `/things/${text}`, { headers: JSON_HEADERS })).json as ErrorBody).error,
      'bad_aid',
    );
  const body = JSON.stringify({ to: [wrong] });
  const answer = await world.request('POST', `/things/${aid}/echo`, { headers: JSON_HEADERS, body });
  assert.deepEqual([answer.status, (answer.json as ErrorBody).error], [400, 'bad_aid']);
});

test('a body of 1 MiB is accepted, a larger one is too_large', async (t) => {
  const world = await startWorld(t);
  const text = 'x'.repeat(MIB - '{"text":""}'.length);
  const headers = JSON_HEADERS;
  const fits = await world.request('POST', `/things/${aid}/echo`, { headers, body: `{"text":"${text}"}` });
  assert.equal(fits.status, 201);
  const over = await world.request('POST', `/things/${aid}/echo`, { headers, body: `{"text":"${text}x"}` });
  assert.deepEqual([over.status, (over.json as ErrorBody).error], [413, 'too_large']);
  assert.equal((over.json as ErrorBody).details?.['limit_bytes'], MIB);
});

test('a chunked body is cut at the limit', async (t) => {
  const world = await startWorld(t);
  const chunk = 'x'.repeat(0x8000);
  const head = `POST /things/${aid}/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const answer = await speak(world.host, world.port, `${head}${`8000\r\n${chunk}\r\n`.repeat(40)}`);
  assert.match(answer, /^HTTP\/1\.1 413 /);
  assert.match(answer, /Connection: close/i);
});

test('an unknown path is 404, a wrong method is 405 with Allow', async (t) => {
  const world = await startWorld(t);
  for (const path of [
    '/',
    '/nowhere',
    '/ping/',
    '//ping',
    '/broken/',
    '/PING',
    `/things/${aid}/`,
    '/ping/../ping',
    '/things//echo',
    '/docs/',
  ]) {
    const answer = await world.request('GET', path);
    assert.deepEqual([answer.status, (answer.json as ErrorBody).error], [404, 'not_found'], path);
  }
  const cases: [string, string, string][] = [
    ['POST', '/ping', 'GET, HEAD'],
    ['GET', `/things/${aid}/echo`, 'POST'],
    ['PATCH', `/things/${aid}`, 'DELETE'],
    ['OPTIONS', '/ping', 'GET, HEAD'],
    ['PROPFIND', '/ping', 'GET, HEAD'],
    ['TRACE', '/ping', 'GET, HEAD'],
    ['PUT', '/openapi.json', 'GET, HEAD'],
  ];
  for (const [method, path, allow] of cases) {
    const answer = await world.request(method, path);
    assert.deepEqual(
      [answer.status, (answer.json as ErrorBody).error],
      [405, 'method_not_allowed'],
      `${method} ${path}`,
    );
    assert.equal(answer.headers.allow, allow);
  }
});

test('a path with invalid percent-encoding is rejected', async (t) => {
  const world = await startWorld(t);
  const answer = await world.request('GET', '/ping/%zz');
  assert.deepEqual([answer.status, (answer.json as ErrorBody).error], [400, 'invalid_request']);
});

test('a request target that is not a path matches no route', async (t) => {
  const world = await startWorld(t);
  for (const target of [`http://127.0.0.1:${world.port}/secret`, 'http://evil.example/ping', '*']) {
    const answer = await speak(
      world.host,
      world.port,
      `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1\.1 400 /, target);
    assert.match(answer, /invalid_request/);
  }
});

test('an unexpected error is a 500 without details, and is logged', async (t) => {
  const world = await startWorld(t);
  const answer = await world.request('GET', '/broken/badly');
  assert.deepEqual([answer.status, (answer.json as ErrorBody).error], [500, 'internal']);
  assert.ok(!answer.text.includes('hunter2'));
  assert.equal(world.logged.length, 1);
  assert.equal(Reflect.get(world.logged[0]?.fields ?? {}, 'operation'), 'broken');
});

test('an SvcError keeps its code, message and details', async (t) => {
  const world = await startWorld(t);
  const answer = await world.request('GET', '/broken/known');
  assert.equal(answer.status, 404);
  const { error, message, details } = answer.json as ErrorBody;
  assert.deepEqual([error, details], ['not_found', { what: 'thing' }]);
  assert.ok(message.length > 0);
  assert.equal(world.logged.length, 0);
});

test('the handler sees that its client has disconnected', async (t) => {
  const world = await startWorld(t);
  const client = connect(world.port, world.host, () => client.write('GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n'));
  const { signal } = await eventually('the request', () => world.waiting[0]);
  assert.ok(!signal.aborted);
  client.destroy();
  await eventually('the abort', () => signal.aborted);
});
