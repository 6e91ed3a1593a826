/** Progress of a transfer on one terminal line: part, speed and remaining time. */
import type { CliIo } from './io.ts';
import { shortSize } from './reach-text.ts';
import { safeLine } from './text.ts';

/** Window for the speed, milliseconds. */
const SPEED_WINDOW_MS = 5_000;
/** Shortest time after which a speed is shown, milliseconds. */
const SPEED_AFTER_MS = 500;
/** Refresh interval, milliseconds. */
const WRITE_EVERY_MS = 200;

function durationText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** Measures the recent speed. Times are milliseconds of one clock. */
export class TransferSpeed {
  #seen: { readonly at: number; readonly bytes: number }[] = [];

  /** @param bytes total so far */
  note(bytes: number, at: number): void {
    const last = this.#seen.at(-1);
    // The transfer restarted.
    if (last !== undefined && bytes < last.bytes) this.#seen = [];
    this.#seen.push({ at, bytes });
    while (this.#seen.length > 2 && at - (this.#seen[1]?.at ?? at) > SPEED_WINDOW_MS) this.#seen.shift();
  }

  /** Bytes per second, or null if unknown. */
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
  const speed = perSecond === null ? '' : `${shortSize(perSecond)}/s`;
  return [safeLine(name), `${part} %`, `${shortSize(bytes)} of ${shortSize(size)}`, speed, left]
    .filter((word) => word !== '')
    .join('  ');
}

/** A terminal line that is rewritten. Silent in a pipe and with --quiet or --json. */
export class ProgressLine implements Disposable {
  readonly #io: CliIo;
  readonly #isSilent: boolean;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(io: CliIo, isSilent: boolean) {
    this.#io = io;
    this.#isSilent = isSilent || io.stderr.isTTY !== true;
  }

  /** Shows a text, at most once per interval. @param now milliseconds of one clock */
  show(text: () => string, now: number): void {
    if (this.#isSilent || now - this.#writtenAt < WRITE_EVERY_MS) return;
    this.#writtenAt = now;
    this.#isShown = true;
    this.#io.stderr.write(`\r\u001b[2K${text()}`);
  }

  /** Clears the line. */
  clear(): void {
    if (this.#isShown) this.#io.stderr.write('\r\u001b[2K');
    this.#isShown = false;
    this.#writtenAt = Number.NEGATIVE_INFINITY;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
