import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { FIRST_HEAD_MS } from '../../../src/capabilities/calls/call-server.ts';
import { MAX_CALLS_PER_CALLER } from '../../../src/capabilities/calls/caller-limits.ts';
import { CALL_STALL_MS, EVENT_STREAM_STALL_MS } from '../../../src/capabilities/calls/forward.ts';
import { HttpCaller } from '../../../src/capabilities/calls/http-caller.ts';
import { abortable } from '../../../src/foundation/deadline.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { MAX_UNANSWERED_PER_LINK, NEXT_REQUEST_MS } from '../../../src/network/links/http-server.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { LINGER_MS } from '../../../src/network/peers/wire.ts';
import { type CallWorld, callWorld, headerOf, textOf, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { settle } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

/** A bound service that responds with the requested path and counts requests. */
async function bound(t: TestContext, clock?: TestClock) {
  const world = await callWorld(t, { clock });
  const asked: string[] = [];
  const service = await webService(t, (request, response) => {
    asked.push(`${request.method} ${request.url}`);
    request.resume().once('end', () => response.end(request.url));
  });
  world.bound.set(world.remote, service.bound);
  return { world, asked, service };
}

/** A link on which the test writes raw bytes. */
async function rawLink(world: CallWorld): Promise<LinkStream & { text(): string }> {
  const link = await world.near.links.open(world.local, world.remote, 'http');
  let text = '';
  link
    .on('error', () => {})
    .on('data', (data: Buffer) => {
      text += data.toString('latin1');
    });
  return Object.assign(link, { text: () => text });
}

async function closed(link: LinkStream): Promise<void> {
  if (!link.closed) await new Promise((resolve) => link.once('close', resolve));
}

/** Advances the clock until a link is closed, while its writer keeps writing like a hostile caller. */
async function closesWithin(link: LinkStream, clock: TestClock, ms: number): Promise<void> {
  await eventually('the link is closed', () => {
    clock.advance(ms);
    if (link.writable) link.write('x');
    return link.closed;
  });
}

const refuse = () => {
  throw new SvcError('access_denied');
};

test('each call is recorded: served callers, and rejected callers with the reason', async (t) => {
  const { world } = await bound(t);
  assert.equal(await textOf(await world.call({ path: '/a' })), '/a');
  assert.equal(await textOf(await world.call({ path: '/b' })), '/b');
  world.access = refuse;
  await assert.rejects(world.call(), { code: 'access_denied' });
  world.access = () => {};
  world.bound.clear();
  await assert.rejects(world.call(), { code: 'no_inbound' });
  const [one, ...others] = world.callers.list(world.remote);
  assert.deepEqual(
    [one?.aid, one?.entered, one?.refused, one?.lastRefusal?.code, others],
    [world.local, { call: 2, tunnel: 0, object: 0 }, 2, 'no_inbound', []],
  );
});

test('distinct errors for no service, an unreachable service, and another daemon', async (t) => {
  const { world } = await bound(t);
  const service = world.bound.get(world.remote);
  assert.ok(service);
  world.bound.set(world.remote, { ...service, port: 1 });
  await assert.rejects(world.call(), { code: 'inbound_unreachable', message: /refuses connections\..* must start it/ });
  world.bound.set(world.remote, { ...service, host: 'name.invalid' });
  await assert.rejects(world.call(), { code: 'inbound_unreachable', message: /does not resolve/ });
  world.bound.set(world.remote, { ...service, scheme: 'https' });
  await assert.rejects(world.call(), { code: 'inbound_unreachable', message: /TLS handshake .* failed/ });
  world.bound.delete(world.remote);
  await assert.rejects(world.call({ method: 'POST', body: Buffer.from('x') }), { code: 'no_inbound' });
});

test('a service for tunnels only receives no calls', async (t) => {
  const { world, asked } = await bound(t);
  const service = world.bound.get(world.remote);
  assert.ok(service);
  world.bound.set(world.remote, { ...service, acceptsCalls: false });
  await assert.rejects(world.call(), { code: 'tunnels_only' });
  assert.deepEqual(asked, []);
});

test('a response of the service differs from a response of its daemon, whatever the service sends', async (t) => {
  const world = await callWorld(t);
  const service = await webService(t, (_request, response) => {
    response.writeHead(503, { 'Svc-Error': 'no_inbound', svc_error: 'no_inbound', 'X-Kept': '1' }).end('busy');
  });
  world.bound.set(world.remote, service.bound);
  const answer = await world.call();
  assert.deepEqual([answer.status, await textOf(answer)], [503, 'busy']);
  assert.equal(headerOf(answer.headers, 'svc-error'), undefined);
  assert.equal(headerOf(answer.headers, 'x-kept'), '1');
});

test('every request is authorized with its caller and source', async (t) => {
  const { world, asked } = await bound(t);
  await textOf(await world.call({ accessToken: 'secret' }));
  const requests: object[] = [];
  world.access = (request) => void requests.push(request);
  await textOf(await world.call({ accessToken: 'secret' }));
  assert.deepEqual(requests, [
    {
      caller: world.local,
      called: world.remote,
      purpose: 'http',
      accessToken: 'secret',
      nodeKey: world.near.key.publicKey,
      source: '127.0.0.1',
    },
  ]);
  world.access = refuse;
  await assert.rejects(world.call({ accessToken: 'secret' }), { code: 'access_denied' });
  assert.equal(asked.length, 2);
});

test('a call that the service could see as another one does not count as the call that the owner allowed', async (t) => {
  const { world } = await bound(t);
  await textOf(await world.call({ path: '/order?id=1' }));
  await textOf(await world.call({ path: '/order', headers: ['X-HTTP-Method-Override', 'DELETE'] }));
  await textOf(await world.call({ path: '/order?x?&_method=DELETE' }));
  assert.deepEqual(world.asked, ['GET /order', '', '']);
});

test('a rate limit reports how long to wait', async (t) => {
  const { world } = await bound(t);
  await textOf(await world.call());
  world.access = () => {
    throw new SvcError('rate_limited', { details: { retry_after_s: 30 } });
  };
  await assert.rejects(world.call(), { code: 'rate_limited', details: { retry_after_s: 30 } });
});

test('a change of the access list cuts running calls: with an error before the response, by a reset during it', async (t) => {
  const world = await callWorld(t);
  const gone: Promise<unknown>[] = [];
  let arrived = (): void => {};
  const service = await webService(t, (request, response) => {
    gone.push(once(response, 'close'));
    if (request.url === '/begun') response.write('first');
    else arrived();
  });
  world.bound.set(world.remote, service.bound);
  const begun = await world.call({ path: '/begun' });
  const waiting = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const pending = world.call({ path: '/pending', method: 'POST', body: Buffer.from('x') });
  await waiting;
  await world.server.recheck(world.local);
  assert.equal(world.server.active, 2);
  world.access = refuse;
  const outcomes = Promise.allSettled([textOf(begun), pending]);
  await world.server.recheck(world.remote);
  const [middle, before] = await outcomes;
  assert.equal(middle.status, 'rejected');
  assert.ok(before.status === 'rejected' && before.reason instanceof SvcError);
  assert.equal(before.reason.code, 'access_denied');
  await Promise.all(gone);
  assert.equal(world.server.active, 0);
});

test('calls to a deleted agent are cut', async (t) => {
  const world = await callWorld(t);
  const arrived = Promise.withResolvers<void>();
  const service = await webService(t, () => arrived.resolve());
  world.bound.set(world.remote, service.bound);
  const outcome = assert.rejects(world.call(), { code: 'no_inbound' });
  await arrived.promise;
  world.server.drop(world.local);
  assert.equal(world.server.active, 1);
  world.server.drop(world.remote);
  await outcome;
});

test('a call to an agent on the same daemon works the same way, with the same rules', async (t) => {
  const { world, asked } = await bound(t);
  const neighbour = world.far.host().aid;
  const request = { method: 'GET', path: '/near', headers: ['Svc-Caller-Aid', 'evil'], body: null };
  const caller = new HttpCaller(world.far.links, world.clock);
  t.after(() => caller.stop());
  assert.equal(await textOf(await caller.request(neighbour, world.remote, request)), '/near');
  assert.deepEqual(asked, ['GET /near']);
  world.access = ({ caller: who, nodeKey }) => {
    assert.deepEqual([who, nodeKey], [neighbour, null]);
    refuse();
  };
  await assert.rejects(caller.request(neighbour, world.remote, request), { code: 'access_denied' });
});

test('a caller has 64 concurrent calls, and does not delay other callers', async (t) => {
  const world = await callWorld(t);
  const release: (() => void)[] = [];
  const service = await webService(t, (request, response) => {
    if (request.url === '/held') release.push(() => response.end());
    else response.end('ok');
  });
  world.bound.set(world.remote, service.bound);
  const links = await Promise.all(Array.from({ length: MAX_CALLS_PER_CALLER + 1 }, () => rawLink(world)));
  for (const link of links) link.write('GET /held HTTP/1.1\r\nHost: x\r\n\r\n');
  const refused = await eventually('the rejection', () => links.find((link) => link.text() !== ''));
  assert.match(refused.text(), /^HTTP\/1\.1 429 .*\r\nsvc-error: rate_limited\r\n.*retry-after: 1\r\n/is);
  const other = world.near.host().aid;
  const call = { method: 'GET', path: '/', headers: [], body: null };
  assert.equal(await textOf(await world.caller.request(other, world.remote, call)), 'ok');
  await eventually('all requests are pending', () => release.length === MAX_CALLS_PER_CALLER);
  for (const end of release) end();
  await eventually('all requests are served', () => world.server.active === 0);
});

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
const ATTACKS: Readonly<Record<string, string>> = {
  'both lengths': `POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  'two lengths': `POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 37\r\n\r\n${SMUGGLED}`,
  'a list of lengths': `POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 37\r\n\r\n${SMUGGLED}`,
  'a signed length': `POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n${SMUGGLED}`,
  'chunked not last': `POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  'another coding': `POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  'a coding with a blank': `POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  'a coding with a tab': `POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  'a bad chunk size': `POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n${SMUGGLED}`,
  'a folded header': `GET /a HTTP/1.1\r\nHost: x\r\nX: 1\r\n Transfer-Encoding: chunked\r\n\r\n`,
  'bare line feeds': `GET /a HTTP/1.1\nHost: x\n\n`,
  'a bare return in a value': `GET /a HTTP/1.1\r\nHost: x\r\nX: a\rY: b\r\n\r\n`,
  'a NUL in a value': `GET /a HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n`,
  'a whole URL': `GET http://evil.example/a HTTP/1.1\r\nHost: x\r\n\r\n`,
  CONNECT: `CONNECT evil.example:80 HTTP/1.1\r\nHost: x\r\n\r\n`,
  'HTTP/1.0': `GET /a HTTP/1.0\r\nHost: x\r\n\r\n`,
  'HTTP/0.9': `GET /a\r\n\r\n`,
  'another protocol': 'SSH-2.0-OpenSSH_9.6\r\n',
  TLS: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'an unknown upgrade': `GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
  'too many headers': `GET /a HTTP/1.1\r\nHost: x\r\n${'X: 1\r\n'.repeat(200)}\r\n`,
  'a head too long': `GET /a HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`,
  'a path too long': `GET /${'x'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  'no host': 'GET /a HTTP/1.1\r\n\r\n',
};

for (const [name, bytes] of Object.entries(ATTACKS)) {
  test(`an ambiguous request never reaches the service: ${name}`, async (t) => {
    const clock = new TestClock();
    const { world, asked } = await bound(t, clock);
    const link = await rawLink(world);
    link.write(Buffer.from(bytes, 'latin1'));
    await eventually('a response or the end of the stream', () => link.text() !== '' || link.closed);
    assert.doesNotMatch(link.text(), /HTTP\/1\.1 2/);
    await closesWithin(link, clock, NEXT_REQUEST_MS);
    assert.deepEqual(asked, []);
    assert.equal(await textOf(await world.call({ path: '/after' })), '/after');
  });
}

test('pipelined requests on one stream are served in order, each with its own access check', async (t) => {
  const { world, asked } = await bound(t);
  const link = await rawLink(world);
  link.write(['/1', '/2', '/3'].map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
  const bodies = () => link.text().match(/\/\d$|\/\d(?=HTTP)/g) ?? [];
  await eventually('three responses', () => bodies().length === 3);
  assert.deepEqual(bodies(), ['/1', '/2', '/3']);
  assert.equal(asked.length, 3);
  link.destroy();
});

test('a stream stays open after a rejected request that was read completely', async (t) => {
  const { world, asked } = await bound(t);
  const link = await rawLink(world);
  let denials = 1;
  world.access = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    if (denials-- > 0) throw new SvcError('access_denied');
  };
  link.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually('the rejection', () => link.text().startsWith('HTTP/1.1 403 '));
  assert.doesNotMatch(link.text(), /connection: close/i);
  link.write('GET /2 HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually('the response', () => link.text().includes('HTTP/1.1 200'));
  assert.equal(asked.length, 1);
  link.destroy();
});

test('an incomplete head times out, on a new stream and on a reused one', async (t) => {
  const clock = new TestClock();
  const { world, asked } = await bound(t, clock);
  const fresh = await rawLink(world);
  const silent = await rawLink(world);
  fresh.write('GET / HTTP/1.1\r\nHost:');
  const used = await rawLink(world);
  used.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually('a response', () => used.text().endsWith('/1'));
  used.write('GET /2 HTTP/1.1\r\n');
  clock.advance(FIRST_HEAD_MS);
  await Promise.all([closed(fresh), closed(silent)]);
  assert.equal(used.closed, false);
  clock.advance(NEXT_REQUEST_MS - FIRST_HEAD_MS);
  await closed(used);
  assert.deepEqual(asked, ['GET /1']);
});

test('a late response is awaited, a missing one times out', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const arrived = Promise.withResolvers<void>();
  const service = await webService(t, () => arrived.resolve());
  world.bound.set(world.remote, service.bound);
  const call = world.call();
  const outcome = assert.rejects(call, { code: 'timeout' });
  await arrived.promise;
  clock.advance(CALL_STALL_MS - 1);
  assert.equal(world.server.active, 1);
  clock.advance(1);
  await outcome;
});

test('the silence of an earlier call does not end the answer of a program', async (t) => {
  const clock = new TestClock();
  const { world } = await bound(t, clock);
  const link = await rawLink(world);
  link.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually('a response', () => link.text().endsWith('/1'));
  const begun = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Buffer>();
  world.server.answerBy(() => async (_read, signal) => {
    begun.resolve();
    return await abortable(answer.promise, signal);
  });
  clock.advance(NEXT_REQUEST_MS / 2);
  link.write('GET /2 HTTP/1.1\r\nHost: x\r\n\r\n');
  await begun.promise;
  clock.advance(CALL_STALL_MS - 1);
  answer.resolve(Buffer.from('done'));
  await eventually('the answer', () => link.text().endsWith('done'));
});

test('an event stream may be silent for a day', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const service = await webService(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders();
  });
  world.bound.set(world.remote, service.bound);
  const { body } = await world.call();
  const cut = once(body, 'error');
  clock.advance(EVENT_STREAM_STALL_MS - 1);
  assert.equal(body.destroyed, false);
  assert.equal(world.server.active, 1);
  clock.advance(1);
  await cut;
});

test('a response before the end of an upload arrives, and the rest of the upload is not awaited', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const service = await webService(t, (_request, response) => response.writeHead(413).end('too much'));
  world.bound.set(world.remote, service.bound);
  const link = await rawLink(world);
  link.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nsome');
  await eventually('the response', () => link.text().includes('too much'));
  assert.match(link.text(), /^HTTP\/1\.1 413 /);
  await closesWithin(link, clock, LINGER_MS);
});

test('a rejected upload is not read', async (t) => {
  const clock = new TestClock();
  const { world, asked } = await bound(t, clock);
  const link = await rawLink(world);
  world.access = refuse;
  link.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nsome');
  await eventually('the response', () => link.text() !== '');
  assert.match(link.text(), /^HTTP\/1\.1 403 .*connection: close\r\n/is);
  await closesWithin(link, clock, LINGER_MS);
  assert.deepEqual(asked, []);
});

test('a stopped server releases everything', async (t) => {
  const clock = new TestClock();
  const { world, service } = await bound(t, clock);
  await textOf(await world.call());
  const link = await rawLink(world);
  assert.equal(service.connections.size, 1);
  world.caller.stop();
  await world.server.stop();
  await settle(200);
  assert.equal(service.connections.size, 0);
  await closed(link);
  await Promise.all([world.near.stop(), world.far.stop()]);
  await eventually('no timer is left', () => clock.timers === 0);
});

test('a link that pipelines too many requests is cut', async (t) => {
  const world = await callWorld(t);
  let asked = 0;
  const service = await webService(t, () => void asked++);
  world.bound.set(world.remote, service.bound);
  const link = await rawLink(world);
  link.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000));
  await closed(link);
  await eventually('no request is being served', () => world.server.active === 0);
  assert.ok(asked <= MAX_UNANSWERED_PER_LINK, `${asked} requests reached the service`);
});
