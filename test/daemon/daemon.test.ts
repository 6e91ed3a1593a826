import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { InnerDaemon } from '../support/inner-daemon.ts';
import { heapInUse, LeakCheck } from '../support/leak-check.ts';
import { SseClient } from '../support/sse.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const STARTS = 20;
/** Starts until one-time allocations are done: compiled code, caches. */
const WARM_UP_STARTS = 5;
/** Allowed heap growth per further start, in bytes. The parts of a daemon take several megabytes. */
const MAX_GROWTH_PER_START = 256 * 1024;

/** Starts a daemon, uses each surface, and stops it while a client still listens to events. */
async function live(dataDir: string): Promise<void> {
  await using daemon = await InnerDaemon.start({ dataDir, environment: { SVCD_MDNS: 'true' } });
  const events = await SseClient.open(`${daemon.api}/events`);
  const { node_aid } = await daemon.call('GET', '/status');
  assert.match(String(node_aid), /^aid1/);
  await daemon.call('POST', '/mcp/call', { tool: 'svc_status', args: {} });
  await daemon.stop();
  await events.until(({ ended }) => ended);
}

/** Two daemons with a call and a tunnel, stopped in the middle. */
async function talk(t: TestContext): Promise<void> {
  /** Sends only the beginning of a response to `/endless`. */
  const service = createServer(({ url }, response) => {
    if (url === '/endless') response.write('begin');
    else response.end('ok');
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const { port } = service.address() as AddressInfo;
  try {
    await using called = await InnerDaemon.start({ dataDir: temporaryDirectory(t) });
    const agent = await called.newAgent(`127.0.0.1:${port}`);
    await called.call('POST', `/agents/${agent}/publish`);
    await using caller = await InnerDaemon.start({ dataDir: temporaryDirectory(t), bootstrap: called.dhtAddress });
    await eventually('the other node', async () => (await caller.call('GET', '/status'))['dht_peers'] === 1);
    const { status } = await caller.call('POST', `/fetch/${agent}`, { path: '/' });
    assert.equal(status, 200);
    const { listen } = await caller.call('POST', `/tunnel/${agent}`, {});
    const through = connect(Number(String(listen).split(':')[1]), '127.0.0.1').on('error', () => {});
    through.write('GET /endless HTTP/1.1\r\nhost: x\r\n\r\n');
    const answer = request(`${caller.api}/aid/${agent}/endless`, { agent: false }).on('error', () => {});
    answer.end();
    const [[response]] = await Promise.all([once(answer, 'response'), once(through, 'data')]);
    const ended = [response.on('error', () => {}).resume(), through].map(
      (stream) => new Promise((resolve) => stream.once('close', resolve)),
    );
    await caller.stop();
    await Promise.all(ended);
  } finally {
    service.close().closeAllConnections();
  }
}

test('a daemon that starts and stops twenty times leaves no timer, handle or heap behind', async (t) => {
  const dataDir = temporaryDirectory(t);
  await live(dataDir);
  const check = LeakCheck.begin();
  let warm = 0;
  for (let start = 1; start < STARTS; start++) {
    await live(dataDir);
    await check.assertNothingLeft();
    if (start === WARM_UP_STARTS) warm = await heapInUse();
  }
  const growth = ((await heapInUse()) - warm) / (STARTS - 1 - WARM_UP_STARTS);
  assert.ok(growth < MAX_GROWTH_PER_START, `each start leaves ${Math.round(growth / 1024)} KiB on the heap`);
});

test('daemons that stop during calls and tunnels leave nothing behind', async (t) => {
  await talk(t);
  const check = LeakCheck.begin();
  await talk(t);
  await check.assertNothingLeft({ collecting: true });
});

test('a failed start leaves nothing behind', async (t) => {
  const dataDir = temporaryDirectory(t);
  await live(dataDir);
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const check = LeakCheck.begin();
  const environment = { SVCD_API_ADDR: `127.0.0.1:${port}` };
  await assert.rejects(InnerDaemon.start({ dataDir, environment }), { code: 'address_in_use' });
  await check.assertNothingLeft();
  await live(dataDir);
});
