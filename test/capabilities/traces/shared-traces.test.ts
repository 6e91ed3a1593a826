import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  decodeShared,
  encodeShared,
  MAX_TRACE_ANSWERS,
  queryTrace,
  type SharedRequest,
  shareTraces,
} from '../../../src/capabilities/traces/shared-traces.ts';
import { TraceReader } from '../../../src/capabilities/traces/trace-reader.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { Traces } from '../../../src/foundation/traces/traces.ts';
import { testAid } from '../../support/agents.ts';
import { LinkWorld } from '../../support/link-world.ts';

const ID = 'a'.repeat(32);
const PARENT = { traceId: ID, parentId: 'b'.repeat(16), isSampled: true };
const never = new AbortController().signal;

function tracesOf(): Traces {
  return new Traces({ clock: systemClock, randomBytes, percent: 100 });
}

function record(traces: Traces, side: 'caller' | 'called', caller: Aid, called: Aid, parent = PARENT) {
  const { request } = traces.continue(parent, { side, caller, called, method: 'GET' }, () => 'own');
  assert.ok(request !== null);
  return request;
}

async function pair(mayRead = () => true) {
  const world = new LinkWorld();
  const [near, far] = [await world.node(), await world.node()];
  const [caller, called] = [near.host().aid, far.host().aid];
  const traces = tracesOf();
  shareTraces(far.links, { traces, clock: systemClock, log: silentLog, mayRead });
  const ask = (local = caller) => queryTrace(near.links, systemClock, local, called, ID, never);
  return { world, near, far, caller, called, traces, ask, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

test('a caller reads the spans of its calls to the agent, and no other spans', async () => {
  await using p = await pair();
  const other = p.near.host().aid;
  const own = record(p.traces, 'called', p.caller, p.called);
  own.next('access');
  own.next('service');
  own.finish(new SvcError('inbound_unreachable'));
  record(p.traces, 'called', other, p.called).finish();
  record(p.traces, 'called', p.caller, other).finish();
  // A call of the agent in the same trace.
  record(p.traces, 'caller', p.called, p.caller).finish();
  record(p.traces, 'called', p.caller, p.called, { ...PARENT, traceId: 'c'.repeat(32) }).finish();
  const [shared, ...others] = await p.ask();
  assert.deepEqual(others, []);
  assert.equal(shared?.spanId, own.spanId);
  assert.deepEqual(
    shared?.steps.map(({ name, error }) => [name, error]),
    [
      ['access', null],
      ['service', 'inbound_unreachable'],
    ],
  );
  assert.equal((await p.ask(other)).length, 1);
});

test('an owner that shares nothing refuses the query', async () => {
  await using p = await pair(() => false);
  record(p.traces, 'called', p.caller, p.called).finish();
  await assert.rejects(p.ask(), (error) => error instanceof SvcError && error.code === 'access_denied');
});

test('an answer has at most the newest requests, and fits', async () => {
  await using p = await pair();
  for (let i = 0; i < 50; i++) {
    const request = record(p.traces, 'called', p.caller, p.called);
    request.next('access');
    request.next('service');
    request.status = 200;
    request.path = 'punched';
    request.finish(new SvcError('inbound_unreachable'));
  }
  assert.equal((await p.ask()).length, MAX_TRACE_ANSWERS);
});

test('words of a later version are skipped, and malformed answers refused', () => {
  const good: SharedRequest = {
    spanId: '1'.repeat(16),
    parentId: PARENT.parentId,
    method: 'GET',
    start: 1.5,
    end: 2.25,
    status: 200,
    error: null,
    path: 'lan',
    steps: [{ name: 'access', start: 1.5, end: 2, error: null }],
  };
  const read = (one: object) => decodeShared(encodeShared([{ ...good, ...one }]).subarray(2));
  assert.deepEqual(read({}), [good]);
  assert.deepEqual(read({ steps: [{ name: 'later', start: 1, end: 2, error: null }] }), [{ ...good, steps: [] }]);
  for (const bad of [
    { spanId: 'x' },
    { parentId: null },
    { method: 'GET /secret' },
    { status: -1 },
    { error: '<script>' },
    { path: 'a wormhole' },
    { end: 1 },
  ])
    assert.deepEqual(read(bad), [], JSON.stringify(bad));
  assert.equal(decodeShared(new Uint8Array(10)), null);
});

test('answers of other nodes are fitted into the calls of this node', async () => {
  const [local, remote, gone] = [testAid(1), testAid(2), testAid(3)];
  const traces = tracesOf();
  const call = record(traces, 'caller', local, remote);
  call.finish();
  record(traces, 'caller', local, gone).finish();
  const shared = (own: object): SharedRequest => ({
    ...{ spanId: '1'.repeat(16), parentId: call.spanId, method: 'GET', start: 0, end: 0 },
    ...{ status: 200, error: null, path: null, steps: [] },
    ...own,
  });
  const reader = new TraceReader({
    traces,
    isLocal: (aid) => aid === local,
    query: async (_, aid) => {
      if (aid === gone) throw new SvcError('connect_failed');
      // Its clock is a day ahead. Two of its requests have IDs that belong to no call, or to a call.
      const day = call.start + 86_400_000;
      return [
        shared({ start: day, end: day, steps: [{ name: 'access', start: day, end: day, error: null }] }),
        shared({ spanId: '2'.repeat(16), parentId: '3'.repeat(16) }),
        shared({ spanId: call.spanId }),
      ];
    },
  });
  const { spans, missing } = await reader.get(ID, false, never);
  assert.deepEqual(
    missing.map(({ aid, error }) => [aid, error.code]),
    [[gone, 'connect_failed']],
  );
  const theirs = spans.filter(({ reportedBy }) => reportedBy === remote);
  assert.deepEqual(
    theirs.map(({ name, spanId }) => [name, spanId === '1'.repeat(16)]),
    [
      ['GET', true],
      ['access', false],
    ],
  );
  for (const { start, end } of theirs) assert.ok(start >= call.start && (end ?? 0) <= (call.end ?? 0));
  assert.equal((await reader.get(ID, true, never)).missing.length, 0);
  await assert.rejects(reader.get('f'.repeat(32), false, never), /no spans of this trace/);
  const [summary] = reader.list(10);
  assert.deepEqual([summary?.requests, summary?.first.called], [2, remote]);
});
