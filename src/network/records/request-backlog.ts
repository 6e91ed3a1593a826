/**
 * Requests that came faster than they are answered. The sockets hand over all that has come before anybody else has
 * a turn; so what takes longer than a moment waits, source by source in turns, and what a source sends beyond its
 * share is dropped, as a network would: who is served asks again.
 */
import type { Clock } from '../../foundation/clock.ts';

/** Time for requests before others have a turn, milliseconds. */
const SLICE_MS = 5;
/** Requests of one source that wait. */
export const MAX_BACKLOG_PER_SOURCE = 64;
/** Sources whose requests wait. */
export const MAX_BACKLOG_SOURCES = 256;

type Work = () => void;

export class RequestBacklog {
  readonly #clock: Clock;
  /** By source; who is next is first. */
  readonly #waiting = new Map<string, Work[]>();
  /** When the first request of this turn came; null before it. */
  #began: number | null = null;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Does it now, where there is time in this turn, or later, or never where the source has too much waiting. */
  add(source: string, work: Work): void {
    if (this.#began === null) this.#beginTurn();
    if (this.#waiting.size === 0 && this.#hasTime()) return work();
    const queue = this.#waiting.get(source);
    if (queue === undefined) {
      if (this.#waiting.size < MAX_BACKLOG_SOURCES) this.#waiting.set(source, [work]);
    } else if (queue.length < MAX_BACKLOG_PER_SOURCE) queue.push(work);
  }

  #beginTurn(): void {
    this.#began = this.#clock.now();
    setImmediate(() => this.#nextTurn());
  }

  #hasTime(): boolean {
    return this.#clock.now() - (this.#began ?? 0) < SLICE_MS;
  }

  #nextTurn(): void {
    this.#began = null;
    if (this.#waiting.size === 0) return;
    this.#beginTurn();
    for (const [source, queue] of this.#waiting) {
      const work = queue.shift();
      this.#waiting.delete(source);
      if (queue.length > 0) this.#waiting.set(source, queue);
      work?.();
      if (!this.#hasTime()) return;
    }
  }
}
