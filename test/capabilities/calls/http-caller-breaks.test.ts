import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { REUSED_SILENCE_MS } from '../../../src/capabilities/calls/http-caller.ts';
import { NODE_DIAL_TIMEOUT_MS } from '../../../src/network/peers/dial.ts';
import { callWorld, textOf, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { settle } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Resets all idle streams of a connection on the called side. */
async function cutIdle(world: Awaited<ReturnType<typeof callWorld>>): Promise<void> {
  world.access = () => {
    throw new Error('gone');
  };
  await world.server.recheck(world.remote);
  world.access = () => {};
}

test('a POST on a link that breaks while the service works is not repeated, and fails with an error', async (t) => {
  const world = await callWorld(t);
  let asked = 0;
  const service = await webService(t, () => {
    asked++;
    void cutIdle(world).then(() => world.far.endpoint.stop());
  });
  world.bound.set(world.remote, service.bound);
  const call = world.call({ method: 'POST', body: Buffer.from('pay') });
  await assert.rejects(call, (error: Error & { code?: string }) => error.code !== undefined);
  assert.equal(asked, 1);
});

test('a canceled call ends immediately, before and during the response', async (t) => {
  const world = await callWorld(t);
  const closed: Promise<unknown>[] = [];
  let arrived = (): void => {};
  const service = await webService(t, (request: IncomingMessage, response) => {
    closed.push(once(response, 'close'));
    if (request.url === '/begin') response.write('first');
    arrived();
  });
  world.bound.set(world.remote, service.bound);
  const early = new AbortController();
  const asked = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const call = world.call({ signal: early.signal });
  await asked;
  early.abort();
  await assert.rejects(call, { code: 'cancelled' });
  const late = new AbortController();
  const answer = await world.call({ path: '/begin', signal: late.signal });
  await once(answer.body, 'data');
  const broken = assert.rejects(textOf(answer));
  late.abort();
  await broken;
  await Promise.all(closed);
  await assert.rejects(world.call({ signal: AbortSignal.abort() }), { code: 'cancelled' });
  await eventually('all slots are free', () => world.server.active === 0);
});

test('an upload with a source that breaks off reaches the service as incomplete', async (t) => {
  const world = await callWorld(t);
  const outcome = Promise.withResolvers<string>();
  const service = await webService(t, (request) => {
    request.resume();
    request.once('end', () => outcome.resolve('whole')).once('error', () => outcome.resolve('broken'));
    request.once('data', () => body.destroy());
  });
  world.bound.set(world.remote, service.bound);
  const body = new PassThrough();
  body.write('half');
  await assert.rejects(world.call({ method: 'POST', body }), { code: 'connect_failed' });
  assert.equal(await outcome.promise, 'broken');
});

test('an incomplete response is an error, not a short response', async (t) => {
  const world = await callWorld(t);
  const service = await webService(t, (_request, response) => {
    response.write('half');
    setImmediate(() => response.destroy());
  });
  world.bound.set(world.remote, service.bound);
  const answer = await world.call();
  await assert.rejects(textOf(answer));
});

test('a reused stream does not count as silent while this process was stalled', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const waiting: ServerResponse[] = [];
  const service = await webService(t, (request, response) => {
    if (request.url === '/slow') waiting.push(response);
    else response.end('quick');
  });
  world.bound.set(world.remote, service.bound);
  assert.equal(await textOf(await world.call()), 'quick');
  const slow = world.call({ method: 'POST', path: '/slow' });
  await eventually('the slow call', () => waiting.length === 1);
  clock.advance(REUSED_SILENCE_MS - 1);
  clock.jump(20_000);
  clock.advance(REUSED_SILENCE_MS - 1);
  await settle();
  assert.equal(world.far.authorized.length, 1, 'no liveness check yet');
  clock.advance(1);
  await eventually('the liveness check', () => world.far.authorized.length === 2);
  waiting[0]?.end('slow');
  assert.equal(await textOf(await slow), 'slow');
});

test('a new stream is not checked, even with a slow response', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const waiting: ServerResponse[] = [];
  const service = await webService(t, (_request, response) => void waiting.push(response));
  world.bound.set(world.remote, service.bound);
  const slow = world.call();
  await eventually('the slow call', () => waiting.length === 1);
  clock.advance(10 * REUSED_SILENCE_MS);
  await settle();
  assert.equal(world.far.authorized.length, 1);
  waiting[0]?.end('slow');
  assert.equal(await textOf(await slow), 'slow');
});

test('a reused stream without a response is closed if the node is unreachable, and kept otherwise', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const asked: string[] = [];
  const waiting: ServerResponse[] = [];
  const service = await webService(t, (request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/slow') waiting.push(response);
    else response.end('quick');
  });
  world.bound.set(world.remote, service.bound);
  const used = async (): Promise<void> => assert.equal(await textOf(await world.call()), 'quick');
  await used();
  const slow = world.call({ method: 'POST', path: '/slow' });
  await eventually('the slow call', () => waiting.length === 1);
  clock.advance(REUSED_SILENCE_MS);
  await settle();
  waiting[0]?.end('slow');
  assert.equal(await textOf(await slow), 'slow');
  await used();
  const lost = assert.rejects(world.call({ method: 'POST', path: '/slow' }), { code: 'connect_failed' });
  await eventually('the lost call', () => waiting.length === 2);
  world.near.pool.reset(world.far.key.publicKey);
  world.links.network.silence(world.far.endpoint.address);
  clock.advance(REUSED_SILENCE_MS);
  await settle();
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await lost;
  assert.deepEqual(asked, ['/', '/slow', '/', '/slow'], 'no request was repeated');
});
