import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { brokenResponse } from '../../../src/capabilities/calls/error-response.ts';
import { type FetchRequest, fetchWhole } from '../../../src/capabilities/calls/fetch-service.ts';
import type { HttpCaller } from '../../../src/capabilities/calls/http-caller.ts';
import { DEFAULT_CALL_TIMEOUT_MS, MAX_FETCHED_BYTES } from '../../../src/foundation/domain/services.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { callWorld, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

async function fetching(t: TestContext, listener: RequestListener, clock?: TestClock) {
  const world = await callWorld(t, { clock });
  const service = await webService(t, listener);
  world.bound.set(world.remote, service.bound);
  const fetch = (more: Partial<FetchRequest> = {}, signal = new AbortController().signal) =>
    world.fetch({ local: world.local, remote: world.remote, path: '/', ...more }, signal);
  return { world, fetch };
}

const echo: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.once('end', () => {
    const { method, url, headers } = request;
    const body = Buffer.concat(chunks).toString('base64');
    response.writeHead(201, ['X-Many', 'a', 'x-many', 'b', 'Content-Type', 'application/json']);
    response.end(JSON.stringify({ method, url, body, many: headers['x-many'] }));
  });
};

test('a fetch sends the request and returns the whole response', async (t) => {
  const { fetch } = await fetching(t, echo);
  const bytes = randomBytes(1000).toString('base64');
  const request = { method: 'patch', path: '/x?y=1', headers: { 'X-Many': ['1', '2'] }, bodyBase64: bytes };
  const { status, headers, body, truncated } = await fetch(request);
  assert.deepEqual([status, truncated], [201, false]);
  assert.deepEqual(headers['x-many'], ['a', 'b']);
  assert.deepEqual(headers['content-type'], ['application/json']);
  assert.equal(headers['connection'], undefined);
  const answer: unknown = JSON.parse(Buffer.from(body, 'base64').toString());
  assert.deepEqual(answer, { method: 'PATCH', url: '/x?y=1', body: bytes, many: '1, 2' });
});

test('GET is the default; redirects and compressed bodies are returned unchanged', async (t) => {
  const { fetch } = await fetching(t, (request, response) => {
    response.writeHead(302, { location: '/elsewhere', 'content-encoding': 'gzip' }).end(`${request.method}`);
  });
  const { status, headers, body } = await fetch();
  assert.equal(status, 302);
  assert.deepEqual([headers['location'], headers['content-encoding']], [['/elsewhere'], ['gzip']]);
  assert.equal(Buffer.from(body, 'base64').toString(), 'GET');
});

test('a body of 4 MiB is complete; a longer body is cut and not read further', async (t) => {
  let stopped = false;
  const { world, fetch } = await fetching(t, (request, response) => {
    if (request.url === '/endless') {
      response.once('close', () => {
        stopped = true;
      });
      const more = (): void => {
        while (response.write(Buffer.alloc(65_536))) if (stopped) return;
        response.once('drain', more);
      };
      more();
    } else response.end(Buffer.alloc(Number(request.url?.slice(1)), 'x'));
  });
  const whole = await fetch({ path: `/${MAX_FETCHED_BYTES}` });
  assert.deepEqual([Buffer.from(whole.body, 'base64').length, whole.truncated], [MAX_FETCHED_BYTES, false]);
  for (const path of [`/${MAX_FETCHED_BYTES + 1}`, '/endless']) {
    const cut = await fetch({ path });
    assert.deepEqual([Buffer.from(cut.body, 'base64').length, cut.truncated], [MAX_FETCHED_BYTES, true]);
  }
  await eventually('the service sees the abort', () => stopped);
  await eventually('all slots are free', () => world.server.active === 0);
});

test('a call times out before the response and during the body', async (t) => {
  const clock = new TestClock();
  const arrived: (() => void)[] = [];
  const { fetch } = await fetching(
    t,
    (request, response) => {
      if (request.url === '/trickle') response.write('some');
      arrived.shift()?.();
    },
    clock,
  );
  for (const [path, timeoutMs] of [
    ['/silent', undefined],
    ['/silent', 5],
    ['/trickle', undefined],
  ] as const) {
    const asked = new Promise<void>((resolve) => {
      arrived.push(resolve);
    });
    const outcome = assert.rejects(fetch({ path, timeoutMs }), { code: 'timeout' });
    await asked;
    clock.advance(timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS);
    await outcome;
  }
});

test('a call is canceled when its client disconnects', async (t) => {
  let arrived = (): void => {};
  const { world, fetch } = await fetching(t, () => arrived());
  const asked = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const client = new AbortController();
  const outcome = assert.rejects(fetch({}, client.signal), { code: 'cancelled' });
  await asked;
  client.abort();
  await outcome;
  await eventually('the slot is free', () => world.server.active === 0);
});

test('an incomplete response is an error', async (t) => {
  const { fetch } = await fetching(t, (_request, response) => {
    response.write('half', () => response.destroy());
  });
  await assert.rejects(fetch(), { code: 'bad_response', message: /broke off in the middle of the response/ });
});

test('a lost connection in the middle of a response is not a failure of the service', async (t) => {
  const { world } = await fetching(t, (_request, response) => void response.write('half'));
  const { body } = await world.call();
  await once(body, 'data');
  const ended = once(body, 'error');
  world.near.pool.current(world.far.key.publicKey)?.connection.close();
  await ended;
  assert.match(brokenResponse(body).message, /connection .* was lost in the middle of the response/);
});

test('an access token is sent, an empty one is not', async (t) => {
  const { world, fetch } = await fetching(t, echo);
  await fetch({ accessToken: 'secret' });
  await fetch({ accessToken: '' });
  assert.deepEqual(
    world.far.authorized.map(({ accessToken }) => accessToken),
    ['secret', undefined],
  );
});

test('no field can inject anything into the request', async (t) => {
  const { fetch } = await fetching(t, () => assert.fail('the request was sent'));
  const evil: Partial<FetchRequest>[] = [
    { path: '' },
    { path: 'x' },
    { path: 'http://evil.example/' },
    { path: '/ HTTP/1.1\r\nX: y' },
    { path: '/a b' },
    { path: '/\n' },
    { path: '/\u00e9' },
    { path: '/\0' },
    { path: `/${'x'.repeat(8192)}` },
    { method: 'CONNECT' },
    { method: 'GET /evil HTTP/1.1\r\n' },
    { method: 'BREW' },
    { method: '' },
    { headers: { 'X\r\nY': '1' } },
    { headers: { X: '1\r\nY: 2' } },
    { headers: { X: ['ok', '\0'] } },
    { headers: { '': '1' } },
    { headers: { 'X Y': '1' } },
    { headers: { X: '\u20ac' } },
    { bodyBase64: 'no base64!' },
  ];
  for (const more of evil) await assert.rejects(fetch(more), { code: 'invalid_request' }, JSON.stringify(more));
  const many = Object.fromEntries(Array.from({ length: 121 }, (_, i) => [`X-${i}`, '1']));
  await assert.rejects(fetch({ headers: many }), { code: 'too_large' });
  await assert.rejects(fetch({ headers: { X: 'x'.repeat(16_385) } }), { code: 'too_large' });
});

test('the largest allowed call arrives', async (t) => {
  const { fetch } = await fetching(t, (request, response) => {
    response.end(`${request.rawHeaders.length / 2} ${request.url?.length}`);
  });
  const headers = Object.fromEntries(Array.from({ length: 120 }, (_, i) => [`X-${i}`, 'x'.repeat(130)]));
  const { status, body } = await fetch({ headers, path: `/${'x'.repeat(8191)}` });
  assert.equal(status, 200);
  assert.equal(Buffer.from(body, 'base64').toString(), `128 8192`);
});

test('hop-by-hop headers are not sent', async (t) => {
  const { fetch } = await fetching(t, (request, response) => response.end(JSON.stringify(request.headers)));
  const headers = {
    Host: 'evil',
    Connection: 'close, X-Kept',
    'Transfer-Encoding': 'chunked',
    'Content-Length': '5',
    Upgrade: 'h2c',
    Expect: '100-continue',
    'X-Kept': 'no',
    Accept: 'yes',
  };
  const { body } = await fetch({ headers });
  const seen: unknown = JSON.parse(Buffer.from(body, 'base64').toString());
  assert.ok(typeof seen === 'object' && seen !== null);
  assert.deepEqual(Object.keys(seen).sort(), [
    'accept',
    'connection',
    'forwarded',
    'host',
    'svc-caller-aid',
    'svc-caller-proof',
    'svc-hops',
    'svc-local-aid',
    'traceparent',
  ]);
});

test('errors of the remote side keep their codes', async (t) => {
  const { world, fetch } = await fetching(t, echo);
  world.access = () => {
    throw new SvcError('access_denied');
  };
  await assert.rejects(fetch(), { code: 'access_denied' });
  world.access = () => {};
  world.bound.delete(world.remote);
  await assert.rejects(fetch(), { code: 'no_inbound' });
});

describe('the time limit', () => {
  /** A call with a response that the test writes. */
  function called(timeoutMs: number) {
    const clock = new TestClock();
    const body = new PassThrough();
    const answer = {
      status: 200,
      statusText: '',
      headers: [],
      body: body as unknown as IncomingMessage,
      release: () => {},
    };
    const caller = { request: async () => answer } as unknown as HttpCaller;
    const { aid } = newIdentity();
    const request = { local: aid, remote: aid, path: '/', timeoutMs };
    const outcome = fetchWhole(caller, clock, request, new AbortController().signal);
    outcome.catch(() => {});
    const say = async (text: string): Promise<void> => {
      // Let the body reader start first.
      await new Promise((resolve) => setImmediate(resolve));
      const read = once(body, 'data');
      body.write(text);
      await read;
    };
    return { clock, body, outcome, say };
  }

  test('applies to the silence of the service, not to its whole response', async () => {
    const { clock, body, outcome, say } = called(1000);
    for (const text of ['one ', 'two ', 'three']) {
      await say(text);
      clock.advance(900);
    }
    body.end();
    assert.equal(Buffer.from((await outcome).bytes.bytes()).toString(), 'one two three');
    assert.equal(clock.timers, 0);
  });

  test('of 0 means no limit', async () => {
    const { clock, body, outcome, say } = called(0);
    await say('one');
    clock.advance(7 * 24 * 3600 * 1000);
    body.end();
    assert.equal((await outcome).status, 200);
  });
});
