/** CPU time that traces cost a call, on both daemons. The same two daemons make the calls with and without traces. */
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import { TestDaemon } from '../test/support/daemon.ts';
import { ready } from '../test/support/network.ts';
import { threadMs } from './support/process-usage.ts';
import type { TraceMode } from './support/traced-daemon.ts';
import type { BenchTable } from './table.ts';

/** Calls in each mode. */
const CALLS = 10_000;
/** Calls before the measurement in each mode, and in each block. The modes take turns in random order. */
const WARM_UP = 2_000;
const BLOCK = 50;
const PARALLEL = 8;
const MODES: readonly TraceMode[] = ['without', 'unsampled', 'sampled'];

const agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });

function callOnce(url: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent }, (answer) => {
      answer.resume().once('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error('a call failed'))));
    });
    sent.once('error', reject).end();
  });
}

async function calls(url: URL, count: number): Promise<void> {
  let left = count;
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      while (left-- > 0) await callOnce(url);
    }),
  );
}

export async function run(): Promise<BenchTable> {
  const service = createServer((_, response) => response.end('ok'));
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  const address = service.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const command = [process.execPath, new URL('support/traced-daemon.ts', import.meta.url).pathname] as const;
  const options = { command, env: { SVCD_LOG_LEVEL: 'warn' } };
  await using near = await TestDaemon.start(options);
  await using far = await TestDaemon.start({ ...options, bootstrap: [near.dhtAddress] });
  await Promise.all([ready(near), ready(far)]);
  await near.newAgent();
  const aid = await far.newAgent(`127.0.0.1:${port}`);
  await far.call('POST', `/agents/${aid}/publish`);
  const url = new URL(`${near.api}/aid/${aid}/`);
  const cpuMs = (): number => threadMs(near.process.pid) + threadMs(far.process.pid);
  const set = (mode: TraceMode): void => {
    for (const daemon of [near, far]) daemon.process.send({ mode });
  };
  for (const mode of MODES) {
    set(mode);
    await calls(url, WARM_UP);
  }
  const used: Record<TraceMode, number> = { without: 0, unsampled: 0, sampled: 0 };
  for (let done = 0; done < CALLS; done += BLOCK) {
    // A fixed order would charge the garbage of one mode to the next.
    for (const mode of MODES.toSorted(() => Math.random() - 0.5)) {
      set(mode);
      await calls(url, PARALLEL);
      const before = cpuMs();
      await calls(url, BLOCK);
      used[mode] += cpuMs() - before;
    }
  }
  agent.destroy();
  service.close();
  const row = (what: string, value: number, limit?: number) => ({
    what,
    value,
    unit: 'ms',
    yardstick: used.without,
    ratio: value / used.without,
    ...(limit === undefined ? {} : { aim: `≤ ${limit} ×`, ok: value <= limit * used.without }),
  });
  return {
    title: `Traces: CPU time of both daemons for ${CALLS} calls; yardstick: the same without traces`,
    rows: [row('not sampled', used.unsampled, 1.03), row('sampled', used.sampled)],
  };
}
