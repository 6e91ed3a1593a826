/** Networks of nodes that the felt benchmark asks: of svcd, and of A2AL where SVCD_BENCH_A2AL names its program. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../../test/support/daemon.ts';
import { ready } from '../../test/support/network.ts';

/** The variable that names the program of A2AL. */
const A2AL_VARIABLE = 'SVCD_BENCH_A2AL';
/** Milliseconds for the nodes of the other product to find each other, which tell nobody when they have. */
const SETTLE_MS = 8000;
const START_MS = 20_000;
/** How many others a node of svcd has to know before it counts. */
const KNOWN_PEERS = 2;

export interface FeltNode {
  /** Where its API is. */
  readonly port: number;
  readonly pid: number;
}

export interface FeltNetwork {
  readonly name: 'svcd' | 'a2al';
  readonly nodes: readonly FeltNode[];
  stop(): Promise<void>;
}

/** CPU time of a process so far, milliseconds, as fine as the scheduler counts. */
export function cpuMs(pid: number): number {
  let ns = 0;
  for (const task of readdirSync(`/proc/${pid}/task`))
    ns += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
  return ns / 1e6;
}

/** `count` daemons of this checkout that know each other. */
export async function svcdNetwork(count: number): Promise<FeltNetwork> {
  const first = await TestDaemon.start({ env: { SVCD_LOG_LEVEL: 'warn' } });
  const daemons = [first];
  while (daemons.length < count)
    daemons.push(await TestDaemon.start({ bootstrap: [first.dhtAddress], env: { SVCD_LOG_LEVEL: 'warn' } }));
  await Promise.all(daemons.map((daemon) => ready(daemon, Math.min(KNOWN_PEERS, count - 1))));
  const nodes = daemons.map(({ api, process: { pid = 0 } }) => ({ port: Number(new URL(api).port), pid }));
  return {
    name: 'svcd',
    nodes,
    async stop() {
      await Promise.all(daemons.map((daemon) => daemon.stop()));
    },
  };
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

/** As many of A2AL; null where its program is not named. */
export async function a2alNetwork(count: number): Promise<FeltNetwork | null> {
  const program = process.env[A2AL_VARIABLE];
  if (program === undefined) return null;
  const home = mkdtempSync(join(tmpdir(), 'felt-a2al-'));
  const children: ChildProcess[] = [];
  const nodes: FeltNode[] = [];
  let bootstrap = '';
  for (let i = 0; i < count; i++) {
    const [port, dht] = [await freePort(), await freePort()];
    const where = ['-data-dir', join(home, `${i}`), '-api-addr', `127.0.0.1:${port}`, '-listen', `127.0.0.1:${dht}`];
    const known = bootstrap === '' ? [] : ['-bootstrap', bootstrap];
    const args = [...where, '-fallback-host', '127.0.0.1', '-no-open-browser', ...known];
    const child = spawn(program, args, { stdio: 'ignore' });
    children.push(child);
    nodes.push({ port, pid: child.pid ?? 0 });
    const until = performance.now() + START_MS;
    while (!(await isHealthy(port))) {
      if (performance.now() > until) throw new Error('A2AL did not start');
      await delay(50);
    }
    if (i === 0) bootstrap = `127.0.0.1:${dht}`;
  }
  await delay(SETTLE_MS);
  return {
    name: 'a2al',
    nodes,
    async stop() {
      await Promise.all(
        children.map(async (child) => {
          child.kill();
          await once(child, 'exit');
        }),
      );
      rmSync(home, { recursive: true, force: true });
    },
  };
}
