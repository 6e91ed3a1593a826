/** Connections on the called side whose link was lost: so many may wait for another one, and so long. */
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { SharedQuota } from '../../../network/links/shared-quota.ts';
import { sourceOfLink } from '../../../network/links/source.ts';
import type { LinkStream } from '../../../network/links/types.ts';
import { peerOf } from '../wide/ticket.ts';
import { RESUME_MS } from './resumable.ts';

/** Of one node: all that one tunnel holds. */
export const MAX_LOST_PER_NODE = 6000;
/** Of all nodes on one IPv4 address or IPv6 /64. */
export const MAX_LOST_PER_SOURCE = 8000;
/** Of all nodes together. */
export const MAX_LOST = 16_000;

interface Waits {
  readonly timer: Timer;
  readonly leave: () => void;
}

export class Waiting {
  readonly #clock: Clock;
  readonly #places = new SharedQuota({ perNode: MAX_LOST_PER_NODE, perSource: MAX_LOST_PER_SOURCE, all: MAX_LOST });
  readonly #waits = new Map<object, Waits>();

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  /** How many wait. */
  get size(): number {
    return this.#waits.size;
  }

  /** Lets a connection wait, and ends it after its time; false where no more may wait. */
  begin(one: { destroy(): unknown }, first: Pick<LinkStream, 'nodeKey' | 'path'>): boolean {
    if (this.#waits.has(one)) return true;
    const leave = this.#places.take(peerOf(first.nodeKey), sourceOfLink(first));
    if (leave === null) return false;
    this.#waits.set(one, { leave, timer: this.#clock.after(RESUME_MS, () => one.destroy()) });
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
