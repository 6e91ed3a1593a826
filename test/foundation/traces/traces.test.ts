import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { systemClock } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { parseTraceparent } from '../../../src/foundation/traces/trace-context.ts';
import { asStep, MAX_STEPS, spansOf } from '../../../src/foundation/traces/traced-request.ts';
import {
  MAX_REQUESTS_PER_TRACE,
  MAX_TRACED_REQUESTS,
  type TraceHolder,
  Traces,
} from '../../../src/foundation/traces/traces.ts';
import { TestClock } from '../../support/test-clock.ts';

const [caller, called] = [1, 2].map((byte) => nativeAid(new Uint8Array(32).fill(byte))) as [
  ReturnType<typeof nativeAid>,
  ReturnType<typeof nativeAid>,
];
const ORIGIN = { side: 'called', caller, called, method: 'GET' } as const;
const PARENT = { traceId: 'a'.repeat(32), parentId: 'b'.repeat(16), isSampled: true };

function tracesOf(percent = 100): Traces {
  return new Traces({ clock: systemClock, randomBytes, percent });
}

function begin(traces: Traces, holder: TraceHolder, parent: typeof PARENT | null = null) {
  return traces.continue(parent, ORIGIN, () => holder);
}

test('a request without a trace begins one, and the next hop continues it', () => {
  const traces = tracesOf();
  const first = begin(traces, 'own');
  const parent = parseTraceparent(first.traceparent ?? '');
  assert.ok(parent !== null && parent.isSampled);
  assert.deepEqual([first.request?.traceId, first.request?.spanId], [parent.traceId, parent.parentId]);
  const second = begin(traces, 'stranger', parent);
  assert.deepEqual(
    traces.of(parent.traceId).map(({ spanId, parentId }) => [spanId, parentId]),
    [
      [parent.parentId, null],
      [second.request?.spanId, parent.parentId],
    ],
  );
});

test('a trace that is not sampled keeps its position and leaves nothing', () => {
  const traces = tracesOf();
  const parent = { ...PARENT, isSampled: false };
  assert.deepEqual(begin(traces, 'own', parent), {
    traceparent: `00-${PARENT.traceId}-${PARENT.parentId}-00`,
    request: null,
  });
  const off = tracesOf(0);
  assert.deepEqual(begin(off, 'own'), { traceparent: null, request: null });
  assert.deepEqual([...traces.all(), ...off.all()], []);
});

test('the share of sampled traces follows the percentage', () => {
  const traces = tracesOf(25);
  const ids = Array.from({ length: 4000 }, () => begin(traces, 'own').traceparent).filter((one) => one !== null);
  // Six standard deviations.
  assert.ok(Math.abs(ids.length - 1000) < 165, String(ids.length));
  assert.equal(new Set(ids.map((one) => parseTraceparent(one)?.traceId)).size, ids.length);
  const [low, high] = [tracesOf(0), tracesOf(100)];
  for (let i = 0; i < 1000; i++) {
    assert.equal(begin(low, 'own').request, null);
    assert.notEqual(begin(high, 'own').request, null);
  }
});

test('the next call to an agent is sampled on request, once', () => {
  const traces = tracesOf(0);
  traces.sampleNext(called);
  traces.sampleNext(called);
  assert.equal(traces.continue(null, { ...ORIGIN, called: caller }, () => 'own').request, null);
  assert.equal(begin(traces, 'own', { ...PARENT, isSampled: false }).request, null, 'the caller has decided');
  assert.notEqual(begin(traces, 'own').request, null);
  assert.equal(begin(traces, 'own').request, null);
});

test('wishes for the next call have a limit', () => {
  const traces = tracesOf(0);
  const agents = Array.from({ length: 65 }, (_, i) => nativeAid(new Uint8Array(32).fill(i + 3)));
  for (const agent of agents) traces.sampleNext(agent);
  const sampled = agents.filter((agent) => traces.continue(null, { ...ORIGIN, called: agent }, () => 'own').request);
  assert.deepEqual(sampled, agents.slice(1));
});

test('of the calls that are not sampled, the last one that failed is kept', () => {
  const traces = tracesOf(0);
  const exported: unknown[] = [];
  traces.onEnd = (request) => exported.push(request);
  for (const code of ['timeout', 'connect_failed', 'cancelled'] as const)
    traces.failed({ ...ORIGIN, side: 'caller' }, traces.now() - 1000, new SvcError(code));
  const kept = traces.all();
  assert.deepEqual(
    kept.map(({ error, start, end }) => [error, Math.round(((end ?? 0) - start) / 100)]),
    [['connect_failed', 10]],
  );
  assert.equal(traces.of(kept[0]?.traceId ?? '').length, 1);
  assert.deepEqual(exported, []);
  const off = new Traces({ clock: systemClock, randomBytes, percent: 0, isOn: false });
  off.failed(ORIGIN, off.now(), new SvcError('timeout'));
  assert.deepEqual(off.all(), []);
});

test('strangers push out only strangers, and named callers only named callers', () => {
  const traces = tracesOf();
  const kept = (['own', 'named'] as const).map((holder) => begin(traces, holder).request);
  const first = begin(traces, 'stranger').request;
  for (let i = 0; i < MAX_TRACED_REQUESTS; i++) begin(traces, 'stranger');
  const all = new Set(traces.all());
  assert.equal(all.size, MAX_TRACED_REQUESTS + 2);
  for (const request of kept) assert.ok(request !== null && all.has(request));
  assert.ok(first !== null && !all.has(first));
});

test('one trace cannot take the room of all others', () => {
  const traces = tracesOf();
  const other = begin(traces, 'own').request;
  for (let i = 0; i < 3 * MAX_TRACED_REQUESTS; i++) begin(traces, 'own', PARENT);
  assert.equal(traces.of(PARENT.traceId).length, MAX_REQUESTS_PER_TRACE);
  assert.ok(other !== null && traces.all().includes(other));
  // As its requests are replaced, it gets room again.
  for (let i = 0; i < MAX_TRACED_REQUESTS; i++) begin(traces, 'own');
  assert.equal(traces.of(PARENT.traceId).length, 0);
  begin(traces, 'own', PARENT);
  assert.equal(traces.of(PARENT.traceId).length, 1);
});

test('the spans of a request: its steps are children, with times and errors', async () => {
  const clock = new TestClock();
  const traces = new Traces({ clock, randomBytes, percent: 100 });
  const ended: string[] = [];
  traces.onEnd = (request, holder) => ended.push(`${request.method} ${holder}`);
  const { request } = begin(traces, 'named', PARENT);
  assert.ok(request !== null);
  const { promise, resolve } = Promise.withResolvers<void>();
  const dialed = asStep(request, 'dial', () => promise);
  clock.advance(1000);
  resolve();
  await dialed;
  await assert.rejects(asStep(request, 'link', () => Promise.reject(new SvcError('access_denied'))));
  request.next('wait');
  clock.advance(2000);
  assert.deepEqual(traces.of(PARENT.traceId)[0]?.end, null);
  request.status = 403;
  request.finish(new SvcError('access_denied'));
  request.finish(new SvcError('internal'));
  assert.deepEqual(ended, ['GET named']);
  const [own, ...steps] = spansOf(request);
  assert.deepEqual([own?.parentId, own?.kind, own?.isError], [PARENT.parentId, 'server', true]);
  assert.deepEqual(own?.attributes, {
    'http.request.method': 'GET',
    'client.address': caller,
    'server.address': called,
    'http.response.status_code': 403,
    'error.type': 'access_denied',
  });
  assert.deepEqual(
    steps.map(({ name, parentId, start, end, attributes }) => [
      name,
      parentId,
      Math.round(((end ?? 0) - start) / 1000),
      attributes['error.type'],
    ]),
    [
      ['dial', request.spanId, 1, undefined],
      ['link', request.spanId, 0, 'access_denied'],
      ['wait', request.spanId, 2, 'access_denied'],
    ],
  );
  assert.equal(new Set([own, ...steps].map((span) => span?.spanId)).size, 4);
});

test('steps have a limit, and none begins after the end', () => {
  const { request } = begin(tracesOf(), 'own');
  for (let i = 0; i < 2 * MAX_STEPS; i++) request?.next('wait');
  assert.equal(request?.steps.length, MAX_STEPS);
  const other = begin(tracesOf(), 'own').request;
  other?.finish();
  other?.step('dial')();
  assert.deepEqual(other?.steps, []);
});

test('a status is an error of the caller from 400, and of the called side from 500', () => {
  for (const [side, status, type] of [
    ['caller', 399, undefined],
    ['caller', 404, '404'],
    ['called', 404, undefined],
    ['called', 500, '500'],
  ] as const) {
    const request = tracesOf().continue(null, { ...ORIGIN, side }, () => 'own').request;
    assert.ok(request !== null);
    request.status = status;
    request.finish();
    assert.equal(spansOf(request)[0]?.attributes['error.type'], type);
  }
});
