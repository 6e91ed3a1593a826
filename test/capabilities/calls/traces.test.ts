/** Trace headers and traced requests of calls, on both sides. */
import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type { Call } from '../../../src/capabilities/calls/http-caller.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { parseTraceparent } from '../../../src/foundation/traces/trace-context.ts';
import type { RequestFacts } from '../../../src/foundation/traces/traced-request.ts';
import { callWorld, textOf, webService } from '../../support/call-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

async function world(t: TestContext, tracePercent = 100, clock?: TestClock) {
  const world = await callWorld(t, { tracePercent, clock });
  const heard: IncomingHttpHeaders[] = [];
  const { bound } = await webService(t, (request, response) => {
    heard.push(request.headers);
    if (request.url === '/broken') {
      response.writeHead(200, { 'content-length': '10' }).write('half');
      setImmediate(() => response.destroy());
    } else if (request.url === '/stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    } else if (request.url === '/upgrade') {
      request.socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    } else {
      request.resume();
      response.end('done');
    }
  });
  world.bound.set(world.remote, bound);
  return { ...world, world, heard, call: (call: Partial<Call> = {}) => world.call(call) };
}

function shape(requests: readonly RequestFacts[]) {
  return requests.map(({ side, status, error, steps, end }) => ({
    side,
    status,
    error,
    steps: steps.map((step) => (step.error === null ? step.name : `${step.name} ${step.error}`)),
    isOver: end !== null && steps.every((step) => step.end !== null),
  }));
}

test('without trace headers a trace begins, and both sides record their steps in it', async (t) => {
  const { call, nearTraces, farTraces, heard } = await world(t);
  assert.equal(await textOf(await call()), 'done');
  assert.equal(await textOf(await call()), 'done');
  assert.deepEqual(shape(nearTraces.all()), [
    { side: 'caller', status: 200, error: null, steps: ['resolve', 'dial', 'link', 'wait', 'body'], isOver: true },
    { side: 'caller', status: 200, error: null, steps: ['wait', 'body'], isOver: true },
  ]);
  const served = { side: 'called', status: 200, error: null, steps: ['access', 'service'], isOver: true };
  assert.deepEqual(shape(farTraces.all()), [served, served]);
  const [near] = nearTraces.all();
  const [far] = farTraces.all();
  assert.equal(near?.parentId, null);
  assert.deepEqual([far?.traceId, far?.parentId], [near?.traceId, near?.spanId]);
  const parent = parseTraceparent(String(heard[0]?.['traceparent']));
  assert.equal(parent?.traceId, near?.traceId);
  // The service continues below the step that called it.
  assert.ok(parent?.parentId !== far?.spanId && parent?.parentId !== near?.spanId);
  assert.equal(heard[0]?.['tracestate'], undefined);
});

test('a valid trace is continued with its tracestate, and a trace that is not sampled passes unchanged', async (t) => {
  const { call, nearTraces, heard } = await world(t);
  const states = ['tracestate', 'a=1', 'TraceState', 'b=2'];
  await textOf(await call({ headers: ['Traceparent', `00-${TRACE}-${SPAN}-01`, ...states] }));
  await textOf(await call({ headers: ['traceparent', `00-${TRACE}-${SPAN}-00`, ...states] }));
  assert.deepEqual(
    heard.map(({ traceparent, tracestate }) => [String(traceparent).slice(0, 36), tracestate]),
    heard.map(() => [`00-${TRACE}-`, 'a=1, b=2']),
  );
  assert.equal(heard[1]?.['traceparent'], `00-${TRACE}-${SPAN}-00`);
  assert.deepEqual(
    nearTraces.all().map(({ traceId, parentId }) => [traceId, parentId]),
    [[TRACE, SPAN]],
  );
});

test('invalid or repeated traceparent headers are replaced and their tracestate is dropped', async (t) => {
  const { call, heard } = await world(t);
  const valid = `00-${TRACE}-${SPAN}-01`;
  const bad = [
    ['traceparent', `00-${TRACE}-${SPAN}`],
    ['traceparent', valid, 'traceparent', valid],
    ['tracestate', 'b=2'],
  ];
  for (const headers of bad) await textOf(await call({ headers: [...headers, 'tracestate', 'a=1'] }));
  await textOf(await call({ headers: ['traceparent', valid, 'tracestate', 'A bad one'] }));
  for (const { traceparent } of heard.slice(0, 3)) {
    const context = parseTraceparent(String(traceparent));
    assert.ok(context !== null && context.traceId !== TRACE);
  }
  assert.ok(heard.every(({ tracestate }) => tracestate === undefined));
  assert.equal(parseTraceparent(String(heard[3]?.['traceparent']))?.traceId, TRACE);
});

test('calls that are not sampled carry no trace headers, and the last failed one is kept', async (t) => {
  const { call, nearTraces, farTraces, heard, bound, remote } = await world(t, 0);
  await textOf(await call({ headers: ['traceparent', 'invalid', 'tracestate', 'a=1', 'x-kept', 'yes'] }));
  nearTraces.sampleNext(remote);
  await textOf(await call());
  assert.deepEqual(
    heard.map((headers) => [headers['x-kept'], headers['tracestate'], headers['traceparent'] !== undefined]),
    [
      ['yes', undefined, false],
      [undefined, undefined, true],
    ],
  );
  bound.delete(remote);
  for (let i = 0; i < 2; i++) await assert.rejects(call());
  assert.deepEqual(
    nearTraces.all().map(({ status, error }) => status ?? error),
    [200, 'no_inbound'],
  );
  assert.equal(farTraces.all().length, 1);
});

test('the time of a failed call is that of the clock', async (t) => {
  const clock = new TestClock();
  const { call, nearTraces, world: w } = await world(t, 0, clock);
  w.access = () => {
    clock.advance(2_000);
    throw new SvcError('access_denied');
  };
  await assert.rejects(call(), { code: 'access_denied' });
  const [failed] = nearTraces.all();
  const tookMs = (failed?.end ?? 0) - (failed?.start ?? 0);
  // For up to 100 ms, traces follow the fractional time of the machine.
  assert.ok(Math.abs(tookMs - 2_000) <= 200, `${tookMs}`);
});

test('refusals show where and why', async (t) => {
  const { world: w, call, nearTraces, farTraces, bound, remote } = await world(t);
  const rejects = (code: string) => assert.rejects(call(), (error) => error instanceof SvcError && error.code === code);
  const refuse = (): void => {
    throw new SvcError('access_denied');
  };
  w.access = refuse;
  await rejects('access_denied');
  assert.deepEqual(shape(nearTraces.all()).at(-1)?.steps.at(-1), 'link access_denied');
  assert.deepEqual(farTraces.all(), []);
  w.access = () => {};
  await textOf(await call());
  w.access = refuse;
  await rejects('access_denied');
  w.access = () => {};
  const service = bound.get(remote);
  bound.delete(remote);
  await rejects('no_inbound');
  if (service !== undefined) bound.set(remote, { ...service, port: 1 });
  await rejects('inbound_unreachable');
  assert.deepEqual(
    shape(nearTraces.all())
      .slice(2)
      .map(({ error, steps }) => [error, steps.at(-1)]),
    ['access_denied', 'no_inbound', 'inbound_unreachable'].map((code) => [code, `wait ${code}`]),
  );
  assert.deepEqual(
    shape(farTraces.all())
      .slice(1)
      .map(({ status, steps }) => [status, ...steps]),
    [
      [403, 'access access_denied'],
      [503, 'access no_inbound'],
      [502, 'access', 'service inbound_unreachable'],
    ],
  );
});

test('streams run until they end, and broken ones show it', async (t) => {
  const { call, nearTraces, farTraces } = await world(t);
  const answer = await call({ path: '/stream' });
  const first = await new Promise((resolve) => answer.body.once('data', resolve));
  assert.equal(String(first), 'data: 1\n\n');
  assert.deepEqual(
    [...nearTraces.all(), ...farTraces.all()].map(({ end }) => end),
    [null, null],
  );
  const closed = new Promise((resolve) => answer.body.once('close', resolve));
  answer.body.destroy();
  await closed;
  assert.equal(nearTraces.all()[0]?.error, 'cancelled');
  await assert.rejects(buffer((await call({ path: '/broken' })).body));
  assert.equal(nearTraces.all()[1]?.error, 'bad_response');
  assert.equal(farTraces.all()[1]?.error, 'inbound_unreachable');
});

test('a switch of protocols ends the request', async (t) => {
  const { caller, local, remote, nearTraces, farTraces } = await world(t);
  const call = { method: 'GET', path: '/upgrade', headers: [], body: null };
  const answer = await caller.upgrade(local, remote, call, ['x']);
  assert.ok('socket' in answer);
  answer.socket.destroy();
  assert.deepEqual(
    [...nearTraces.all(), ...farTraces.all()].map(({ status, end }) => [status, end === null]),
    [
      [101, false],
      [101, false],
    ],
  );
});

test('calls that wait for a slot show the queue', async (t) => {
  const { call, nearTraces } = await world(t);
  const answers = await Promise.all(Array.from({ length: 70 }, () => call().then(textOf)));
  assert.equal(answers.length, 70);
  const queued = nearTraces.all().filter(({ steps }) => steps.some(({ name }) => name === 'queue'));
  assert.ok(queued.length >= 6, String(queued.length));
});

test('no path, query, header, token, body or tracestate is in a span', async (t) => {
  const { call, nearTraces, farTraces, bound, remote } = await world(t);
  const canary = 'canary7f31';
  const secret = {
    method: 'POST',
    path: `/${canary}?q=${canary}`,
    headers: [
      'x-secret',
      canary,
      'authorization',
      canary,
      'traceparent',
      `00-${TRACE}-${SPAN}-01`,
      'tracestate',
      `${canary}=1`,
    ],
    body: Readable.from([canary]),
    accessToken: canary,
  };
  await textOf(await call(secret));
  bound.delete(remote);
  await assert.rejects(call({ ...secret, body: Buffer.from(canary) }));
  const all = [...nearTraces.all(), ...farTraces.all()];
  assert.equal(all.length, 4);
  assert.ok(!JSON.stringify(all).includes(canary));
});
