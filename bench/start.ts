/** From the start of the process to an answer of `/health`, and the memory of a daemon that has nothing to do. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../test/support/daemon.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const STARTS = 5;
/** How long the daemon is left alone before its memory is read, milliseconds. */
const IDLE_MS = 5000;
const MIB = 1024 * 1024;
const START_AIM_MS = 1500;
const MEMORY_AIM_MIB = 150;

type Command = readonly [string, ...string[]];

/** Resident memory of a process, bytes (Linux). */
function residentBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return pages * 4096;
}

/** The program in the form in which a package brings it: compiled. */
function installed(directory: string): Command {
  const { status } = spawnSync(process.execPath, ['tools/build.ts'], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the build failed');
  for (const part of ['bin', 'dist', 'package.json']) cpSync(part, join(directory, part), { recursive: true });
  symlinkSync(resolve('node_modules'), join(directory, 'node_modules'));
  return [process.execPath, join(directory, 'bin', 'svcd')];
}

/** Memory of an idle daemon that was started as a user starts it: the channel to a parent process costs some too. */
async function idleBytes([program, ...first]: Command): Promise<number> {
  const dataDir = mkdtempSync(join(tmpdir(), 'svcd-idle-'));
  const addresses = ['--listen', '127.0.0.1:0', '--api-addr', '127.0.0.1:0', '--no-open-browser'];
  const child = spawn(program, [...first, '--data-dir', dataDir, ...addresses], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  for await (const text of child.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    output += text;
    if (output.includes('svcd is ready')) break;
  }
  child.stderr.resume();
  await delay(IDLE_MS);
  const bytes = residentBytes(child.pid ?? 0);
  child.kill();
  await once(child, 'close');
  rmSync(dataDir, { recursive: true });
  return bytes;
}

async function measure(form: string, command: Command): Promise<BenchRow[]> {
  const times: number[] = [];
  for (let i = 0; i < STARTS; i++) {
    const started = performance.now();
    await using daemon = await TestDaemon.start({ command });
    await daemon.call('GET', '/health');
    times.push(performance.now() - started);
  }
  const memory = (await idleBytes(command)) / MIB;
  const p50 = quantile(times, 0.5);
  return [
    {
      what: `start to /health, ${form}, p50`,
      value: p50,
      unit: 'ms',
      aim: `≤ ${START_AIM_MS} ms`,
      ok: p50 <= START_AIM_MS,
    },
    {
      what: `idle memory (resident), ${form}`,
      value: memory,
      unit: 'MiB',
      aim: `≤ ${MEMORY_AIM_MIB} MiB`,
      ok: memory <= MEMORY_AIM_MIB,
    },
  ];
}

export async function run(): Promise<BenchTable> {
  const directory = mkdtempSync(join(tmpdir(), 'svcd-installed-'));
  try {
    const rows = [
      ...(await measure('installed package', installed(directory))),
      // A checkout runs its sources: Node's type stripper and the texts of the sources stay in memory.
      ...(await measure('checkout', [process.execPath, 'bin/svcd'])),
    ];
    return { title: 'Start and idle memory', rows };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
