/**
 * File operations of `node:fs` that other threads would do. Here they are synchronous, so their order does not depend on
 * the machine. Databases are known to the program that opened them.
 */
import fs, { type WriteFileOptions } from 'node:fs';
import fsPromises from 'node:fs/promises';
import { Process } from './process.ts';

const STDERR = 2;

type Planner = (task: () => void) => unknown;
type Done = (error: Error | null, value?: unknown) => void;

/** An open file. Has the methods of `FileHandle` that svcd uses. */
class SimulatedFile {
  readonly fd: number;
  #isOpen = true;

  constructor(fd: number) {
    this.fd = fd;
  }

  async read(buffer: Uint8Array, offset = 0, length = buffer.length - offset, position: number | null = null) {
    return { bytesRead: fs.readSync(this.fd, buffer, offset, length, position), buffer };
  }

  async write(buffer: Uint8Array, offset = 0, length = buffer.length - offset, position: number | null = null) {
    return { bytesWritten: fs.writeSync(this.fd, buffer, offset, length, position), buffer };
  }

  async writev(buffers: NodeJS.ArrayBufferView[], position?: number) {
    return { bytesWritten: fs.writevSync(this.fd, buffers, position), buffers };
  }

  async stat(options?: { bigint?: boolean }) {
    return options?.bigint === true ? fs.fstatSync(this.fd, { bigint: true }) : fs.fstatSync(this.fd);
  }

  async truncate(length = 0): Promise<void> {
    fs.ftruncateSync(this.fd, length);
  }

  async sync(): Promise<void> {
    fs.fsyncSync(this.fd);
  }

  async datasync(): Promise<void> {
    fs.fdatasyncSync(this.fd);
  }

  async readFile(): Promise<Buffer> {
    return fs.readFileSync(this.fd);
  }

  async writeFile(data: string | Uint8Array, options?: WriteFileOptions): Promise<void> {
    fs.writeFileSync(this.fd, data, options);
  }

  async close(): Promise<void> {
    if (this.#isOpen) fs.closeSync(this.fd);
    this.#isOpen = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Calls a function now and its callback in the next turn. */
function withCallback(work: () => unknown, done: Done | undefined, plan: Planner): void {
  let error: Error | null = null;
  let value: unknown;
  try {
    value = work();
  } catch (cause) {
    error = cause instanceof Error ? cause : new Error(String(cause));
  }
  plan(() => done?.(error, value));
}

function promised<A extends unknown[], T>(work: (...args: A) => T): (...args: A) => Promise<T> {
  return async (...args) => work(...args);
}

/** Functions that open a file fail without a free descriptor. Later replacements of functions call these. */
function takeDescriptors(): void {
  const guarded = <A extends unknown[], T>(work: (...args: A) => T): ((...args: A) => T) => {
    return (...args) => {
      // The first argument may be an open file.
      if (typeof args[0] !== 'number') Process.takeDescriptor('open');
      return work(...args);
    };
  };
  const { openSync, readFileSync, writeFileSync, readdirSync } = fs;
  // `readFileSync` and `writeFileSync` of Node do not call `openSync` of this module.
  Object.assign(fs, {
    openSync: guarded(openSync),
    readFileSync: guarded(readFileSync as (...args: unknown[]) => unknown),
    writeFileSync: guarded(writeFileSync),
    readdirSync: guarded(readdirSync as (...args: unknown[]) => unknown),
  });
}

/** @param plan runs a task in the next turn */
export function takeDisk(plan: Planner): void {
  const { closeSync, writeSync } = fs;
  takeDescriptors();
  Object.assign(fs, {
    close: (fd: number, done?: Done) => withCallback(() => closeSync(fd), done, plan),
    write: (fd: number, bytes: Uint8Array, done: Done) => {
      const { current } = Process;
      if (fd !== STDERR || current === undefined) return withCallback(() => writeSync(fd, bytes), done, plan);
      current.writeLog(Buffer.from(bytes).toString());
      plan(() => done(null, bytes.length));
    },
  });
  Object.assign(fsPromises, {
    open: async (...args: Parameters<typeof fs.openSync>) => new SimulatedFile(fs.openSync(...args)),
    rm: promised(fs.rmSync),
    rename: promised(fs.renameSync),
    link: promised(fs.linkSync),
    lstat: promised(fs.lstatSync),
    stat: promised(fs.statSync),
    statfs: promised(fs.statfsSync),
    mkdir: promised(fs.mkdirSync),
    realpath: promised(fs.realpathSync),
    readFile: promised(fs.readFileSync),
    writeFile: promised(fs.writeFileSync),
  });
}
