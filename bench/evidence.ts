/**
 * The cost of evidence per call: the same call by two agents of one node, alternating. Only one of them signs its
 * calls.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { TestDaemon } from '../test/support/daemon.ts';
import { ready } from '../test/support/network.ts';
import { type BenchTable, quantile } from './table.ts';

const WARM_UP = 200;
const SAMPLES = 2000;
/** Maximum cost of evidence per call, milliseconds. */
const AIM_MS = 0.5;

async function plainHttp(): Promise<{ port: number; stop: () => void }> {
  const child = fork(new URL('support/plain-http.ts', import.meta.url), []);
  const [message]: unknown[] = await once(child, 'message');
  const port = typeof message === 'object' && message !== null && 'port' in message ? Number(message.port) : 0;
  return { port, stop: () => child.disconnect() };
}

/** Milliseconds of one call. */
async function timed(url: string, body: string): Promise<number> {
  const started = performance.now();
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  return performance.now() - started;
}

export async function run(): Promise<BenchTable> {
  const service = await plainHttp();
  await using first = await TestDaemon.start({ env: { SVCD_LOG_LEVEL: 'warn' } });
  await using second = await TestDaemon.start({ bootstrap: [first.dhtAddress], env: { SVCD_LOG_LEVEL: 'warn' } });
  await Promise.all([ready(first), ready(second)]);
  const plain = await first.newAgent();
  const signing = await first.newAgent();
  await first.call('PUT', `/agents/${signing}/evidence`, { enabled: true });
  const aid = await second.newAgent(`http://127.0.0.1:${service.port}`);
  await second.call('POST', `/agents/${aid}/publish`);
  const call = (local_aid: string) =>
    timed(
      `${first.api}/fetch/${aid}`,
      JSON.stringify({ local_aid, path: '/', method: 'POST', body_base64: btoa('{"text":"Guten Tag"}') }),
    );
  for (let i = 0; i < WARM_UP; i++) for (const agent of [plain, signing]) await call(agent);
  const times: Record<'plain' | 'signed', number[]> = { plain: [], signed: [] };
  for (let i = 0; i < SAMPLES; i++) {
    times.plain.push(await call(plain));
    times.signed.push(await call(signing));
  }
  service.stop();
  const row = (what: string, q: number) => {
    const [value, yardstick] = [quantile(times.signed, q), quantile(times.plain, q)];
    return { what, value, unit: 'ms', yardstick, ratio: value / yardstick };
  };
  const added = quantile(times.signed, 0.5) - quantile(times.plain, 0.5);
  return {
    title: 'Evidence: POST /fetch by an agent that signs its calls; yardstick: by one that does not',
    rows: [
      row('warm call, p50', 0.5),
      row('warm call, p95', 0.95),
      { what: 'added, p50', value: added, unit: 'ms', aim: `≤ ${AIM_MS} ms`, ok: added <= AIM_MS },
    ],
  };
}
