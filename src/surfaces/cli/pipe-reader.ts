/**
 * Notices that the reader of a pipe, such as `head`, has ended, although nothing is written. Node reports it only with the
 * next write. Linux only: it looks for the processes that hold the other end.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Processes that are searched. */
const MAX_PROCESSES = 10_000;
/** Access mode in the flags of a file descriptor, and its value for reading (fcntl.h). */
const ACCESS_MODE = 3;
const READ_ONLY = 0;

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isForReading(pid: string, fd: string): boolean {
  try {
    const [, flags = ''] = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')) ?? [];
    return (Number.parseInt(flags, 8) & ACCESS_MODE) === READ_ONLY;
  } catch {
    return false;
  }
}

/** Paths of the file descriptors that read a pipe, in processes of this user. */
function readersOf(pipe: string): string[] {
  const pids = entries('/proc').filter((name) => /^\d+$/.test(name));
  return pids.slice(0, MAX_PROCESSES).flatMap((pid) =>
    entries(`/proc/${pid}/fd`).flatMap((fd) => {
      const path = `/proc/${pid}/fd/${fd}`;
      return linkOf(path) === pipe && isForReading(pid, fd) ? [path] : [];
    }),
  );
}

export class PipeReader {
  readonly #pipe: string;
  #readers: readonly string[];

  private constructor(pipe: string, readers: readonly string[]) {
    this.#pipe = pipe;
    this.#readers = readers;
  }

  /** The reader of this process's descriptor. Null if it is no pipe, or its reader cannot be found. */
  static of(fd: number): PipeReader | null {
    const pipe = process.platform === 'linux' ? linkOf(`/proc/self/fd/${fd}`) : '';
    if (!/^pipe:\[\d+\]$/.test(pipe)) return null;
    const readers = readersOf(pipe);
    return readers.length === 0 ? null : new PipeReader(pipe, readers);
  }

  isGone(): boolean {
    const isHeld = (): boolean => this.#readers.some((path) => linkOf(path) === this.#pipe);
    if (isHeld()) return false;
    // A process may have passed its end on before it exited.
    this.#readers = readersOf(this.#pipe);
    return !isHeld();
  }
}
