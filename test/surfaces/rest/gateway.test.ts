import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { testAid } from '../../support/agents.ts';
import { hostileHeaders } from '../../support/hostile-headers.ts';
import { standsStill } from '../../support/stands-still.ts';
import { gatewayWorld } from './gateway-world.ts';
import { speak } from './support.ts';

const SANDBOX = /^sandbox;/;

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** A service that responds with the request that it received. */
function mirror(request: IncomingMessage, response: ServerResponse): void {
  let body = '';
  request.setEncoding('latin1').on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => {
    const { method, url, headers } = request;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ method, url, headers, body }));
  });
}

test('a request reaches the service unchanged, except for credentials of this API', async (t) => {
  const { api, prefix, calls } = await gatewayWorld(t, mirror);
  const answer = await api.request('PATCH', `${prefix}/a//b%2Fc/../d;e=1?x=%20&y&x=2`, {
    headers: {
      'content-type': 'not a media type',
      'x-api-key': 'for-the-service',
      authorization: 'Bearer the-token-of-this-api',
      cookie: 'panel=secret',
      'proxy-authorization': 'Basic eDp5',
      proxy: 'http://evil.example:8080',
      'svc-access-token': 'for another agent',
      'svc-caller-aid': 'aid1forged',
      'x-forwarded-for': '1.2.3.4',
      forwarded: 'for=1.2.3.4',
      origin: api.url,
      referer: `${api.url}/panel?secret=1`,
      'sec-fetch-site': 'same-origin',
      'sec-ch-ua': '"x"',
      connection: 'keep-alive, x-hop',
      'x-hop': 'only for the next one',
    },
    body: 'a body',
  });
  assert.equal(answer.status, 200);
  const seen = answer.json as Seen;
  assert.deepEqual([seen.method, seen.url, seen.body], ['PATCH', '/a//b%2Fc/../d;e=1?x=%20&y&x=2', 'a body']);
  assert.equal(seen.headers['svc-caller-aid'], calls.local);
  assert.equal(seen.headers['svc-local-aid'], calls.remote);
  assert.equal(seen.headers['x-api-key'], 'for-the-service');
  assert.equal(seen.headers['content-type'], 'not a media type');
  const gone = [
    'authorization',
    'cookie',
    'proxy',
    'proxy-authorization',
    'svc-access-token',
    'x-forwarded-for',
    'origin',
  ];
  for (const name of [...gone, 'referer', 'sec-fetch-site', 'sec-ch-ua', 'x-hop'])
    assert.equal(seen.headers[name], undefined, name);
  assert.ok(!JSON.stringify(seen).includes('secret'));
});

test('a program can choose a local agent and an access token for the call', async (t) => {
  const { api, prefix, calls, agentAid } = await gatewayWorld(t, mirror);
  const tokens: (string | undefined)[] = [];
  calls.access = ({ accessToken }) => void tokens.push(accessToken);
  const ask = (headers: Record<string, string>) => api.request('GET', `${prefix}/x`, { headers });
  const answer = await ask({ 'svc-local-aid': agentAid, 'Svc-Access-Token': 's3cret' });
  const seen = answer.json as Seen;
  assert.equal(seen.headers['svc-caller-aid'], agentAid);
  assert.equal(seen.headers['svc-local-aid'], calls.remote);
  assert.ok(!JSON.stringify(seen).includes('s3cret'));
  assert.deepEqual(new Set(tokens), new Set(['s3cret']));
  const plain = (await ask({})).json as Seen;
  assert.equal(plain.headers['svc-caller-aid'], calls.local);
  assert.equal((await ask({ 'svc-local-aid': calls.remote })).status, 404);
  assert.equal((await ask({ 'svc-local-aid': 'nobody' })).status, 400);
  assert.equal((await ask({ 'svc-local-aid': `${agentAid}, ${agentAid}` })).status, 400);
});

test('a page of another site cannot choose the agent', async (t) => {
  const { api, prefix, calls, agentAid } = await gatewayWorld(t, mirror);
  let asked = 0;
  calls.access = () => void asked++;
  const as = { 'svc-local-aid': agentAid };
  const pages: readonly Record<string, string>[] = [
    { origin: 'https://example.org' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { host: 'rebound.example.org' },
  ];
  for (const page of pages)
    assert.equal((await api.request('GET', `${prefix}/x`, { headers: { ...as, ...page } })).status, 403);
  // A browser sends this preflight request before a custom header.
  const preflight = { origin: 'https://example.org', 'access-control-request-headers': 'svc-local-aid' };
  assert.equal((await api.request('OPTIONS', `${prefix}/x`, { headers: preflight })).status, 403);
  assert.equal(asked, 0);
});

test('headers that affect more than the response are removed; others pass', async (t) => {
  const hostile = hostileHeaders('http://evil.example');
  const own = {
    ...{
      'content-type': 'text/html',
      'content-language': 'de',
      'content-disposition': 'inline',
      etag: '"1"',
      age: '3',
    },
    ...{
      'mcp-session-id': 's',
      'grpc-status': '0',
      'ratelimit-limit': '5',
      'x-own': 'kept',
      'x-accel-buffering': 'no',
    },
  };
  const { api, prefix } = await gatewayWorld(t, (_request, response) => {
    for (const [name, value] of Object.entries({ ...hostile, ...own })) response.setHeader(name, value);
    response.setHeader('vary', ['a', 'b']);
    response.end('<script>fetch("/status")</script>');
  });
  const { status, headers, text } = await api.request('GET', `${prefix}/`);
  assert.equal(status, 200);
  assert.match(text, /script/);
  const connection = ['connection', 'content-length', 'date', 'keep-alive'];
  const { 'content-security-policy': policy, ...rest } = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !connection.includes(name)),
  );
  assert.match(String(policy), SANDBOX);
  assert.deepEqual(rest, {
    ...own,
    vary: 'a, b',
    'cache-control': 'no-store',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  });
});

test('a path without the trailing slash is redirected, for every method', async (t) => {
  const { api, prefix, calls } = await gatewayWorld(t, mirror);
  for (const method of ['GET', 'POST', 'HEAD', 'PROPFIND']) {
    const answer = await api.request(method, `/aid/${calls.remote.toUpperCase()}?a=1&b=%2F`);
    assert.deepEqual([answer.status, answer.headers.location], [307, `${prefix}/?a=1&b=%2F`], method);
    assert.match(answer.headers['content-security-policy'] as string, SANDBOX);
  }
});

test('no redirect of a service leads to another path of this API', async (t) => {
  const { api, prefix } = await gatewayWorld(t, (request, response) => {
    response.writeHead(302, { location: decodeURIComponent(request.url?.split('?to=')[1] ?? '') }).end();
  });
  const locationOf = async (to: string): Promise<string | undefined> => {
    const answer = await api.request('GET', `${prefix}/dir/page?to=${encodeURIComponent(to)}`);
    assert.equal(answer.status, 302);
    return answer.headers.location;
  };
  assert.equal(await locationOf('next?x=1#y'), `${prefix}/dir/next?x=1#y`);
  assert.equal(await locationOf('/agents'), `${prefix}/agents`);
  assert.equal(await locationOf('../../../../agents'), `${prefix}/agents`);
  assert.equal(await locationOf(`${api.url}/agents`), `${prefix}/agents`);
  assert.equal(await locationOf('http://localhost:9/x'), `${prefix}/x`);
  assert.equal(await locationOf('//127.1/x'), `${prefix}/x`);
  assert.equal(await locationOf('https://example.org/x'), 'https://example.org/x');
  assert.equal(await locationOf('javascript:alert(1)'), undefined);
});

test('errors are sandboxed too', async (t) => {
  const { api, prefix, calls } = await gatewayWorld(t, null);
  const expect = async (path: string, status: number, code: string, headers = {}): Promise<void> => {
    const answer = await api.request('GET', path, { headers });
    assert.deepEqual([answer.status, (answer.json as { error: string }).error], [status, code], path);
    assert.match(answer.headers['content-security-policy'] as string, SANDBOX, path);
  };
  await expect('/aid/aid1nonsense/x', 400, 'bad_aid');
  await expect('/aid/', 404, 'not_found');
  await expect(`${prefix}/%zz`, 400, 'invalid_request');
  await expect(`${prefix}/`, 403, 'forbidden_host', { host: 'evil.example' });
  await expect(`${prefix}/`, 403, 'forbidden_origin', { origin: 'null' });
  await expect(`${prefix}/`, 503, 'no_inbound');
  await expect(`/aid/${testAid(9)}/`, 404, 'resolve_failed');
  calls.access = () => {
    throw new SvcError('access_denied');
  };
  await expect(`${prefix}/`, 403, 'access_denied');
});

test('a page of a remote agent can access neither the API nor the gateway; a user can follow its links', async (t) => {
  const { api, prefix } = await gatewayWorld(t, mirror);
  const statusOf = async (method: string, path: string, headers: Record<string, string>): Promise<number> =>
    (await api.request(method, path, { headers })).status;
  const cross = { 'sec-fetch-site': 'cross-site' };
  const link = { ...cross, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-user': '?1' };
  for (const path of ['/ping', `${prefix}/x`]) {
    assert.equal(await statusOf('GET', path, { origin: 'null' }), 403, path);
    assert.equal(await statusOf('POST', path, { origin: 'null', 'content-type': 'application/json' }), 403, path);
    assert.equal(
      await statusOf('GET', path, { ...cross, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }),
      403,
    );
    const { 'sec-fetch-user': _user, ...byItself } = link;
    assert.equal(await statusOf('GET', path, byItself), 403, path);
    assert.equal(await statusOf('GET', path, { ...link, 'sec-fetch-dest': 'iframe' }), 403, path);
    assert.equal(await statusOf('POST', path, { ...link, origin: 'null' }), 403, path);
  }
  assert.equal(await statusOf('GET', '/ping', link), 403);
  assert.equal(await statusOf('GET', `${prefix}/x`, link), 200);
  const same = { 'sec-fetch-site': 'same-origin' };
  for (const dest of ['script', 'style', 'worker', 'serviceworker', 'iframe', 'image', 'manifest', 'xslt'])
    assert.equal(await statusOf('GET', `${prefix}/x`, { ...same, 'sec-fetch-dest': dest }), 403, dest);
  assert.equal(await statusOf('GET', `${prefix}/x`, { ...same, 'sec-fetch-dest': 'empty' }), 200);
  // A service worker could intercept every request of this origin.
  assert.equal(await statusOf('GET', `${prefix}/x`, { 'service-worker': 'script' }), 403);
});

test('the gateway requires the token like the API', async (t) => {
  const { api, prefix } = await gatewayWorld(t, mirror, { token: 'the-token', requireLocalToken: true });
  const headers = { authorization: 'Bearer the-token' };
  for (const path of [`${prefix}/x`, prefix, `${prefix}/cas/${'a'.repeat(64)}`])
    assert.equal((await api.request('GET', path)).status, 401, path);
  assert.equal((await api.request('GET', `${prefix}/x`, { headers })).status, 200);
  const free = await gatewayWorld(t, mirror, { token: 'the-token' });
  assert.equal((await free.api.request('GET', `${free.prefix}/x`)).status, 200);
});

test('a percent-encoded spelling of the path is not served', async (t) => {
  const { api, prefix } = await gatewayWorld(t, mirror, { token: 'the-token', requireLocalToken: true });
  const escaped = prefix.replace('/aid/', '/%61id/');
  assert.equal((await api.request('GET', `${escaped}/x`)).status, 401);
  const headers = { authorization: 'Bearer the-token' };
  assert.equal((await api.request('GET', `${escaped}/x`, { headers })).status, 404);
});

test('object paths never reach the service', async (t) => {
  let asked = 0;
  const { api, prefix } = await gatewayWorld(t, (_request, response) => {
    asked++;
    response.end();
  });
  const id = 'a'.repeat(64);
  assert.equal((await api.request('GET', `${prefix}/cas/${id}?x`)).status, 404);
  assert.equal((await api.request('PUT', `${prefix}/cas/${id}`)).status, 405);
  assert.equal(asked, 0);
  assert.equal((await api.request('GET', `${prefix}/cas/`)).status, 200);
});

test('bodies stream in both directions, complete and unchanged', async (t) => {
  const size = 24 * 1024 * 1024;
  const { api, prefix } = await gatewayWorld(t, (request, response) => {
    // The response begins during the request.
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).flushHeaders();
    request.pipe(response);
  });
  const sent = createHash('sha256');
  const got = createHash('sha256');
  const request = httpRequest({
    host: api.host,
    port: api.port,
    method: 'PUT',
    path: `${prefix}/mirror`,
    agent: false,
  });
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  request.flushHeaders();
  const [response] = await answered;
  const received = (async () => {
    let length = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      got.update(chunk);
      length += chunk.length;
    }
    return length;
  })();
  const piece = Buffer.alloc(256 * 1024);
  for (let done = 0; done < size; done += piece.length) {
    piece.fill(done % 251);
    const chunk = Buffer.from(piece);
    sent.update(chunk);
    if (!request.write(chunk)) await once(request, 'drain');
  }
  request.end();
  assert.equal(await received, size);
  assert.equal(got.digest('hex'), sent.digest('hex'));
});

test('a service that does not read throttles the client', async (t) => {
  const stop = Promise.withResolvers<void>();
  const { api, prefix } = await gatewayWorld(t, (request, response) => {
    if (request.url === '/echo') return void request.pipe(response);
    request.pause();
    void stop.promise.then(() => {
      request.resume();
      request.on('end', () => response.end('done'));
    });
  });
  const post = (path: string) =>
    httpRequest({ host: api.host, port: api.port, method: 'POST', path: `${prefix}${path}`, agent: false });
  const request = post('/slow');
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  const piece = Buffer.alloc(1024 * 1024);
  const limit = 96;
  let sent = 0;
  const writing = (async () => {
    for (; sent < limit; sent++) if (!request.write(piece)) await once(request, 'drain');
  })();
  await standsStill(
    () => sent,
    async () => {
      const [response] = (await once(post('/echo').end(piece), 'response')) as [IncomingMessage];
      let back = 0;
      for await (const chunk of response) back += (chunk as Buffer).length;
      assert.equal(back, piece.length);
    },
  );
  assert.ok(sent < limit, `${sent} MiB were accepted from a client although nothing was read`);
  stop.resolve();
  await writing;
  request.end();
  const [response] = await answered;
  assert.equal(response.statusCode, 200);
  response.resume();
});

test('an endless response streams, and is aborted at the service when the client disconnects', async (t) => {
  const gone = Promise.withResolvers<void>();
  const { api, prefix } = await gatewayWorld(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n');
    response.once('close', () => gone.resolve());
  });
  const request = httpRequest({ host: api.host, port: api.port, path: `${prefix}/events`, agent: false }).end();
  request.on('error', () => {});
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const [chunk] = (await once(response, 'data')) as [Buffer];
  assert.equal(chunk.toString(), 'data: first\n\n');
  response.on('error', () => {});
  request.destroy();
  await gone.promise;
});

test('a response that breaks off at the service breaks off here', async (t) => {
  const { api, prefix } = await gatewayWorld(t, (_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half');
    setImmediate(() => response.destroy());
  });
  await assert.rejects(api.request('GET', `${prefix}/`), { code: 'ECONNRESET' });
});

test('a response before the end of the request closes the connection', async (t) => {
  const { api, prefix } = await gatewayWorld(t, (_request, response) => {
    response.writeHead(413, { 'content-length': '0' }).end();
  });
  const head = `POST ${prefix}/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n`;
  assert.match(await speak(api.host, api.port, `${head}abc`), /^HTTP\/1\.1 413 [\s\S]*connection: close/i);
});
