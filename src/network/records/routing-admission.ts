/**
 * Who may stand in the routing table. Nobody gets in by writing to us, for an address is easily
 * forged: he must answer at it. And no public address fills the table with its ports.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import { Tally } from '../../foundation/tally.ts';
import { hostHolder, hostKeyOf, nodeScope } from './node-address.ts';

/**
 * Requests that came faster than they are answered. The sockets hand over all that has come before anybody else has
 * a turn; so what takes longer than a moment waits, source by source in turns, and what a source sends beyond its
 * share is dropped, as a network would: who is served asks again.
 */

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

/** The share of this node's answers that one address and its network get, whatever they ask. */

/** Requests of any kind that one IPv4 address gets answered. */
export const REQUEST_RATE_PER_HOST: Rate = { perSecond: 500, burst: 5000 };
/** The same of one IPv4 /24. There is no rate for all: addresses are easily forged, so it would let one sender silence everyone. */
export const REQUEST_RATE_PER_BLOCK: Rate = { perSecond: 1500, burst: 15_000 };
/** Addresses whose rates are remembered. */
const MAX_RATE_KEYS = 8192;

/** Says of each request whether its sender has a share left. */
export function requestLimit(dependencies: { readonly clock: Clock }): (from: Address) => boolean {
  const rate = new RateQuota(
    { perKey: REQUEST_RATE_PER_HOST, perNetwork: REQUEST_RATE_PER_BLOCK, maxKeys: MAX_RATE_KEYS },
    dependencies,
  );
  return (from) => rate.take(hostHolder(hostKeyOf(from)));
}

/** Nodes of one public host that count, in the table and in a search. */
export const MAX_NODES_PER_HOST = 3;
/** Strangers that are asked for an answer at once, and for how long the same one is not asked again. */
const MAX_GREETINGS = 32;
const GREET_AGAIN_MS = 10_000;
const MAX_REMEMBERED = 1024;

/** True where many nodes behind one address are no attack: on one machine, in one's own network. */
export function mayHoldMany(host: string, isOwnHost: (host: string) => boolean): boolean {
  return nodeScope(host) !== IP_SCOPE.public || isOwnHost(host);
}

export class RoutingAdmission {
  readonly #isOwnHost: (host: string) => boolean;
  /** Asks an address for an answer; who gives one enters the table. */
  readonly #greet: (stranger: Address) => Promise<unknown>;
  readonly #nodes = new Set<string>();
  readonly #hosts = new Tally();
  readonly #greeted: LruCache<string, true>;
  #greetings = 0;

  constructor(clock: Clock, isOwnHost: (host: string) => boolean, greet: (stranger: Address) => Promise<unknown>) {
    this.#isOwnHost = isOwnHost;
    this.#greet = greet;
    this.#greeted = new LruCache({ maxEntries: MAX_REMEMBERED, ttlMs: GREET_AGAIN_MS }, { clock });
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
    if (this.has(node) || mayHoldMany(node.host, this.#isOwnHost)) return true;
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
    this.#greet(stranger).then(greeted, greeted);
  }
}

/**
 * Nodes that use this one and stand in no routing table, such as those behind NATs. They count once they have proven
 * their address with a token, and as long as they are heard.
 */

/** Clients that are remembered; each of them also costs its node a record here. */
const MAX_CLIENTS = 1024;
/** A client that was silent for so long is gone, milliseconds: nodes ping their peers every 40 s. */
export const CLIENT_SILENT_MS = 180_000;

interface Client {
  readonly host: string;
  heardAt: number;
}

export class DhtClients {
  readonly #clock: Clock;
  readonly #clients = new LruCache<string, Client>({ maxEntries: MAX_CLIENTS });

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Takes a request with a valid token. True if its sender was none of the clients. */
  proven(from: Address): boolean {
    const isNew = this.#clients.peek(formatAddress(from)) === undefined;
    this.#clients.set(formatAddress(from), { host: from.host, heardAt: this.#clock.now() });
    return isNew;
  }

  /** Takes any datagram. */
  heard(from: Address): void {
    const client = this.#clients.size === 0 ? undefined : this.#clients.peek(formatAddress(from));
    if (client !== undefined) client.heardAt = this.#clock.now();
  }

  /** How many there are. The nodes of a host that is in the table are not told from its other socket, and do not count. */
  count(tableHosts: ReadonlySet<string>): number {
    const since = this.#clock.now() - CLIENT_SILENT_MS;
    return this.#clients.values().filter(({ host, heardAt }) => heardAt >= since && !tableHosts.has(host)).length;
  }
}
