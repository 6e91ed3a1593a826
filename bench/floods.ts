/**
 * Floods by strangers against a daemon in a separate process, one at a time. Measures latency of `/health` compared
 * with a plain Node server, additional memory, and whether honest clients are served. `FLOODS=name,…` selects floods.
 * `FLOODS_PROFILE=directory` stores CPU profiles of the daemon.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Address, parseAddress } from '../src/foundation/address.ts';
import { toHex } from '../src/foundation/bytes.ts';
import { TestDaemon } from '../test/support/daemon.ts';
import { ready } from '../test/support/network.ts';
import { fill, nodeKeyOf } from './support/datagram-floods.ts';
import type { Target } from './support/flood.ts';
import { FLOODS } from './support/flood-child.ts';
import { HONEST_HOST, httpGet, keepAsking, recordQuestion, Served } from './support/honest.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const MIB = 1024 * 1024;
const FLOOD_MS = 12_000;
/** Idle time after each flood, before the remaining memory is measured. */
const SETTLE_MS = 3_000;
const SAMPLE_MS = 20;
const CALL_MS = 250;
const RECORDS = 1000;
const SERVICE = 'flood.test';
const PLAIN = new URL('support/plain-http.ts', import.meta.url);
const P99_AIM_MS = 100;
const MEMORY_AIM_MIB = 64;

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new Error(`${text} is no address`);
  return address;
}

function residentMib({ process: { pid } }: TestDaemon): number {
  return (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096) / MIB;
}

/** Peak memory of a daemon until the signal, MiB. */
async function peakMib(daemon: TestDaemon, until: AbortSignal): Promise<number> {
  let peak = 0;
  while (!until.aborted) {
    peak = Math.max(peak, residentMib(daemon));
    await delay(100);
  }
  return peak;
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const [message]: unknown[] = await once(child, 'message');
  return message;
}

async function portOf(child: ChildProcess): Promise<number> {
  return ((await nextMessage(child)) as { readonly port: number }).port;
}

interface World {
  readonly daemon: TestDaemon;
  readonly target: Target;
  readonly plainPort: number;
  /** A call of another daemon's agent to the service behind this one. */
  readonly call: URL;
}

interface Outcome {
  readonly perSecond: number;
  readonly health: Served;
  readonly plain: Served;
  readonly fresh: Served;
  readonly records: Served;
  readonly calls: Served;
  readonly before: number;
  readonly peak: number;
  readonly after: number;
}

/** Measures during a flood; `null` measures without one. */
async function measure({ daemon, target, plainPort, call }: World, name: string | null): Promise<Outcome> {
  const child =
    name === null ? null : fork(new URL('support/flood-child.ts', import.meta.url), [name, JSON.stringify(target)]);
  const ended = child === null ? null : once(child, 'exit');
  if (child !== null) await nextMessage(child);
  const agent = new Agent({ keepAlive: true });
  const until = new AbortController();
  const question = await recordQuestion(target.dht, SERVICE);
  const before = residentMib(daemon);
  child?.send('go');
  const health = new URL('/health', daemon.api);
  const measuring = Promise.all([
    keepAsking(httpGet(health, agent), SAMPLE_MS, until.signal),
    keepAsking(httpGet(new URL(`http://127.0.0.1:${plainPort}/`), agent), SAMPLE_MS, until.signal),
    keepAsking(httpGet(health, false), CALL_MS, until.signal),
    keepAsking(question.ask, CALL_MS, until.signal),
    keepAsking(httpGet(call, agent), CALL_MS, until.signal),
    peakMib(daemon, until.signal),
  ]);
  await delay(FLOOD_MS);
  until.abort();
  let perSecond = 0;
  if (child !== null) {
    const answer = nextMessage(child);
    child.send('enough');
    perSecond = ((await answer) as { readonly perSecond: number }).perSecond;
  }
  const [ours, plain, fresh, records, calls, peak] = await measuring;
  agent.destroy();
  question.close();
  if (child?.connected === true) child.disconnect();
  await ended;
  if (daemon.process.exitCode !== null) throw new Error(`${name} ended the daemon:\n${daemon.output}`);
  await delay(SETTLE_MS);
  return { perSecond, health: ours, plain, fresh, records, calls, before, peak, after: residentMib(daemon) };
}

function percent({ served, asked }: Served): string {
  return `${served}/${asked}`;
}

function rowsOf(
  name: string,
  { health, plain, fresh, records, calls, perSecond, before, peak, after }: Outcome,
): BenchRow[] {
  const p99 = quantile(health.times, 0.99);
  const [ours50, plain99] = [quantile(health.times, 0.5), quantile(plain.times, 0.99)];
  const honest = [health, fresh, records, calls];
  const unserved = Math.min(...honest.map(({ share }) => share));
  console.log(
    `${name}: ${Math.round(perSecond)}/s, /health p50 ${ours50.toFixed(1)} p99 ${p99.toFixed(1)} max ${Math.max(...health.times).toFixed(0)} ms (plain p99 ${plain99.toFixed(1)}), ` +
      `memory ${before.toFixed(0)} +${(peak - before).toFixed(0)} then +${(after - before).toFixed(0)} MiB, ` +
      `served: health ${percent(health)}, new connection ${percent(fresh)}, records ${percent(records)}, calls ${percent(calls)} p99 ${quantile(calls.times, 0.99).toFixed(0)} ms`,
  );
  const more = peak - before;
  return [
    { what: `${name}, sent`, value: perSecond, unit: '/s' },
    { what: '  /health p50', value: ours50, unit: 'ms', yardstick: quantile(plain.times, 0.5) },
    {
      what: '  /health p99',
      value: p99,
      unit: 'ms',
      yardstick: plain99,
      aim: `≤ ${P99_AIM_MS} ms`,
      ok: p99 <= P99_AIM_MS,
    },
    {
      what: '  additional memory',
      value: more,
      unit: 'MiB',
      aim: `≤ ${MEMORY_AIM_MIB} MiB`,
      ok: more <= MEMORY_AIM_MIB,
    },
    { what: '  additional memory afterwards', value: after - before, unit: 'MiB' },
    { what: '  honest requests served', value: unserved * 100, unit: '%', aim: '≥ 99 %', ok: unserved >= 0.99 },
  ];
}

async function targetOf(daemon: TestDaemon, floodedPort: number): Promise<Target> {
  const dht = addressOf(daemon.dhtAddress);
  const guarded = await daemon.newAgent();
  const open = await daemon.newAgent(`127.0.0.1:${floodedPort}`);
  await daemon.call('PATCH', `/agents/${guarded}/acl`, { default: 'deny' });
  await daemon.call('POST', `/agents/${guarded}/acl/allow`, { secret: 'correct horse battery' });
  const nodeKey = toHex(await nodeKeyOf(dht));
  const [quic, api] = [addressOf(daemon.quicAddress), addressOf(daemon.api.slice('http://'.length))];
  return { dht, quic, api, nodeKey, guarded, open, service: SERVICE };
}

export async function run(): Promise<BenchTable> {
  // The floods call a separate service, so that they do not slow the yardstick.
  const [plain, flooded] = [fork(PLAIN), fork(PLAIN)];
  const [plainPort, floodedPort] = await Promise.all([portOf(plain), portOf(flooded)]);
  const env = { SVCD_LOG_LEVEL: 'warn' };
  const directory = process.env['FLOODS_PROFILE'];
  const profile = directory === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${directory}`];
  await using daemon = await TestDaemon.start({ env, command: [process.execPath, ...profile, 'bin/svcd'] });
  const args = ['--listen', `${HONEST_HOST}:0`];
  await using honest = await TestDaemon.start({ bootstrap: [daemon.dhtAddress], env, args });
  await ready(honest);
  const target = await targetOf(daemon, floodedPort);
  const called = await daemon.newAgent(`127.0.0.1:${plainPort}`);
  await daemon.call('POST', `/agents/${called}/publish`);
  // The owner of the flooded agent names the honest caller.
  await honest.newAgent();
  const { node_aid: caller } = await honest.call<{ node_aid: string }>('GET', '/status');
  await daemon.call('POST', `/agents/${called}/acl/allow`, { aid: caller });
  await fill(target, RECORDS);
  const world = { daemon, target, plainPort, call: new URL(`/aid/${called}/`, honest.api) };
  const only = process.env['FLOODS']?.split(',');
  // Compiled code and caches filled by this warm-up do not count as memory of a flood.
  await measure(world, 'all of these, mixed');
  await measure(world, null);
  const rows = rowsOf('nothing', await measure(world, null));
  for (const name of Object.keys(FLOODS))
    if (only === undefined || only.some((part) => name.includes(part)))
      rows.push(...rowsOf(name, await measure(world, name)));
  plain.disconnect();
  flooded.disconnect();
  return { title: 'Floods by one source; yardstick: a plain Node server without a flood', rows };
}
