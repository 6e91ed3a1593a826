/**
 * Writes lines to a file descriptor in the background. A reader that stops or disconnects, or a full disk, never fails
 * the program that writes.
 */
import { write, writeSync } from 'node:fs';
import type { Clock } from './clock.ts';
import { codeOf } from './errors.ts';

/** Maximum bytes queued for a slow reader; further lines are dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Retry delay after temporary errors, in milliseconds: a full non-blocking pipe, a full disk. */
const RETRY_MS: ReadonlyMap<string, number> = new Map([
  ['EAGAIN', 50],
  ['ENOSPC', 500],
  ['EDQUOT', 500],
]);

export class LineWriter {
  readonly #fd: number;
  readonly #clock: Clock;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Also true between two attempts. */
  #isWriting = false;

  constructor(fd: number, { clock }: { readonly clock: Clock }) {
    this.#fd = fd;
    this.#clock = clock;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) return;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isWriting) this.#next();
  }

  /** Writes the queued lines before the process exits, as far as the reader accepts them without blocking. */
  flushSync(): void {
    let rest = this.#take();
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#fd, rest));
    } catch {
      // The exiting process does not wait for a reader or for disk space.
    }
  }

  /** Removes all queued lines and returns them as one buffer. */
  #take(): Buffer {
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    return bytes;
  }

  #next(): void {
    this.#isWriting = this.#waiting.length > 0;
    if (this.#isWriting) this.#put(this.#take());
  }

  #put(bytes: Buffer): void {
    write(this.#fd, bytes, (error, written) => {
      if (error === null && written === bytes.length) return this.#next();
      if (error === null) return this.#put(bytes.subarray(written));
      const retryMs = RETRY_MS.get(codeOf(error));
      // Any other error drops these lines. The next lines are still tried, because the error may be temporary.
      if (retryMs === undefined) return this.#next();
      this.#waiting.unshift(bytes);
      this.#waitingBytes += bytes.length;
      this.#clock.after(retryMs, () => this.#next());
    });
  }
}
