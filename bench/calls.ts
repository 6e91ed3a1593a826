/** Calls between two daemons, against a plain HTTP request through a plain proxy with one hop. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { TestDaemon } from '../test/support/daemon.ts';
import { ready } from '../test/support/network.ts';
import { type BenchTable, quantile } from './table.ts';

const WARM_UP = 200;
const SAMPLES = 1000;
const PARALLEL = 16;

interface Target {
  readonly url: URL;
  readonly method: string;
  readonly body: string;
}

async function plainHttp(target?: number): Promise<{ port: number; stop: () => void }> {
  const child = fork(new URL('support/plain-http.ts', import.meta.url), target === undefined ? [] : [String(target)]);
  const [message]: unknown[] = await once(child, 'message');
  const port = typeof message === 'object' && message !== null && 'port' in message ? Number(message.port) : 0;
  return { port, stop: () => child.disconnect() };
}

const agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });

function requestOk({ url, method, body }: Target): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, agent, headers: { 'content-type': 'application/json' } }, (answer) => {
      answer.resume();
      answer.on('end', () =>
        answer.statusCode === 200 ? resolve() : reject(new Error(`status ${answer.statusCode}`)),
      );
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Milliseconds of each of `SAMPLES` sequential requests. */
async function latencies(target: Target): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < WARM_UP; i++) await requestOk(target);
  for (let i = 0; i < SAMPLES; i++) {
    const started = performance.now();
    await requestOk(target);
    samples.push(performance.now() - started);
  }
  return samples;
}

/** Requests per second, `PARALLEL` at a time. */
async function rate(target: Target): Promise<number> {
  const started = performance.now();
  let left = SAMPLES * 2;
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      while (left-- > 0) await requestOk(target);
    }),
  );
  return (SAMPLES * 2 * 1000) / (performance.now() - started);
}

export async function run(): Promise<BenchTable> {
  const service = await plainHttp();
  const proxy = await plainHttp(service.port);
  await using first = await TestDaemon.start({ env: { SVCD_LOG_LEVEL: 'warn' } });
  await using second = await TestDaemon.start({ bootstrap: [first.dhtAddress], env: { SVCD_LOG_LEVEL: 'warn' } });
  await Promise.all([ready(first), ready(second)]);
  await first.newAgent();
  const aid = await second.newAgent(`127.0.0.1:${service.port}`);
  await second.call('POST', `/agents/${aid}/publish`);
  const plain: Target = { url: new URL(`http://127.0.0.1:${proxy.port}/`), method: 'POST', body: '{}' };
  const fetched: Target = {
    url: new URL(`${first.api}/fetch/${aid}`),
    method: 'POST',
    body: JSON.stringify({ path: '/' }),
  };
  const cold = performance.now();
  await requestOk(fetched);
  const coldMs = performance.now() - cold;
  const plainTimes = await latencies(plain);
  const fetchTimes = await latencies(fetched);
  const plainRate = await rate(plain);
  const fetchRate = await rate(fetched);
  service.stop();
  proxy.stop();
  agent.destroy();
  const p50 = quantile(fetchTimes, 0.5);
  const plain50 = quantile(plainTimes, 0.5);
  return {
    title: 'Calls: POST /fetch between two daemons; yardstick: plain HTTP through a plain one-hop proxy',
    rows: [
      {
        what: 'warm call, p50',
        value: p50,
        unit: 'ms',
        yardstick: plain50,
        ratio: p50 / plain50,
        aim: '≤ 3 ×',
        ok: p50 <= 3 * plain50,
      },
      {
        what: 'warm call, p99',
        value: quantile(fetchTimes, 0.99),
        unit: 'ms',
        yardstick: quantile(plainTimes, 0.99),
        ratio: quantile(fetchTimes, 0.99) / quantile(plainTimes, 0.99),
      },
      {
        what: `calls per second, ${PARALLEL} at a time`,
        value: fetchRate,
        unit: '/s',
        yardstick: plainRate,
        ratio: fetchRate / plainRate,
      },
      { what: 'first call (search, connection, proofs)', value: coldMs, unit: 'ms' },
    ],
  };
}
