/**
 * Places that all nodes share: so many together, so many of them for one source, and so many for one
 * node. A node key costs nothing, so that without the share of a source a few keys on one address
 * would keep everybody else out.
 */
import { IP_SCOPE, ipScope, subscriberOf } from '../../foundation/ip.ts';

interface PlacesOptions {
  readonly perNode: number;
  readonly perSource: number;
  readonly all: number;
}

/**
 * The network that an address belongs to, which costs more to change than an AID or a node key: an
 * IPv4 address or an IPv6 /64. Null on this machine, where all programs are one person's, and where
 * relayed paths end.
 */
export function sourceOfHost(host: string): string | null {
  return ipScope(host) === IP_SCOPE.loopback ? null : subscriberOf(host);
}

export class Places {
  readonly #options: PlacesOptions;
  readonly #ofNode = new Map<string, number>();
  readonly #ofSource = new Map<string, number>();
  #taken = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  /** Places that are taken. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Takes a place; returns how to give it back, once. Null where none is left for that node or source.
   * @param source as `sourceOfHost` names it; null counts against no source
   */
  take(node: string, source: string | null): (() => void) | null {
    const ofNode = this.#ofNode.get(node) ?? 0;
    const ofSource = source === null ? 0 : (this.#ofSource.get(source) ?? 0);
    const { perNode, perSource, all } = this.#options;
    if (ofNode >= perNode || ofSource >= perSource || this.#taken >= all) return null;
    this.#taken++;
    this.#ofNode.set(node, ofNode + 1);
    if (source !== null) this.#ofSource.set(source, ofSource + 1);
    return () => {
      this.#taken--;
      countDown(this.#ofNode, node);
      if (source !== null) countDown(this.#ofSource, source);
    };
  }
}

function countDown(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 1) - 1;
  if (left === 0) counts.delete(key);
  else counts.set(key, left);
}
