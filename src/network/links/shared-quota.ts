/**
 * Places that all nodes share: so many together, so many of them for one source, and so many for one
 * node. A node key costs nothing, so that without the share of a source a few keys on one address
 * would keep everybody else out.
 */
import { IP_SCOPE, ipScope, subscriberOf } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { Tally } from '../../foundation/tally.ts';

interface SharedQuotaOptions {
  readonly perNode: number;
  readonly perSource: number;
  readonly all: number;
}

/** Sources whose shares are remembered: every stream asks, and the text of an IPv6 address is dear to read. */
const MAX_SHARES = 1024;
const shares = new LruCache<string, string | null>({ maxEntries: MAX_SHARES });

/**
 * Whose share a source (see `Path`) uses up: what costs more to change than an AID or a node key, an IPv4 address or
 * an IPv6 /64, where one is known. Null on this machine, where all programs are one person's.
 */
export function shareOf(source: string): string | null {
  const known = shares.get(source);
  if (known !== undefined) return known;
  const share = ipScope(source) === IP_SCOPE.loopback ? null : subscriberOf(source);
  shares.set(source, share);
  return share;
}

export class SharedQuota {
  readonly #options: SharedQuotaOptions;
  readonly #ofNode = new Tally();
  readonly #ofSource = new Tally();

  constructor(options: SharedQuotaOptions) {
    this.#options = options;
  }

  /** Places that are taken. */
  get taken(): number {
    return this.#ofNode.total;
  }

  /** Whose share is used up where no place is left for a node at a source; null where one is. */
  lacking(node: string, source: string | null): 'node' | 'source' | 'all' | null {
    const { perNode, perSource, all } = this.#options;
    if (this.#ofNode.of(node) >= perNode) return 'node';
    if (source !== null && this.#ofSource.of(source) >= perSource) return 'source';
    return this.taken >= all ? 'all' : null;
  }

  /**
   * Takes a place; returns how to give it back, once. Null where none is left for that node or source.
   * @param source as `shareOf` names it; null counts against no source
   */
  take(node: string, source: string | null): (() => void) | null {
    if (this.lacking(node, source) !== null) return null;
    this.#ofNode.add(node);
    if (source !== null) this.#ofSource.add(source);
    return () => {
      this.#ofNode.add(node, -1);
      if (source !== null) this.#ofSource.add(source, -1);
    };
  }
}
