/**
 * Tunnels over a path with delay, with and without loss, compared with plain TCP over the same path. The benchmark
 * creates the path: two network namespaces, joined by tun devices that a small program connects. Needs `unshare`, `ip`
 * and `python3`, but not root.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { BenchRow, BenchTable } from './table.ts';

const ONE_WAY_DELAY_MS = 20;
const LOSSES = [0, 0.01];

async function measure(loss: number): Promise<readonly BenchRow[]> {
  const script = new URL('support/path-near.ts', import.meta.url).pathname;
  const near = spawn('unshare', ['-Urn', process.execPath, script, String(ONE_WAY_DELAY_MS), String(loss)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(near, 'exit').then(() => {
    throw new Error('the path could not be measured');
  });
  const [rows] = (await Promise.race([once(near, 'message'), ended])) as [readonly BenchRow[]];
  await ended.catch(() => {});
  return rows;
}

export async function run(): Promise<BenchTable> {
  const rows: BenchRow[] = [];
  for (const loss of LOSSES) rows.push(...(await measure(loss)));
  return { title: 'Tunnels over a path with delay; yardstick: plain TCP over the same path', rows };
}
