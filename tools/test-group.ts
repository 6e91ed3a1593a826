/**
 * Runs a program in its own process group. Processes of the group that run longer than the limit are killed with their
 * children, and so are processes that remain when the program exits. A test that hangs or leaves a daemon behind then
 * fails instead of blocking the run.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';

/** Poll interval, milliseconds. */
const POLL_MS = 1_000;

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

export interface GroupOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  /** Time limit of every process except the program itself, milliseconds. */
  readonly limitMs: number;
  /** Called with the command line of each killed process. */
  readonly onKilled: (command: string) => void;
}

function processesFromProc(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        // After the name, which may contain anything: state, parent, group.
        const [, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return [{ pid: Number(pid), parent: Number(parent), group: Number(group) }];
      } catch {
        return [];
      }
    });
}

function processesFromPs(): Process[] {
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
    // It has already exited.
  }
}

/** A process and its descendants in any group. */
function withDescendants(of: number, all: readonly Process[]): number[] {
  const children = all.filter(({ parent }) => parent === of).flatMap(({ pid }) => withDescendants(pid, all));
  return [of, ...children];
}

/** Runs it and returns its exit code, 1 after a signal. */
export async function runGroup({ program, args, environment, limitMs, onKilled }: GroupOptions): Promise<number> {
  const posix = process.platform !== 'win32';
  const child = spawn(program, args, { stdio: 'inherit', detached: posix, env: environment ?? process.env });
  const leader = child.pid ?? 0;
  const seen = new Map<number, number>();
  const killOverdue = (): void => {
    const all = process.platform === 'linux' ? processesFromProc() : processesFromPs();
    const now = performance.now();
    const members = all.filter(({ pid, group }) => group === leader && pid !== leader);
    // The system gives the number of a process that has ended to a later one.
    const present = new Set(members.map(({ pid }) => pid));
    for (const pid of seen.keys()) if (!present.has(pid)) seen.delete(pid);
    for (const { pid } of members) {
      const since = seen.get(pid) ?? now;
      seen.set(pid, since);
      if (now - since < limitMs) continue;
      onKilled(commandOf(pid));
      for (const one of withDescendants(pid, all)) kill(one);
    }
  };
  const timer = posix && leader > 0 ? setInterval(killOverdue, POLL_MS) : undefined;
  // Its group is not the terminal's, so forward the signal.
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
