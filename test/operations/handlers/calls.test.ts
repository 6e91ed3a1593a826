import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FetchRequest } from '../../../src/capabilities/calls/fetch-service.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { callOperations } from '../../../src/operations/calls.ts';
import { callHandlers } from '../../../src/operations/handlers/calls.ts';
import { compileInput } from '../../../src/operations/input.ts';
import { bind, type CallContext } from '../../../src/operations/operation.ts';
import { callWorld, webService } from '../../support/call-world.ts';
import { newIdentity } from '../../support/identities.ts';

test('a fetch uses the named or the default agent, and the limits of the surface', async (t) => {
  const world = await callWorld(t);
  const other = world.near.host().aid;
  const service = await webService(t, (request, response) => response.end(request.headers['svc-caller-aid']));
  world.bound.set(world.remote, service.bound);
  const localAid = (named: Aid | undefined): Aid => {
    if (named === undefined) return world.local;
    if (named !== other) throw new SvcError('not_found');
    return named;
  };
  const [operation] = bind(callOperations, callHandlers({ fetch: world.fetch, localAid }));
  assert.ok(operation);
  const read = compileInput(operation.declaration);
  const context: CallContext = {
    origin: 'local',
    signal: new AbortController().signal,
    requireToken: () => {},
    setStatus: () => {},
  };
  const run = async (body: object): Promise<unknown> =>
    operation.run(read({ params: { aid: world.remote }, query: {}, body }), context);
  const answer = (aid: Aid) => Buffer.from(aid).toString('base64');

  const chosen = await run({ path: '/' });
  assert.ok(typeof chosen === 'object' && chosen !== null && 'body' in chosen && 'truncated' in chosen);
  assert.deepEqual([chosen.body, chosen.truncated], [answer(world.local), false]);
  const named = await run({ path: '/', local_aid: other.toUpperCase(), method: 'get', timeout_ms: 1000 });
  assert.ok(typeof named === 'object' && named !== null && 'body' in named);
  assert.equal(named.body, answer(other));
  await assert.rejects(run({ path: '/', local_aid: world.remote }), { code: 'not_found' });
  for (const body of [
    {},
    { path: 'x' },
    { path: '/ ' },
    { path: '/', method: 'A B' },
    { path: '/', headers: { x: 1 } },
    { path: '/', timeout_ms: -1 },
    { path: '/', timeout_s: 601 },
    { path: '/', timeout_ms: 600_001 },
    { path: '/', body_base64: '!' },
    { path: '/', unknown: true },
  ])
    await assert.rejects(run(body), { code: 'invalid_request' }, JSON.stringify(body));
});

test('the limit is in milliseconds or in seconds, and 0 means none', async () => {
  const limits: (number | undefined)[] = [];
  const fetch = async ({ timeoutMs }: FetchRequest): Promise<never> => {
    limits.push(timeoutMs);
    throw new SvcError('timeout');
  };
  const { aid } = newIdentity();
  const { fetch: run } = callHandlers({ fetch, localAid: () => aid });
  const context: CallContext = {
    origin: 'local',
    signal: new AbortController().signal,
    requireToken: () => {},
    setStatus: () => {},
  };
  for (const limit of [{}, { timeout_ms: 1500 }, { timeout_s: 1.5 }, { timeout_s: 0 }, { timeout_ms: 0, timeout_s: 9 }])
    await assert.rejects(async () => run({ aid, path: '/', ...limit }, context), { code: 'timeout' });
  assert.deepEqual(limits, [undefined, 1500, 1500, 0, 0]);
});

test('a long body is passed to a surface that writes it itself, a short body is a text', async (t) => {
  const world = await callWorld(t);
  const service = await webService(t, (request, response) =>
    response.end(Buffer.alloc(Number(request.url?.slice(1)), 7)),
  );
  world.bound.set(world.remote, service.bound);
  const [operation] = bind(callOperations, callHandlers({ fetch: world.fetch, localAid: () => world.local }));
  assert.ok(operation);
  const given: Uint8Array[] = [];
  const context: CallContext = {
    origin: 'local',
    signal: new AbortController().signal,
    requireToken: () => {},
    setStatus: () => {},
    inline: (bytes) => {
      given.push(Uint8Array.from(bytes.bytes()));
      return 'a mark';
    },
  };
  const bodyOf = async (length: number): Promise<unknown> => {
    const answer = await operation.run({ aid: world.remote, path: `/${length}` }, context);
    return typeof answer === 'object' && answer !== null && 'body' in answer ? answer.body : null;
  };
  assert.equal(await bodyOf(1000), Buffer.alloc(1000, 7).toString('base64'));
  assert.equal(await bodyOf(100_000), 'a mark');
  assert.deepEqual(given, [new Uint8Array(100_000).fill(7)]);
});
