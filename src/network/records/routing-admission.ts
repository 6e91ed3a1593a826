/**
 * Which requests are answered, and which nodes enter the routing table. Addresses are easily forged, so a node enters
 * only after it has answered at its address. The ports of one public address cannot fill the table.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import { Tally } from '../../foundation/tally.ts';
import { hostHolder, nodeScope } from './node-address.ts';
import { Turns } from './turns.ts';

/** Time for requests in one turn of the event loop, in ms. */
const SLICE_MS = 5;
/** Waiting requests of one source. */
export const MAX_BACKLOG_PER_SOURCE = 64;
/** Sources with waiting requests: proven ones, and as many others. */
export const MAX_BACKLOG_SOURCES = 256;

type Work = () => void;

/**
 * Queue of requests that arrive faster than they are answered. Sockets deliver all arrived datagrams together, so
 * requests that would take too long wait, with a turn for each source. A source's excess requests are dropped, as a
 * network would do; honest nodes ask again. Proven sources have separate turns, because others can be forged.
 */
export class RequestBacklog {
  readonly #clock: Clock;
  readonly #proven = new Turns<Work>({ perHolder: MAX_BACKLOG_PER_SOURCE, holders: MAX_BACKLOG_SOURCES });
  readonly #others = new Turns<Work>({ perHolder: MAX_BACKLOG_PER_SOURCE, holders: MAX_BACKLOG_SOURCES });
  /** When the first request of this turn arrived; null before it. */
  #began: number | null = null;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /**
   * Runs the work now, later if this turn has no time left, or never if too many requests wait.
   * @param isProven whether the sender has shown a token
   */
  add(source: string, work: Work, isProven: boolean): void {
    if (this.#began === null) this.#beginTurn();
    if (this.#isEmpty && this.#hasTime()) return work();
    (isProven ? this.#proven : this.#others).add(source, work);
  }

  get #isEmpty(): boolean {
    return this.#proven.isEmpty && this.#others.isEmpty;
  }

  #beginTurn(): void {
    this.#began = this.#clock.monotonic();
    setImmediate(() => this.#nextTurn());
  }

  #hasTime(): boolean {
    return this.#clock.monotonic() - (this.#began ?? 0) < SLICE_MS;
  }

  #nextTurn(): void {
    this.#began = null;
    if (this.#isEmpty) return;
    this.#beginTurn();
    while (!this.#isEmpty)
      for (const turns of [this.#proven, this.#others]) {
        turns.next()?.();
        if (!this.#hasTime()) return;
      }
  }
}

/** Requests of one IPv4 address that are answered. */
export const REQUEST_RATE_PER_HOST: Rate = { perSecond: 500, burst: 5000 };
/**
 * The same for an IPv4 /24. There is no rate for all, because a sender with forged addresses could silence everyone.
 */
export const REQUEST_RATE_PER_BLOCK: Rate = { perSecond: 1500, burst: 15_000 };
/** Addresses whose rates are remembered. */
const MAX_RATE_KEYS = 8192;

/**
 * Whether the sender of a request, by its source, is within its rate. A forger of an address uses up the rate of
 * unproven requests only.
 */
export function requestLimit(dependencies: { readonly clock: Clock }): (source: string, isProven: boolean) => boolean {
  const limits = { perKey: REQUEST_RATE_PER_HOST, perNetwork: REQUEST_RATE_PER_BLOCK, maxKeys: MAX_RATE_KEYS };
  const [proven, others] = [new RateQuota(limits, dependencies), new RateQuota(limits, dependencies)];
  return (source, isProven) => (isProven ? proven : others).take(hostHolder(source));
}

/** Nodes of one public host that count in the table and in a search. */
export const MAX_NODES_PER_HOST = 3;
/** Unknown nodes that are pinged concurrently, proven ones and as many others, and the time until the same one is pinged again. */
const MAX_GREETINGS = 32;
const GREET_AGAIN_MS = 10_000;
const MAX_REMEMBERED = 1024;

/** Whether many nodes behind one address are normal: on this machine and in local networks. */
export function mayHoldMany(host: string, isOwnHost: (host: string) => boolean): boolean {
  return nodeScope(host) !== IP_SCOPE.public || isOwnHost(host);
}

export class RoutingAdmission {
  readonly #isOwnHost: (host: string) => boolean;
  /** Pings an address. If it answers, it enters the table. */
  readonly #greet: (stranger: Address) => Promise<unknown>;
  readonly #nodes = new Set<string>();
  readonly #hosts = new Tally();
  readonly #greeted: LruCache<string, true>;
  readonly #greetings = { proven: 0, others: 0 };

  constructor(clock: Clock, isOwnHost: (host: string) => boolean, greet: (stranger: Address) => Promise<unknown>) {
    this.#isOwnHost = isOwnHost;
    this.#greet = greet;
    this.#greeted = new LruCache({ maxEntries: MAX_REMEMBERED, ttlMs: GREET_AGAIN_MS }, { clock });
  }

  has(node: Address): boolean {
    return this.#nodes.has(formatAddress(node));
  }

  /** Whether the table has a node of this host. */
  hasHost(host: string): boolean {
    return this.#hosts.of(host) > 0;
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

  /** Replaces the nodes after the table was rebuilt. */
  reset(nodes: readonly Address[]): void {
    this.#nodes.clear();
    this.#hosts.clear();
    for (const node of nodes) this.add(node);
  }

  /** Whether a node may be in the table. */
  admits(node: Address): boolean {
    if (node.port < 1 || nodeScope(node.host) === IP_SCOPE.none) return false;
    if (this.has(node) || mayHoldMany(node.host, this.#isOwnHost)) return true;
    return this.#hosts.of(node.host) < MAX_NODES_PER_HOST;
  }

  /**
   * An unknown address states that it is a node, so it is pinged.
   * @param isProven whether it has shown a token. Forged addresses leave room for proven ones
   */
  onStranger(stranger: Address, isProven: boolean): void {
    const key = formatAddress(stranger);
    const kind = isProven ? 'proven' : 'others';
    if (this.#greetings[kind] >= MAX_GREETINGS || this.#greeted.has(key) || !this.admits(stranger)) return;
    this.#greeted.set(key, true);
    this.#greetings[kind]++;
    const greeted = () => void this.#greetings[kind]--;
    // A failed ping means that no node is at this address.
    this.#greet(stranger).then(greeted, greeted);
  }
}

/** Clients that are remembered. Each client must also publish a record. */
const MAX_CLIENTS = 1024;
/** A client that is silent for this time no longer counts, in ms. Nodes ping their peers every 40 s. */
export const CLIENT_SILENT_MS = 180_000;

interface Client {
  readonly host: string;
  heardAt: number;
}

/**
 * Nodes that use this one and are in no routing table, such as those behind NATs. They count from their first valid
 * token until they fall silent.
 */
export class DhtClients {
  readonly #clock: Clock;
  readonly #clients = new LruCache<string, Client>({ maxEntries: MAX_CLIENTS });

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Notes a request with a valid token. True if its sender is a new client. */
  proven(from: Address): boolean {
    const isNew = this.#clients.peek(formatAddress(from)) === undefined;
    this.#clients.set(formatAddress(from), { host: from.host, heardAt: this.#clock.monotonic() });
    return isNew;
  }

  /** Notes any datagram. */
  heard(from: Address): void {
    const client = this.#clients.size === 0 ? undefined : this.#clients.peek(formatAddress(from));
    if (client !== undefined) client.heardAt = this.#clock.monotonic();
  }

  /** Number of clients. Hosts in the table do not count, because their other sockets look like clients. */
  count(isTableHost: (host: string) => boolean): number {
    const since = this.#clock.monotonic() - CLIENT_SILENT_MS;
    return this.#clients.values().filter(({ host, heardAt }) => heardAt >= since && !isTableHost(host)).length;
  }
}
