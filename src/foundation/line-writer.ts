/**
 * Lines to a file descriptor that nobody waits for. Its reader may stop reading, and may go away: that is no failure of
 * the program that writes, which goes on without being heard.
 */
import { write, writeSync } from 'node:fs';
import type { Clock } from './clock.ts';

/** What may wait in memory for a reader that has stopped reading; lines beyond it are dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** How long to wait for a reader of a pipe that is full and does not block, milliseconds. */
const FULL_PIPE_MS = 50;

export class LineWriter {
  readonly #fd: number;
  readonly #clock: Clock;
  /** What waits for its turn. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #isGone = false;

  constructor(fd: number, { clock }: { readonly clock: Clock }) {
    this.#fd = fd;
    this.#clock = clock;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#isGone || this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) return;
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
      // Nobody reads, or not now: the end does not wait for that.
      this.#isGone = true;
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
      if (error.code === 'EAGAIN') {
        this.#clock.after(FULL_PIPE_MS, () => this.#put(bytes));
        return;
      }
      this.#isGone = true;
      this.#take();
    });
  }
}
