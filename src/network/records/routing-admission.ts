/**
 * Who may stand in the routing table. Nobody gets in by writing to us, for an address is easily
 * forged: he must answer at it. And no public address fills the table with its ports.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { Tally } from '../../foundation/tally.ts';
import { nodeScope } from './node-address.ts';

/** Nodes of one public host that count, in the table and in a search. */
export const MAX_NODES_PER_HOST = 3;
/** Strangers that are asked for an answer at once, and for how long the same one is not asked again. */
const MAX_GREETINGS = 32;
const GREET_AGAIN_MS = 10_000;
const MAX_REMEMBERED = 1024;

interface RoutingAdmissionDependencies {
  readonly clock: Clock;
  /** Asks an address for an answer; who gives one enters the table. */
  readonly greet: (stranger: Address) => Promise<unknown>;
  readonly isOwnHost: (host: string) => boolean;
}

/** True where many nodes behind one address are no attack: on one machine, in one's own network. */
export function mayHoldMany(host: string, isOwnHost: (host: string) => boolean): boolean {
  return nodeScope(host) !== IP_SCOPE.public || isOwnHost(host);
}

export class RoutingAdmission {
  readonly #deps: RoutingAdmissionDependencies;
  readonly #nodes = new Set<string>();
  readonly #hosts = new Tally();
  readonly #greeted: LruCache<string, true>;
  #greetings = 0;

  constructor(dependencies: RoutingAdmissionDependencies) {
    this.#deps = dependencies;
    this.#greeted = new LruCache({ maxEntries: MAX_REMEMBERED, ttlMs: GREET_AGAIN_MS }, dependencies);
  }

  has(node: Address): boolean {
    return this.#nodes.has(formatAddress(node));
  }

  add(node: Address): void {
    if (this.has(node)) return;
    this.#nodes.add(formatAddress(node));
    this.#hosts.add(node.host);
  }

  remove(node: Address): void {
    if (!this.#nodes.delete(formatAddress(node))) return;
    this.#hosts.add(node.host, -1);
  }

  /** The table was made anew, and holds these. */
  reset(nodes: readonly Address[]): void {
    this.#nodes.clear();
    this.#hosts.clear();
    for (const node of nodes) this.add(node);
  }

  /** Whether a node may stand in the table. */
  admits(node: Address): boolean {
    if (node.port < 1 || nodeScope(node.host) === IP_SCOPE.none) return false;
    if (this.has(node) || mayHoldMany(node.host, this.#deps.isOwnHost)) return true;
    return this.#hosts.of(node.host) < MAX_NODES_PER_HOST;
  }

  /** An address that is in no table of ours says that it is a node: it is asked for an answer. */
  onStranger(stranger: Address): void {
    const key = formatAddress(stranger);
    if (this.#greetings >= MAX_GREETINGS || this.#greeted.has(key) || !this.admits(stranger)) return;
    this.#greeted.set(key, true);
    this.#greetings++;
    const greeted = () => void this.#greetings--;
    // Where it fails nobody is there, or not at this address.
    this.#deps.greet(stranger).then(greeted, greeted);
  }
}
