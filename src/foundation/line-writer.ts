/**
 * Writes lines to a file descriptor in the background. A reader that stops reading or goes away, and a disk that is
 * full, never fail the program that writes.
 */
import { write, writeSync } from 'node:fs';
import type { Clock } from './clock.ts';
import { codeOf } from './errors.ts';

/** What may wait in memory for a reader that has stopped reading; lines beyond it are dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** When to try again after an error that passes: a pipe that is full and does not block, a disk without room. Milliseconds. */
const RETRY_MS: ReadonlyMap<string, number> = new Map([
  ['EAGAIN', 50],
  ['ENOSPC', 500],
  ['EDQUOT', 500],
]);

export class LineWriter {
  readonly #fd: number;
  readonly #clock: Clock;
  /** What waits for its turn. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** True also between two tries. */
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

  /** Writes what waits, as far as the reader takes it at once: before the process ends. */
  flushSync(): void {
    let rest = this.#take();
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#fd, rest));
    } catch {
      // The end of the process does not wait for a reader, or for room on a disk.
    }
  }

  /** All that waits, in one piece. */
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
      // Any other error drops these lines. The next ones are tried all the same: the error may have been of the moment.
      if (retryMs === undefined) return this.#next();
      this.#waiting.unshift(bytes);
      this.#waitingBytes += bytes.length;
      this.#clock.after(retryMs, () => this.#next());
    });
  }
}
