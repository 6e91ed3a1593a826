/** How far a file has come, on a terminal: part, speed and time left, in one line that is written again and again. */
import type { CliIo } from './io.ts';
import { roughSize } from './reach-text.ts';
import { safeLine } from './text.ts';

/** What was seen lately counts for the speed, milliseconds. */
const SPEED_WINDOW_MS = 5_000;
/** Shortest time that a speed is told of, milliseconds. */
const SPEED_AFTER_MS = 500;
/** From one writing to the next, milliseconds. */
const WRITE_EVERY_MS = 200;

function durationText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** Measures the speed of the last seconds. Times are milliseconds of one clock. */
export class Speed {
  #seen: { readonly at: number; readonly bytes: number }[] = [];

  /** @param bytes so many in all so far */
  note(bytes: number, at: number): void {
    const last = this.#seen.at(-1);
    // It began anew.
    if (last !== undefined && bytes < last.bytes) this.#seen = [];
    this.#seen.push({ at, bytes });
    while (this.#seen.length > 2 && at - (this.#seen[1]?.at ?? at) > SPEED_WINDOW_MS) this.#seen.shift();
  }

  /** Bytes per second; null while too little was seen. */
  perSecond(): number | null {
    const [first, last] = [this.#seen[0], this.#seen.at(-1)];
    if (first === undefined || last === undefined || last.at - first.at < SPEED_AFTER_MS) return null;
    return ((last.bytes - first.bytes) * 1000) / (last.at - first.at);
  }
}

/** `plan.pdf  45 %  12 MB of 27 MB  4.1 MB/s  4 s left`. */
export function progressText(name: string, bytes: number, size: number, perSecond: number | null): string {
  const part = size === 0 ? 100 : Math.floor((100 * bytes) / size);
  const left = perSecond === null || perSecond <= 0 ? '' : `${durationText((size - bytes) / perSecond)} left`;
  const speed = perSecond === null ? '' : `${roughSize(perSecond)}/s`;
  return [safeLine(name), `${part} %`, `${roughSize(bytes)} of ${roughSize(size)}`, speed, left]
    .filter((word) => word !== '')
    .join('  ');
}

/** One line of a terminal that is written again and again; silent in a pipe, and where nothing is to be said. */
export class ProgressLine implements Disposable {
  readonly #io: CliIo;
  readonly #isSilent: boolean;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(io: CliIo, isSilent: boolean) {
    this.#io = io;
    this.#isSilent = isSilent || io.stderr.isTTY !== true;
  }

  /** Shows a text, now and then. @param now milliseconds of one clock */
  show(text: () => string, now: number): void {
    if (this.#isSilent || now - this.#writtenAt < WRITE_EVERY_MS) return;
    this.#writtenAt = now;
    this.#isShown = true;
    this.#io.stderr.write(`\r\u001b[2K${text()}`);
  }

  /** Takes the line away. */
  clear(): void {
    if (this.#isShown) this.#io.stderr.write('\r\u001b[2K');
    this.#isShown = false;
    this.#writtenAt = Number.NEGATIVE_INFINITY;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
