/** When lasting connections tell what has come: a little later, all of them in one turn, with one timer. */
import type { Clock, Timer } from '../../../foundation/clock.ts';

/** The longest that bytes which came stay unacknowledged, milliseconds: so long the sender keeps little, and says nothing twice. */
export const ACK_DELAY_MS = 100;

interface Acknowledging {
  /** Tells what has come; false where it has to be tried again. */
  acknowledge(): boolean;
}

export class AckTurns {
  readonly #clock: Clock;
  readonly #due = new Set<Acknowledging>();
  #timer: Timer | null = null;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  /** Something has come on a connection. */
  add(one: Acknowledging): void {
    this.#due.add(one);
    this.#timer ??= this.#clock.after(ACK_DELAY_MS, () => this.#turn());
  }

  /** Nothing has to be told of a connection any more. */
  delete(one: Acknowledging): void {
    this.#due.delete(one);
    if (this.#due.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #turn(): void {
    this.#timer = null;
    for (const one of [...this.#due]) if (one.acknowledge()) this.#due.delete(one);
    if (this.#due.size > 0) this.#timer = this.#clock.after(ACK_DELAY_MS, () => this.#turn());
  }
}
