/** Connections on the called side whose link was lost: so many may wait for another one, and so long. */
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { Quota } from '../../../foundation/quota.ts';
import { type LinkEnds, pairHolder } from '../../../network/links/holder.ts';
import { RESUME_MS } from './resumable.ts';

/** Of one node: all that one tunnel holds. */
export const MAX_LOST_PER_NODE = 6000;
/** Of the strangers on one IPv4 address or IPv6 /64. */
export const MAX_LOST_PER_SOURCE = 8000;
/** Of all nodes together. */
export const MAX_LOST = 16_000;

export interface WaitingDependencies {
  readonly clock: Clock;
  isNamed(link: Pick<LinkEnds, 'caller' | 'called'>): boolean;
}

interface Waits {
  readonly timer: Timer;
  readonly leave: () => void;
}

export class Waiting {
  readonly #clock: Clock;
  readonly #isNamed: WaitingDependencies['isNamed'];
  readonly #places = new Quota({ perNode: MAX_LOST_PER_NODE, perSource: MAX_LOST_PER_SOURCE, total: MAX_LOST });
  readonly #waits = new Map<object, Waits>();

  /** @param dependencies.isNamed true if the owner of the called agent let the caller in by name */
  constructor(dependencies: WaitingDependencies) {
    this.#clock = dependencies.clock;
    this.#isNamed = (link) => dependencies.isNamed(link);
  }

  /** How many wait. */
  get size(): number {
    return this.#waits.size;
  }

  /** Lets a connection wait, and ends it after its time; false where no more may wait. */
  begin(one: { destroy(): unknown }, first: LinkEnds): boolean {
    if (this.#waits.has(one)) return true;
    const share = this.#places.take(pairHolder(first, this.#isNamed(first)), { onEvict: () => one.destroy() });
    if (share === null) return false;
    this.#waits.set(one, { leave: () => share.release(), timer: this.#clock.after(RESUME_MS, () => one.destroy()) });
    return true;
  }

  /** It waits no more; nothing where it did not. */
  end(one: object): void {
    const waits = this.#waits.get(one);
    this.#waits.delete(one);
    waits?.timer.cancel();
    waits?.leave();
  }
}
