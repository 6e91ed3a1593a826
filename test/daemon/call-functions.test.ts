/**
 * The functions of src that a call between two daemons runs. They tell how many layers a call passes, and do not depend
 * on the speed of the machine. Without LAN TCP, whose dials may overlap the first call. `LIST_FUNCTIONS=<file>` writes their names.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { InnerDaemon } from '../support/inner-daemon.ts';
import { RunFunctions } from '../support/run-functions.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/**
 * Functions of a call on a known connection, and of the first call to a node. Lower them when a layer goes. The second one
 * varies between 1,000 and 1,050 with the state of the record network.
 */
const MAX_WARM = 270;
const MAX_COLD = 1100;
/** Calls that only warm up, and calls that are counted. */
const WARM_UP = 20;
const WARM_CALLS = 10;
/** Nodes whose first call is counted. */
const CALLERS = 4;

const BODY = 'x'.repeat(1024);

/** Other work of the daemons runs during some calls, so only functions of every call count. */
function inEach(runs: readonly Set<string>[]): string[] {
  const [first = new Set<string>(), ...others] = runs;
  return [...others.reduce((all, run) => all.intersection(run), first)].sort();
}

async function service(t: TestContext): Promise<string> {
  const server = createServer((_, response) => response.end(BODY)).listen(0, '127.0.0.1');
  t.after(() => server.close().closeAllConnections());
  await once(server, 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a call runs few functions', async (t) => {
  await using stack = new AsyncDisposableStack();
  const agent = stack.adopt(new Agent({ keepAlive: true }), (one) => one.destroy());
  const start = async (bootstrap?: string): Promise<InnerDaemon> =>
    stack.use(
      await InnerDaemon.start({
        dataDir: temporaryDirectory(t),
        environment: { SVCD_LAN_TCP: 'false' },
        ...(bootstrap && { bootstrap }),
      }),
    );
  const called = await start();
  const aid = await called.newAgent(await service(t));
  await called.call('POST', `/agents/${aid}/publish`);
  const callers: InnerDaemon[] = [];
  while (callers.length < CALLERS) callers.push(await start(called.dhtAddress));
  using functions = await RunFunctions.start();
  const cold: Set<string>[] = [];
  const warm: Set<string>[] = [];
  for (const caller of callers) {
    const local = await caller.newAgent();
    await eventually('another node', async () => (await caller.call('GET', '/status'))['dht_peers'] !== 0);
    const headers = { 'content-type': 'application/json' };
    const call = async (): Promise<Set<string>> => {
      await functions.take();
      const sent = request(`${caller.api}/fetch/${aid}`, { method: 'POST', agent, headers });
      sent.end(JSON.stringify({ path: '/', local_aid: local }));
      const [response]: IncomingMessage[] = await once(sent, 'response');
      assert.equal(response?.statusCode, 200);
      response.resume();
      await once(response, 'end');
      return functions.take();
    };
    cold.push(await call());
    for (let i = 0; i < WARM_UP; i++) await call();
    for (let i = 0; i < WARM_CALLS; i++) warm.push(await call());
  }
  const [inWarm, inCold] = [inEach(warm), inEach(cold)];
  t.diagnostic(`${inWarm.length} functions in a warm call, ${inCold.length} in a cold one`);
  const file = process.env['LIST_FUNCTIONS'];
  if (file !== undefined) {
    writeFileSync(`${file}-warm`, inWarm.join('\n'));
    writeFileSync(`${file}-cold`, inCold.join('\n'));
  }
  assert.ok(inWarm.length <= MAX_WARM, `${inWarm.length} functions in a warm call`);
  assert.ok(inCold.length <= MAX_COLD, `${inCold.length} functions in a cold call`);
});
