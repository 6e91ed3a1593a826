import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import {
  BATCH_MS,
  MAX_BATCH,
  MAX_QUEUED_REQUESTS,
  parseHeaders,
  TraceExporter,
} from '../../../src/capabilities/traces/exporter.ts';
import { detach } from '../../../src/foundation/detached.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { Traces } from '../../../src/foundation/traces/traces.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const [caller, called] = [1, 2].map((byte) => nativeAid(new Uint8Array(32).fill(byte)));

interface Batch {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly { name: string }[] }[];
  }[];
}

async function world(t: TestContext, headersFile = '') {
  const clock = new TestClock();
  const received: { url: string | undefined; headers: IncomingHttpHeaders; spans: string[] }[] = [];
  const world = { status: 200, location: '' };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { resourceSpans } = JSON.parse((await buffer(request)).toString()) as Batch;
    const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
    received.push({ url: request.url, headers: request.headers, spans: spans.map(({ name }) => name) });
    if (world.location !== '') response.setHeader('location', world.location);
    response.writeHead(world.status).end('{"partialSuccess":{}}');
  };
  const server = createServer((request, response) => detach(answer(request, response)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const logged: string[] = [];
  const say = (fields: object, text: string): void => void logged.push(`${text} ${JSON.stringify(fields)}`);
  const exporter = new TraceExporter({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`,
    headersFile,
    instance: 'node',
    clock,
    log: { ...silentLog, warn: say, info: say },
    random: () => 0,
  });
  t.after(() => exporter.stop());
  const traces = new Traces({ clock, randomBytes, percent: 100 });
  traces.onEnd = (request, holder) => exporter.add(request, holder);
  const add = (holder: 'own' | 'stranger', count = 1, method = 'GET'): void => {
    assert.ok(caller !== undefined && called !== undefined);
    for (let i = 0; i < count; i++)
      traces.continue(null, { side: 'caller', caller, called, method }, () => holder).request?.finish();
  };
  /** Lets time pass until a batch was answered. */
  const batch = async (ms = BATCH_MS): Promise<void> => {
    const before = received.length;
    clock.advance(ms);
    await eventually('a batch arrives', async () => received.length > before);
    await eventually(
      'it was answered',
      async () => exporter.state.sent + exporter.state.dropped > 0 || exporter.state.isFailing,
    );
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, received, world, exporter, logged, add, batch };
}

test('ended requests are sent together, and an idle exporter does nothing', async (t) => {
  const { clock, received, exporter, add, batch } = await world(t);
  assert.equal(clock.timers, 0);
  add('own', 2);
  add('stranger');
  await batch();
  assert.deepEqual(
    received.map(({ url, spans }) => [url, spans]),
    [['/base/v1/traces', ['GET', 'GET', 'GET']]],
  );
  assert.deepEqual(exporter.state, { sent: 3, dropped: 0, isFailing: false });
  assert.equal(clock.timers, 0);
});

test('the queue has a limit, strangers use only their part, and batches too', async (t) => {
  const { received, exporter, add, batch } = await world(t);
  add('stranger', 2 * MAX_QUEUED_REQUESTS, 'PUT');
  add('own', 10);
  assert.deepEqual(exporter.state, { sent: 0, dropped: MAX_QUEUED_REQUESTS, isFailing: false });
  await batch();
  assert.equal(received[0]?.spans.length, MAX_BATCH);
  assert.equal(received[0]?.spans.filter((name) => name === 'GET').length, 10);
});

test('a collector that is down gets the same batch again, later each time, and is reported once', async (t) => {
  const { clock, received, world: w, exporter, logged, add, batch } = await world(t);
  w.status = 503;
  add('own');
  await batch();
  await eventually('the retry is planned', async () => clock.timers === 1);
  add('own');
  await batch();
  await eventually('the next retry is planned', async () => clock.timers === 1);
  clock.advance(BATCH_MS);
  assert.equal(received.length, 2);
  w.status = 200;
  await batch(BATCH_MS);
  await eventually('both were sent', async () => exporter.state.sent === 2);
  assert.deepEqual(
    received.map(({ spans }) => spans.length),
    [1, 2, 2],
  );
  assert.deepEqual(logged, [
    'traces cannot be sent to the collector {"reason":"status 503"}',
    'the collector accepts traces again {}',
  ]);
});

test('a rejected batch is dropped, and a redirect is not followed', async (t) => {
  const { clock, received, world: w, exporter, add, batch } = await world(t);
  w.status = 400;
  add('own', 3);
  await batch();
  await eventually('it was dropped', async () => exporter.state.dropped === 3);
  Object.assign(w, { status: 307, location: '/elsewhere' });
  add('own');
  await batch(10 * BATCH_MS);
  await eventually('the retry is planned', async () => clock.timers === 1);
  assert.ok(received.every(({ url }) => url === '/base/v1/traces'));
  assert.equal(exporter.state.sent, 0);
});

test('headers come from a file that is read for each batch, and never reach the log', async (t) => {
  const file = join(temporaryDirectory(t), 'headers');
  writeFileSync(file, '# key\r\nAuthorization: Bearer secret1 \n\nx-team: a\n');
  const { clock, received, exporter, logged, add, batch } = await world(t, file);
  add('own');
  await batch();
  assert.equal(received[0]?.headers.authorization, 'Bearer secret1');
  assert.equal(received[0]?.headers['x-team'], 'a');
  writeFileSync(file, 'secret2 without a colon\n');
  add('own');
  clock.advance(BATCH_MS);
  await eventually('the file is reported', async () => exporter.state.isFailing && logged.length === 1);
  rmSync(file);
  assert.equal(received.length, 1);
  assert.ok(!JSON.stringify(logged).includes('secret'));
});

test('the last batch is sent when the daemon stops', async (t) => {
  const { received, exporter, add } = await world(t);
  add('own');
  await exporter.stop();
  assert.deepEqual(received[0]?.spans, ['GET']);
});

test('a file with headers has one "Name: value" a line', () => {
  assert.deepEqual(parseHeaders('a: b\nC:d: e'), { a: 'b', c: 'd: e' });
  for (const text of ['a', 'a b: c', ': c', 'a: \u0000', `a: ${'x'.repeat(20_000)}`])
    assert.equal(parseHeaders(text), null);
});
