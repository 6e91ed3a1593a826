/** Event streams, which do not count as concurrent calls. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { MAX_CALLS_PER_CALLER, MAX_EVENT_STREAMS_PER_NODE } from '../../../src/capabilities/calls/caller-limits.ts';
import { type CallResponse, HttpCaller, MAX_CALLS_PER_TARGET } from '../../../src/capabilities/calls/http-caller.ts';
import { type CallWorld, callWorld, textOf, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';

interface EventWorld {
  readonly world: CallWorld;
  /** Streams that the service has started. */
  readonly open: Set<ServerResponse>;
}

async function eventWorld(t: TestContext): Promise<EventWorld> {
  const world = await callWorld(t);
  const open = new Set<ServerResponse>();
  const service = await webService(t, (request, response) => {
    if (request.url === '/once') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return void response.end('data: once\n\n');
    }
    if (request.url !== '/events') return void response.end('ok');
    response.writeHead(200, { 'content-type': 'Text/Event-Stream; charset=utf-8' }).flushHeaders();
    open.add(response);
    response.once('close', () => open.delete(response));
  });
  world.bound.set(world.remote, service.bound);
  return { world, open };
}

/** Reads the next chunk of a stream. */
async function heard({ body }: CallResponse): Promise<string> {
  for await (const chunk of body) return String(chunk);
  throw new Error('the stream ended without data');
}

test('event streams do not block calls of their caller, and have their own limit', async (t) => {
  const { world, open } = await eventWorld(t);
  const count = MAX_CALLS_PER_CALLER + MAX_CALLS_PER_TARGET;
  const streams = await Promise.all(Array.from({ length: count }, () => world.call({ path: '/events' })));
  assert.equal(open.size, count);
  assert.equal(world.server.active, count);
  const calls = Array.from({ length: MAX_CALLS_PER_CALLER }, () => world.call());
  for (const call of calls) assert.equal(await textOf(await call), 'ok');
  for (const stream of open) stream.write('data: x\n\n');
  for (const stream of streams) assert.equal(await heard(stream), 'data: x\n\n');
  await eventually('all streams are closed', () => open.size === 0 && world.server.active === 0);
});

test('one more stream than a node may have is rejected and its service connection closed', async (t) => {
  const { world, open } = await eventWorld(t);
  const another = new HttpCaller(world.near.links, world.clock);
  t.after(() => another.stop());
  const call = (caller: HttpCaller) =>
    caller.request(world.local, world.remote, { method: 'GET', path: '/events', headers: [], body: null });
  const streams = await Promise.all(Array.from({ length: MAX_EVENT_STREAMS_PER_NODE }, () => call(world.caller)));
  for (const caller of [world.caller, another])
    await assert.rejects(call(caller), { code: 'rate_limited', details: { retry_after_s: 1 } });
  await eventually('the service connection is closed', () => open.size === MAX_EVENT_STREAMS_PER_NODE);
  assert.equal(await textOf(await world.call()), 'ok');
  streams[0]?.body.destroy();
  await eventually('one stream is closed', () => open.size < MAX_EVENT_STREAMS_PER_NODE);
  await eventually('the slot is free', () => call(another).then(Boolean, () => false));
});

test('an event stream that ends leaves its link for the next call', async (t) => {
  const { world } = await eventWorld(t);
  const before = world.far.authorized.length;
  for (let i = 0; i < 20; i++) {
    assert.equal(await textOf(await world.call({ path: '/once' })), 'data: once\n\n');
    assert.equal(await textOf(await world.call()), 'ok');
  }
  assert.equal(world.far.authorized.length - before, 1);
  await eventually('all are served', () => world.server.active === 0);
});
