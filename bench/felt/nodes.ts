/**
 * Networks of nodes for the perceived latency benchmark: of svcd, and of A2AL or another svcd if a variable names it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../../test/support/daemon.ts';
import { ready } from '../../test/support/network.ts';

/**
 * The program of A2AL, and the folder of another checkout of svcd. At most one of them is compared with this checkout.
 */
const { SVCD_BENCH_A2AL: A2AL, SVCD_BENCH_BEFORE: BEFORE } = process.env;
/** The compared product, or null. */
export const YARDSTICK = BEFORE !== undefined ? 'svcd before' : A2AL !== undefined ? 'A2AL' : null;
/** Time for the other product's nodes to find each other, milliseconds. They do not report it. */
const SETTLE_MS = 8000;
const START_MS = 20_000;
/** Number of nodes that an svcd node must know before the measurement starts. */
const KNOWN_PEERS = 2;

export interface FeltNode {
  /** URL of its API. */
  readonly port: number;
  readonly pid: number;
}

export interface FeltNetwork {
  readonly name: 'svcd' | 'a2al';
  readonly nodes: readonly FeltNode[];
  stop(): Promise<void>;
}

/** CPU time of a process so far in milliseconds, with the resolution of the scheduler. */
export function cpuMs(pid: number): number {
  let ns = 0;
  for (const task of readdirSync(`/proc/${pid}/task`))
    ns += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
  return ns / 1e6;
}

/** Starts `count` daemons that know each other, from this checkout or from a folder. */
export async function svcdNetwork(count: number, folder?: string): Promise<FeltNetwork> {
  const command = folder === undefined ? {} : { command: [process.execPath, join(folder, 'bin/svcd')] as const };
  const options = { ...command, env: { SVCD_LOG_LEVEL: 'warn' } };
  const daemons: TestDaemon[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(daemons.map((daemon) => daemon.stop()));
  };
  try {
    while (daemons.length < count) {
      const [first] = daemons;
      const bootstrap = first === undefined ? [] : [first.dhtAddress];
      daemons.push(await TestDaemon.start({ ...options, bootstrap }));
    }
    await Promise.all(daemons.map((daemon) => ready(daemon, Math.min(KNOWN_PEERS, count - 1))));
  } catch (error) {
    await stop();
    throw error;
  }
  const nodes = daemons.map(({ api, process: { pid = 0 } }) => ({ port: Number(new URL(api).port), pid }));
  return { name: 'svcd', nodes, stop };
}

/** The compared product, or null. */
export async function otherNetwork(count: number): Promise<FeltNetwork | null> {
  if (BEFORE !== undefined) return await svcdNetwork(count, BEFORE);
  return A2AL === undefined ? null : await a2alNetwork(count, A2AL);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return address === null || typeof address === 'string' ? 0 : address.port;
}

async function isHealthy(port: number): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${port}/health`).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function a2alNetwork(count: number, program: string): Promise<FeltNetwork> {
  const home = mkdtempSync(join(tmpdir(), 'felt-a2al-'));
  const children: ChildProcess[] = [];
  const nodes: FeltNode[] = [];
  const stop = async (): Promise<void> => {
    const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    await Promise.all(
      running.map(async (child) => {
        const exited = once(child, 'exit');
        child.kill();
        await exited;
      }),
    );
    rmSync(home, { recursive: true, force: true });
  };
  // Each node bootstraps from all earlier ones. With a single bootstrap node, its records reach some nodes only after
  // minutes.
  const bootstrap: string[] = [];
  try {
    for (let i = 0; i < count; i++) {
      const [port, dht] = [await freePort(), await freePort()];
      const where = ['-data-dir', join(home, `${i}`), '-api-addr', `127.0.0.1:${port}`, '-listen', `127.0.0.1:${dht}`];
      const known = bootstrap.length === 0 ? [] : ['-bootstrap', bootstrap.join(',')];
      const args = [...where, '-fallback-host', '127.0.0.1', '-no-open-browser', ...known];
      const child = spawn(program, args, { stdio: 'ignore' });
      children.push(child);
      nodes.push({ port, pid: child.pid ?? 0 });
      const until = performance.now() + START_MS;
      while (!(await isHealthy(port))) {
        if (performance.now() > until) throw new Error('A2AL did not start');
        await delay(50);
      }
      bootstrap.push(`127.0.0.1:${dht}`);
    }
    await delay(SETTLE_MS);
  } catch (error) {
    await stop();
    throw error;
  }
  return { name: 'a2al', nodes, stop };
}
