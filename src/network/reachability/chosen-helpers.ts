/**
 * Selects the helpers of a node that strangers cannot reach: nodes of the record network that it stays connected to,
 * and through which callers contact it. It prefers nearby helpers in different networks, so that no single node or
 * outage makes it unreachable.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt } from '../node-requests.ts';
import { apartFirst } from '../records/node-address.ts';
import type { HostCheck } from '../records/own-hosts.ts';
import { type HelperStore, PreviousHelpers } from './helper-store.ts';

/** Number of helpers to maintain. */
export const TARGET_HELPERS = 3;
/** Number of nodes to identify before selecting helpers. */
export const MAX_IDENTIFIED_NODES = 8;
/** Interval between hellos to helpers, milliseconds: well below the timeout of idle connections. */
export const HELPER_HELLO_MS: number = 3 * 60_000;
/** Time to find out whether strangers reach this node before searching for helpers, milliseconds. */
const SETTLE_MS = 1_000;
/** Minimum and maximum pause between searches for missing helpers, milliseconds. */
const MIN_SEARCH_PAUSE_MS = 2_000;
const MAX_SEARCH_PAUSE_MS = 5 * 60_000;
/** Searches because a node has entered the routing table. Strangers can enter again and again. */
const ENTRY_SEARCHES = { perSecond: 1 / 120, burst: 10, maxKeys: 1 };
const ALL = 'all';
/** Minimum and maximum time to avoid a node that failed as a helper, milliseconds. */
const MIN_AVOID_MS = 2_000;
const MAX_AVOID_MS = 10 * 60_000;
/** Growth of that time with each failure. */
const AVOID_FACTOR = 4;
/** Maximum time to avoid a lost helper, milliseconds. It often returns: it restarted, or its network was down. */
export const MAX_LOST_AVOID_MS = 30_000;
/** Timeout for identifying a node, and for a hello to a helper whose connection was lost, milliseconds. */
const ANSWER_TIMEOUT_MS = 1_500;
/** Nodes known for at least this time are likely to remain online, milliseconds. */
export const LONG_KNOWN_MS: number = 10 * 60_000;
/** Latency penalty of nodes that are known for less than `LONG_KNOWN_MS`, milliseconds. */
export const NEW_NODE_PENALTY_MS = 100;
/** Maximum number of failed nodes to remember, and for how long, milliseconds. */
const MAX_FAILURES = 256;
const FAILURES_TTL_MS = 30 * 60_000;
/** Maximum number of lost helpers to contact again, for at most `FAILURES_TTL_MS`. */
const MAX_LOST = 8;

/** A node of the routing table, and when it was added: Unix milliseconds. */
interface TableNode extends Address {
  readonly firstSeen: number;
}

/** A node, with its address in the record network. */
interface HelperCandidate extends Address {
  readonly at: NodeAt;
  /** Response time plus the penalty for new nodes, milliseconds; below 0 for stored helpers. */
  readonly cost: number;
}

interface Failure {
  readonly failures: number;
  readonly until: number;
}

interface ChosenHelpersDependencies extends RandomParts, HostCheck {
  readonly nodeKey: Uint8Array;
  /** False if strangers can reach this node, and until the record network knows. */
  readonly isNeeded: () => boolean;
  /** The nodes of the routing table. */
  readonly nodes: () => readonly TableNode[];
  /** Searches for other nodes, which enter the routing table. */
  readonly findNodes: () => Promise<void>;
  /** Requests the key and QUIC address of a node; null if it does not answer. */
  readonly identify: (node: Address) => Promise<NodeAt | null>;
  /** Sends a hello over a persistent connection; rejects if the node does not help. */
  readonly hello: (node: NodeAt, signal?: AbortSignal) => Promise<unknown>;
  /** Keeps an unused connection open. Returns a function that releases it. */
  readonly keep: (nodeKey: Uint8Array) => () => void;
  /** The helpers from before the restart. */
  readonly store: Pick<HelperStore, 'all' | 'keep'>;
  /** Called with the new helpers, in order of preference, when they change. */
  readonly onHelpers: (helpers: readonly NodeAt[]) => void;
}

/** Only public nodes if the table contains any: nodes of a private network do not see this node as strangers do. */
function preferPublic<T extends Address>(nodes: readonly T[], table: readonly Address[]): T[] {
  const isPublic = ({ host }: Address): boolean => ipScope(host) === IP_SCOPE.public;
  return table.some(isPublic) ? nodes.filter(isPublic) : [...nodes];
}

export class ChosenHelpers implements Component {
  readonly #deps: ChosenHelpersDependencies;
  /** By address in the record network. */
  readonly #failures: LruCache<string, Failure>;
  /**
   * Helpers that failed, by address in the record network. They are contacted although they have left the routing
   * table, because nothing adds them to the table when they return.
   */
  readonly #formerHelpers: LruCache<string, Address>;
  #checks: RepeatingTask | null = null;
  #helpers: readonly HelperCandidate[] = [];
  /** Null before `start`. */
  #previous: PreviousHelpers | null = null;
  /** Keys of the stored helpers at the start, in hex, in order of preference. */
  #stored: readonly string[] = [];
  /** When nodes other than the stored helpers may be contacted, Unix milliseconds. */
  #searchAllowedAt = 0;
  /** Functions that release the connections to helpers, by the hex of their keys. */
  readonly #releases = new Map<string, () => void>();
  /** Helpers with lost connections, by the hex of their keys. */
  readonly #lost = new Set<string>();
  readonly #entrySearches: RateLimiter;
  /** Number of consecutive searches that left helpers missing. */
  #failedSearches = 0;
  #wasNeeded = false;
  #stopped = false;

  constructor(dependencies: ChosenHelpersDependencies) {
    this.#deps = dependencies;
    this.#failures = new LruCache({ maxEntries: MAX_FAILURES, ttlMs: FAILURES_TTL_MS }, dependencies);
    this.#formerHelpers = new LruCache({ maxEntries: MAX_LOST, ttlMs: FAILURES_TTL_MS }, dependencies);
    this.#entrySearches = new RateLimiter(ENTRY_SEARCHES, dependencies);
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.warn({ error }, 'cannot search for helpers');
    const { clock, hello, store } = this.#deps;
    this.#searchAllowedAt = clock.monotonic() + SETTLE_MS;
    this.#checks = every(clock, { firstMs: SETTLE_MS, periodMs: HELPER_HELLO_MS, onError }, () => this.#check());
    const onResult = (): void => (this.#deps.isNeeded() ? this.#checks?.soon() : undefined);
    const stored = store.all;
    this.#stored = stored.map(({ at }) => toHex(at.nodeKey));
    this.#previous = new PreviousHelpers(stored, { clock, hello, onResult, timeoutMs: ANSWER_TIMEOUT_MS });
    // Saves time: whether helpers are needed is not known yet.
    this.#previous.sendHellos();
  }

  /** Does not wait for pending hellos. They end when the connections close. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const release of this.#releases.values()) release();
    this.#releases.clear();
    this.#checks?.stop();
  }

  /** The current helpers, in order of preference. */
  get current(): readonly NodeAt[] {
    return this.#helpers.map(({ at }) => at);
  }

  /** Keys and record network addresses of the helpers. */
  get inRecordNetwork(): readonly (Address & Pick<NodeAt, 'nodeKey'>)[] {
    return this.#helpers.map(({ host, port, at: { nodeKey } }) => ({ host, port, nodeKey }));
  }

  /** Record network addresses of the helpers. */
  get addresses(): readonly Address[] {
    return this.#helpers.map(({ host, port }) => ({ host, port }));
  }

  /** Nodes for short requests: the helpers, or some nodes of the table if there are none. */
  async nodesToAsk(): Promise<readonly NodeAt[]> {
    if (this.#helpers.length > 0) return this.current;
    return (await this.#candidates()).slice(0, TARGET_HELPERS).map(({ at }) => at);
  }

  has(nodeKey: Uint8Array): boolean {
    return this.#helpers.some(({ at }) => equalBytes(at.nodeKey, nodeKey));
  }

  /** Call when the reachability of this node has changed. */
  onReachability(): void {
    const isNeeded = this.#deps.isNeeded();
    if (isNeeded && !this.#wasNeeded) {
      const now = this.#deps.clock.monotonic();
      if (now > this.#searchAllowedAt) this.#searchAllowedAt = now + SETTLE_MS;
      this.#previous?.sendHellos();
      this.#checks?.soon(this.#previous?.hasAny === true ? 0 : SETTLE_MS);
    } else this.#checks?.soon();
    this.#wasNeeded = isNeeded;
  }

  /** Call when this machine may be on another network: nodes that failed on the previous one may be reachable now. */
  onNetworkChange(): void {
    this.#failures.clear();
    this.#failedSearches = 0;
    this.#checks?.soon();
  }

  /** Call when a node has entered the routing table. It has just answered, so a missing helper is not awaited longer. */
  onNode(node: Address): void {
    if (this.#failedSearches === 0 || this.#avoidedMs(node) > 0 || !this.#entrySearches.take(ALL)) return;
    this.#failedSearches = 0;
    this.#checks?.soon(MIN_SEARCH_PAUSE_MS);
  }

  /** Call when the last connection to a node has closed. */
  onLost(nodeKey: Uint8Array): void {
    if (!this.has(nodeKey)) return;
    this.#lost.add(toHex(nodeKey));
    this.#checks?.soon();
  }

  async #check(): Promise<number> {
    const before = this.#helpers;
    if (!this.#deps.isNeeded()) {
      if (this.#helpers.length > 0) this.#keep([]);
      this.#setHelpers([]);
      return UNTIL_REQUESTED;
    }
    const checks = Promise.all(before.map((helper) => this.#checkHelper(helper)));
    // A silent helper does not delay the search for missing ones.
    const isSearched = before.length < TARGET_HELPERS && this.#previous?.hasAny !== true && !this.#stopped;
    if (isSearched) await this.#addMissing();
    await checks;
    const isRemoved = before.some((helper) => !this.#helpers.includes(helper));
    if (this.#previous?.hasAny === true) {
      if (!this.#previous.isPending) await this.#addPrevious();
      const leftMs = this.#searchAllowedAt - this.#deps.clock.monotonic();
      if (leftMs > 0 && this.#helpers.length < TARGET_HELPERS) return leftMs;
    }
    const isMissing = this.#helpers.length < TARGET_HELPERS && !this.#stopped;
    if (isMissing && (isRemoved || !isSearched)) await this.#addMissing();
    if (this.#helpers.length >= TARGET_HELPERS) this.#failedSearches = 0;
    else {
      this.#failedSearches = this.#helpers === before ? this.#failedSearches + 1 : 1;
      // No node leads to one that was silent for a while, unless this node asks for it.
      if (this.#eligible().length < MAX_IDENTIFIED_NODES) detach(this.#deps.findNodes());
    }
    return this.#pauseMs();
  }

  /**
   * Pause until the next check: short if helpers are missing, with a backoff if none are found, but not longer than a
   * lost helper is avoided.
   */
  #pauseMs(): number {
    if (this.#failedSearches === 0) return HELPER_HELLO_MS;
    const pauseMs = backoff({ firstMs: MIN_SEARCH_PAUSE_MS, maxMs: MAX_SEARCH_PAUSE_MS }, this.#failedSearches);
    const avoidedMs = this.#formerHelpers.values().map((former) => this.#avoidedMs(former));
    const limits = avoidedMs.filter((ms) => ms > 0);
    if (this.#helpers.length > 0) limits.push(HELPER_HELLO_MS);
    return Math.min(pauseMs, ...limits);
  }

  /** Selects stored helpers that still help. If all do, the published record remains valid. */
  async #addPrevious(): Promise<void> {
    const previous = this.#previous?.takeAnswered() ?? [];
    const answered = preferPublic(previous, this.#deps.nodes()).filter(({ at }) => !this.has(at.nodeKey));
    if (answered.length === 0) return;
    // Their answers may be seconds old, from before helpers were needed.
    using limit = awakeTimeout(this.#deps.clock, ANSWER_TIMEOUT_MS);
    const helping = await this.#selectHelping(
      answered.map((helper) => ({ ...helper, cost: 0 })),
      limit.signal,
    );
    this.#setHelpers([...this.#helpers, ...helping].slice(0, TARGET_HELPERS));
  }

  /** Sends a hello to a helper and removes it if it fails, without waiting for the hellos to other helpers. */
  async #checkHelper(helper: HelperCandidate): Promise<void> {
    const isLost = this.#lost.delete(toHex(helper.at.nodeKey));
    using limit = isLost ? awakeTimeout(this.#deps.clock, ANSWER_TIMEOUT_MS) : null;
    const [isHelping] = await this.#selectHelping([helper], limit?.signal);
    if (isHelping !== undefined) return;
    const { host, port } = helper;
    this.#formerHelpers.set(formatAddress(helper), { host, port });
    this.#setHelpers(this.#helpers.filter((other) => other !== helper));
  }

  /** Adds helpers until there are `TARGET_HELPERS`. */
  async #addMissing(): Promise<void> {
    const found = await this.#candidates();
    // Stored helpers that answer later are ignored.
    await this.#addPrevious();
    const candidates = found.filter(({ at }) => !this.has(at.nodeKey));
    while (candidates.length > 0 && this.#helpers.length < TARGET_HELPERS && !this.#stopped) {
      const selected = candidates.splice(0, TARGET_HELPERS - this.#helpers.length);
      const helping = await this.#selectHelping(selected);
      this.#setHelpers([...this.#helpers, ...helping]);
    }
  }

  /** Candidates: first nodes in networks without a helper, and among these the nearest first. */
  async #candidates(): Promise<HelperCandidate[]> {
    const { isOwnHost, nodeKey } = this.#deps;
    const selected = apartFirst(this.#shuffle(this.#eligible()), isOwnHost).slice(0, MAX_IDENTIFIED_NODES);
    const answers = await Promise.all(selected.map((node) => this.#identify(node)));
    const near = answers.filter((answer) => answer !== null).sort((a, b) => a.cost - b.cost);
    const chosen = new Set<Address>(this.#helpers);
    const keys = new Set([nodeKey, ...this.current.map((helper) => helper.nodeKey)].map(toHex));
    return apartFirst([...this.#helpers, ...near], isOwnHost).filter((node) => {
      const key = toHex(node.at.nodeKey);
      // One machine may be in the table with several addresses.
      const isNew = !chosen.has(node) && !keys.has(key);
      keys.add(key);
      return isNew;
    });
  }

  /** Nodes that may be identified now. */
  #eligible(): readonly TableNode[] {
    const known = this.#knownNodes();
    return preferPublic(known, known).filter((node) => this.#avoidedMs(node) === 0 && !this.#isChosen(node));
  }

  /** The nodes of the routing table, and lost helpers that have left it. */
  #knownNodes(): readonly TableNode[] {
    const { clock, nodes } = this.#deps;
    const table = nodes();
    const addresses = new Set(table.map(formatAddress));
    const missing = this.#formerHelpers.values().filter((former) => !addresses.has(formatAddress(former)));
    return [...table, ...missing.map((former) => ({ ...former, firstSeen: clock.now() }))];
  }

  async #identify({ host, port, firstSeen }: TableNode): Promise<HelperCandidate | null> {
    const { clock, identify } = this.#deps;
    const [startedAt, now] = [clock.monotonic(), clock.now()];
    using limit = awakeTimeout(clock, ANSWER_TIMEOUT_MS);
    const at = await abortable(identify({ host, port }), limit.signal).catch(() => null);
    if (at === null && this.#isFormer({ host, port })) this.#avoid({ host, port });
    if (at === null) return null;
    // A stored helper that answers now was only slow before. While it helps, the published record remains valid.
    const rank = this.#stored.indexOf(toHex(at.nodeKey));
    if (rank >= 0) return { host, port, at, cost: rank - this.#stored.length };
    const cost = clock.monotonic() - startedAt + (now - firstSeen < LONG_KNOWN_MS ? NEW_NODE_PENALTY_MS : 0);
    return { host, port, at, cost };
  }

  /** Sends hellos; returns the nodes that help, in the same order. */
  async #selectHelping(nodes: readonly HelperCandidate[], signal?: AbortSignal): Promise<HelperCandidate[]> {
    const results = await Promise.all(
      nodes.map(async (node) => {
        try {
          await this.#deps.hello(node.at, signal);
          this.#failures.delete(formatAddress(node));
          this.#formerHelpers.delete(formatAddress(node));
          return node;
        } catch (error) {
          this.#avoid(node);
          this.#deps.log.debug({ node: formatAddress(node), error }, 'a node does not act as a helper');
          return null;
        }
      }),
    );
    return results.filter((node) => node !== null);
  }

  #avoid(node: Address): void {
    const key = formatAddress(node);
    const failures = (this.#failures.peek(key)?.failures ?? 0) + 1;
    const maxMs = this.#isFormer(node) ? MAX_LOST_AVOID_MS : MAX_AVOID_MS;
    const pause = { firstMs: MIN_AVOID_MS, maxMs, factor: AVOID_FACTOR };
    this.#failures.set(key, { failures, until: this.#deps.clock.monotonic() + backoff(pause, failures) });
  }

  /** Remaining time to avoid a node, milliseconds. */
  #avoidedMs(node: Address): number {
    return Math.max(0, (this.#failures.peek(formatAddress(node))?.until ?? 0) - this.#deps.clock.monotonic());
  }

  #isFormer(node: Address): boolean {
    return this.#formerHelpers.peek(formatAddress(node)) !== undefined;
  }

  #isChosen(node: Address): boolean {
    return this.#helpers.some((helper) => formatAddress(helper) === formatAddress(node));
  }

  #shuffle(nodes: readonly TableNode[]): TableNode[] {
    const ranked = nodes.map((node) => ({ node, rank: this.#deps.random() }));
    return ranked.sort((a, b) => a.rank - b.rank).map(({ node }) => node);
  }

  #setHelpers(helpers: readonly HelperCandidate[]): void {
    const [before, now] = [this.#helpers, helpers].map((all) => all.map(formatAddress).join());
    if (this.#stopped || before === now) return;
    this.#helpers = helpers;
    this.#updateKeptConnections();
    // If all helpers are lost, the network may be down. The stored helpers are useful after a restart.
    if (helpers.length > 0) this.#keep(helpers);
    this.#deps.log.info({ helpers: helpers.map(formatAddress) }, 'helpers of this node changed');
    this.#deps.onHelpers(this.current);
  }

  /** Stores helpers for the next start. Those of now work without it. */
  #keep(helpers: readonly HelperCandidate[]): void {
    try {
      this.#deps.store.keep(helpers);
    } catch (error) {
      this.#deps.log.warn({ error }, 'the helpers of this node could not be stored');
    }
  }

  #updateKeptConnections(): void {
    const keys = new Map(this.#helpers.map(({ at: { nodeKey } }) => [toHex(nodeKey), nodeKey]));
    for (const [node, release] of this.#releases) {
      if (keys.has(node)) continue;
      release();
      this.#releases.delete(node);
    }
    for (const [node, nodeKey] of keys)
      if (!this.#releases.has(node)) this.#releases.set(node, this.#deps.keep(nodeKey));
  }
}
