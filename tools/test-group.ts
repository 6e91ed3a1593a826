/**
 * Runs a program in its own process group. Processes of the group that run longer than the limit are killed with their
 * children, and so are processes that remain when the program exits. A test that hangs or leaves a daemon behind then
 * fails instead of blocking the run.
 */
import { type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

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
  /** Default: inherited. */
  readonly stdio?: StdioOptions;
  /** Niceness, 0 to 19. Its children inherit it. */
  readonly nice?: number;
  /** Time limit of every process, milliseconds. */
  readonly limitMs: number;
  /** Whether the limit counts for the program, too. Default: only for its children. */
  readonly limitsProgram?: boolean;
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

/** Kills a process and its descendants, also those in other groups. */
export function killTree(pid: number): void {
  const all = process.platform === 'linux' ? processesFromProc() : processesFromPs();
  for (const one of withDescendants(pid, all)) kill(one);
}

/**
 * Makes a process nice, and with it the children that it starts later. If Linux groups processes by session, it ignores
 * their niceness in comparison with other sessions, and compares that of the groups (`man 7 sched`).
 * @param nice 0 to 19
 */
export function makeNice(leader: number, nice: number): void {
  setPriority(leader, nice);
  try {
    writeFileSync(`/proc/${leader}/autogroup`, String(nice));
  } catch {
    // Another system, a kernel without such groups, or no right to change one.
  }
}

/** How long processes have run. */
export class ProcessAges {
  /** When each process was first seen, by its number. */
  readonly #since = new Map<number, number>();

  /**
   * The present processes that have run for a time.
   * @param present numbers of all processes. A missing process has exited, and its number may be used again
   * @param now milliseconds of a clock that is never set back
   */
  olderThan(ms: number, present: ReadonlySet<number>, now: number): number[] {
    for (const pid of this.#since.keys()) if (!present.has(pid)) this.#since.delete(pid);
    for (const pid of present) if (!this.#since.has(pid)) this.#since.set(pid, now);
    return [...this.#since].filter(([, since]) => now - since >= ms).map(([pid]) => pid);
  }
}

/** Runs it and returns its exit code, 1 after a signal. */
export async function runGroup(options: GroupOptions): Promise<number> {
  const { program, args, environment = process.env, stdio = 'inherit', nice = 0 } = options;
  const { limitMs, limitsProgram = false, onKilled } = options;
  const posix = process.platform !== 'win32';
  const child = spawn(program, args, { stdio, detached: posix, env: environment });
  const leader = child.pid ?? 0;
  if (nice > 0 && leader > 0) makeNice(leader, nice);
  const ages = new ProcessAges();
  const killOverdue = (): void => {
    const all = process.platform === 'linux' ? processesFromProc() : processesFromPs();
    const isLimited = (pid: number): boolean => limitsProgram || pid !== leader;
    const members = all.filter(({ pid, group }) => group === leader && isLimited(pid)).map(({ pid }) => pid);
    for (const pid of ages.olderThan(limitMs, new Set(members), performance.now())) {
      onKilled(commandOf(pid));
      for (const one of withDescendants(pid, all)) kill(one);
    }
  };
  const timer = posix && leader > 0 ? setInterval(killOverdue, POLL_MS) : undefined;
  // Its group is not the terminal's. Several groups may run, so each ends when this process exits.
  const end = (): void => kill(posix ? -leader : leader);
  const exit = (): never => process.exit(1);
  process.once('exit', end).once('SIGINT', exit).once('SIGTERM', exit);
  const [code]: unknown[] = await once(child, 'exit');
  clearInterval(timer);
  process.off('exit', end).off('SIGINT', exit).off('SIGTERM', exit);
  if (posix) kill(-leader);
  return typeof code === 'number' ? code : 1;
}
