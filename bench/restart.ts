/** A node with a thousand agents rejoins its network, at the same port and at another one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { InstalledPackage } from './support/installed.ts';
import { type Command, PolledDaemon, type PolledOptions } from './support/polled-daemon.ts';
import { type BenchTable, quantile } from './table.ts';

const PEERS = 3;
const AGENTS = 1000;
/** Concurrent registrations. */
const AT_ONCE = 8;
const ROUNDS = 3;
/** Measuring time of a restarted node, milliseconds. */
const AFTER_MS = 10_000;
const AIM_CPU_MS = 600;
const LOOK_MS = 1000;

interface Listed {
  readonly agents: readonly { readonly last_publish_at: string | null }[];
}

/** Number of agents published since a time, Unix milliseconds. */
async function publishedSince(daemon: PolledDaemon, since: number): Promise<number> {
  const { agents } = await daemon.call<Listed>('GET', `/agents?limit=${AGENTS}`);
  return agents.filter(({ last_publish_at: at }) => at !== null && Date.parse(at) >= since).length;
}

async function allPublishedSince(daemon: PolledDaemon, since: number): Promise<void> {
  while ((await publishedSince(daemon, since)) < AGENTS) await delay(LOOK_MS);
}

async function measure(svcd: Command, home: PolledOptions): Promise<BenchTable> {
  const began = Date.now();
  {
    await using first = await PolledDaemon.start(svcd, home);
    let left = AGENTS;
    const register = async (): Promise<void> => {
      while (left-- > 0) await first.newAgent();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, register));
    await allPublishedSince(first, began);
  }
  const cpuMs: number[] = [];
  let republished = 0;
  for (let i = 0; i < ROUNDS; i++) {
    const started = Date.now();
    await using again = await PolledDaemon.start(svcd, home);
    const before = again.cpuMs();
    await delay(AFTER_MS);
    cpuMs.push(again.cpuMs() - before);
    republished = Math.max(republished, await publishedSince(again, started));
  }
  const started = Date.now();
  await using moved = await PolledDaemon.start(svcd, { ...home, ports: await PolledDaemon.anyPorts() });
  const before = moved.cpuMs();
  await allPublishedSince(moved, started);
  const [seconds, cpu] = [(Date.now() - started) / 1000, (moved.cpuMs() - before) / AGENTS];
  const inTenSeconds = quantile(cpuMs, 0.5);
  return {
    title: `A node with ${AGENTS} agents rejoins a network of ${PEERS} other nodes`,
    rows: [
      {
        what: 'republished at the same port, maximum',
        value: republished,
        unit: 'agents',
        aim: 'none',
        ok: republished === 0,
      },
      {
        what: 'CPU time in the next 10 s, p50',
        value: inTenSeconds,
        unit: 'ms',
        aim: `≤ ${AIM_CPU_MS} ms`,
        ok: inTenSeconds <= AIM_CPU_MS,
      },
      { what: 'at another port: all republished after', value: seconds, unit: 's' },
      { what: 'CPU time per agent', value: cpu, unit: 'ms' },
    ],
  };
}

export async function run(): Promise<BenchTable> {
  const installed = new InstalledPackage();
  const dataDir = mkdtempSync(join(tmpdir(), 'svcd-back-'));
  const svcd: Command = [process.execPath, installed.program('svcd')];
  const peers: PolledDaemon[] = [];
  try {
    for (let i = 0; i < PEERS; i++)
      peers.push(await PolledDaemon.start(svcd, { bootstrap: peers.slice(0, 1).map((peer) => peer.dhtAddress) }));
    const bootstrap = peers.map((peer) => peer.dhtAddress);
    return await measure(svcd, { dataDir, bootstrap, ports: await PolledDaemon.anyPorts() });
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
    installed.remove();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
