/**
 * Decides on the calling side when a connection gets a lane for bulk: once packets are lost and hold it back. A path
 * that is merely full gains nothing from one.
 */
import type { Clock } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import type { LossWatch } from './loss-watch.ts';

/** After a lane that did not come about or was lost the next one is tried for so much later, milliseconds. */
export const NEXT_LANE_MS = 30_000;

interface WideningOptions {
  readonly watch: LossWatch;
  /** Opens a lane; settles when it has ended. Rejects where none can be had. */
  readonly openLane: () => Promise<void>;
}

export class Widening {
  readonly #options: WideningOptions;
  readonly #clock: Clock;
  /** The other side says that it loses packets. */
  #asked = false;
  #hasLane = false;
  #notBefore = 0;

  constructor(options: WideningOptions, dependencies: { readonly clock: Clock }) {
    this.#options = options;
    this.#clock = dependencies.clock;
  }

  /** The other side asks for a lane. */
  ask(): void {
    this.#asked = true;
  }

  /**
   * Looks again, after bytes have moved.
   * @param moved bytes so far
   * @param waits whether our writer waits
   */
  progress(moved: number, waits: boolean): void {
    if (this.#hasLane || this.#clock.now() < this.#notBefore) return;
    if (this.#asked || this.#options.watch.isLossy(moved, waits)) detach(this.#open());
  }

  async #open(): Promise<void> {
    this.#hasLane = true;
    // Without a lane the connection goes on as it is.
    await this.#options.openLane().catch(() => {});
    this.#hasLane = false;
    this.#notBefore = this.#clock.now() + NEXT_LANE_MS;
  }
}
