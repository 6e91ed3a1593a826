/** How much one caller, one node and all of them together may ask of this daemon at once. */
import { SvcError } from '../../foundation/errors.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** Connections at once from one calling agent to one called agent that switched to WebSocket, counted apart. */
const MAX_SWITCHED_PER_CALLER = 64;
/** Requests at once from one calling agent to one called agent. */
export const MAX_REQUESTS_PER_CALLER = 64;
/** Requests at once from all agents of one node. */
export const MAX_REQUESTS_PER_NODE = 512;
/** Requests at once that this daemon forwards. */
export const MAX_REQUESTS = 4096;
/** What a refused caller is told to wait, seconds. */
const BUSY_RETRY_S = 1;

export class CallerLimits {
  readonly #counts = new Map<string, number>();
  #total = 0;

  /**
   * Counts a request in; returns how to count it out.
   * @throws SvcError `rate_limited`
   */
  enter(link: LinkStream): () => void {
    return this.#enter(link, `${link.caller} ${link.called}`, MAX_REQUESTS_PER_CALLER);
  }

  /**
   * Counts in a connection that is to switch to WebSocket; returns how to count it out.
   * @throws SvcError `rate_limited`
   */
  enterSwitched(link: LinkStream): () => void {
    return this.#enter(link, `switched ${link.caller} ${link.called}`, MAX_SWITCHED_PER_CALLER);
  }

  #enter(link: LinkStream, pair: string, limit: number): () => void {
    const node = link.nodeKey === null ? 'here' : Buffer.from(link.nodeKey).toString('hex');
    if (this.#count(pair) >= limit || this.#count(node) >= MAX_REQUESTS_PER_NODE || this.#total >= MAX_REQUESTS)
      throw new SvcError('rate_limited', {
        message: 'Too many calls at once.',
        details: { retry_after_s: BUSY_RETRY_S },
      });
    this.#add(pair, 1);
    this.#add(node, 1);
    this.#total++;
    return () => {
      this.#add(pair, -1);
      this.#add(node, -1);
      this.#total--;
    };
  }

  /** Requests that are being served. */
  get active(): number {
    return this.#total;
  }

  #count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  #add(key: string, change: number): void {
    const count = this.#count(key) + change;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}
