import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { MAX_CALLS_PER_TARGET } from '../../../src/capabilities/calls/http-caller.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { callWorld, textOf, webService } from '../../support/call-world.ts';
import { settle } from '../../support/link-world.ts';

test('a burst of calls reuses the streams of the previous burst, within the limit of all agents', async (t) => {
  const world = await callWorld(t);
  const waiting: ServerResponse[] = [];
  const service = await webService(t, (_request, response) => {
    waiting.push(response);
    // Respond only after all requests have arrived, so that no request can reuse the stream of another.
    if (waiting.length === MAX_CALLS_PER_TARGET) for (const one of waiting.splice(0)) one.end('ok');
  });
  const agents = [world.remote, world.far.host().aid, world.far.host().aid, world.far.host().aid];
  for (const aid of agents) world.bound.set(aid, service.bound);
  const call = async (aid: Aid): Promise<string> =>
    textOf(await world.caller.request(world.local, aid, { method: 'GET', path: '/', headers: [], body: null }));
  const opened: number[] = [];
  for (const aid of [...agents, ...agents]) {
    const before = world.far.authorized.length;
    await Promise.all(Array.from({ length: MAX_CALLS_PER_TARGET }, () => call(aid)));
    await settle();
    opened.push(world.far.authorized.length - before);
  }
  assert.deepEqual(opened, [64, 64, 64, 64, 0, 0, 16, 48]);
});
