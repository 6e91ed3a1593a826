/**
 * Runs a program in a process group of its own and sees to it that it ends: what runs in the group for longer than the
 * limit is killed with all that it has started, and so is what is left when the program is over. A test that hangs, or
 * leaves a daemon behind that holds the output, fails then and keeps nobody waiting.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';

/** How often is looked for what runs too long, milliseconds. */
const LOOK_MS = 1_000;

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

export interface GroupOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  /** How long any process but the program itself may run, milliseconds. */
  readonly limitMs: number;
  /** Told of what was killed at the limit: its command line. */
  readonly onKilled: (command: string) => void;
}

function ofProc(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        // Behind the name, which may hold anything: state, parent, group.
        const [, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return [{ pid: Number(pid), parent: Number(parent), group: Number(group) }];
      } catch {
        return [];
      }
    });
}

function ofPs(): Process[] {
  const { stdout, error } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,pgid='], { encoding: 'utf8' });
  if (error !== undefined) return [];
  return stdout.split('\n').flatMap((line) => {
    const [pid, parent, group] = line.trim().split(/\s+/).map(Number);
    return pid === undefined || parent === undefined || group === undefined ? [] : [{ pid, parent, group }];
  });
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return `process ${pid}`;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone already.
  }
}

/** A process and all that it has started, in whatever group. */
function family(of: number, all: readonly Process[]): number[] {
  const children = all.filter(({ parent }) => parent === of).flatMap(({ pid }) => family(pid, all));
  return [of, ...children];
}

/** Runs it to its end; gives its exit code, 1 where a signal ended it. */
export async function runGroup({ program, args, environment, limitMs, onKilled }: GroupOptions): Promise<number> {
  const posix = process.platform !== 'win32';
  const child = spawn(program, args, { stdio: 'inherit', detached: posix, env: environment ?? process.env });
  const leader = child.pid ?? 0;
  const seen = new Map<number, number>();
  const look = (): void => {
    const all = process.platform === 'linux' ? ofProc() : ofPs();
    const now = performance.now();
    for (const { pid, group } of all) {
      if (group !== leader || pid === leader) continue;
      const since = seen.get(pid) ?? now;
      seen.set(pid, since);
      if (now - since < limitMs) continue;
      onKilled(commandOf(pid));
      for (const one of family(pid, all)) kill(one);
    }
  };
  const timer = posix && leader > 0 ? setInterval(look, LOOK_MS) : undefined;
  // Its group is not that of the terminal: who breaks off here means it too.
  const end = (): void => {
    kill(posix ? -leader : leader);
    process.exit(1);
  };
  process.once('SIGINT', end).once('SIGTERM', end);
  const [code]: unknown[] = await once(child, 'exit');
  clearInterval(timer);
  process.off('SIGINT', end).off('SIGTERM', end);
  if (posix) kill(-leader);
  return typeof code === 'number' ? code : 1;
}
