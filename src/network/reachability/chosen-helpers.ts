/**
 * The helpers of a node that strangers cannot reach: a few nodes of the record network that it stays connected to, by
 * which others call it. Near ones, of different networks, so that no one of them and no one outage is all that it has.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt } from '../node-requests.ts';
import { apartFirst } from '../records/node-address.ts';
import { FormerHelpers, type RememberedHelpers } from './remembered-helpers.ts';

/** Helpers that a node wants to have. */
export const WANTED_HELPERS = 3;
/** Nodes that are asked where they are before some of them are chosen. */
export const ASKED_NODES = 8;
/** How often helpers are told that we are there, milliseconds: well below the time after which idle connections end. */
export const HELPER_HELLO_MS: number = 3 * 60_000;
/** Time to find out whether strangers reach us, before helpers are looked for, milliseconds. */
const SETTLE_MS = 1_000;
/** From the first to the longest pause between searches for helpers that are missing, milliseconds. */
const MIN_SEARCH_MS = 2_000;
const MAX_SEARCH_MS = 5 * 60_000;
/** How long a node is left alone that would not help or was lost, the first time and at most, milliseconds. */
const MIN_AVOIDED_MS = 2_000;
const MAX_AVOIDED_MS = 10 * 60_000;
/** Each further failure makes that so many times longer. */
const AVOIDED_FACTOR = 4;
/** How long a node is waited for that says who it is, and a helper whose connection is lost: milliseconds. */
const ANSWER_MS = 1_500;
/** A node that has been known for so long is likely to stay, milliseconds … */
export const OLD_MS: number = 10 * 60_000;
/** … which is worth so much longer an answer: milliseconds. */
export const OLD_IS_WORTH_MS = 100;
/** Nodes whose failures are remembered, and for how long, milliseconds. */
const MAX_AVOIDED = 256;
const FAILURES_TTL_MS = 30 * 60_000;

/** A node of the routing table, and since when it is there: milliseconds since the Unix epoch. */
interface TableNode extends Address {
  readonly firstSeen: number;
}

/** A node at its address in the record network. */
interface KnownNode extends Address {
  readonly at: NodeAt;
  /** How long it took to answer, and how much longer as it has not been known for long: milliseconds. */
  readonly cost: number;
}

interface Failing {
  readonly failures: number;
  readonly until: number;
}

interface ChosenHelpersDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  /** False where strangers reach this node, and while nothing is known of the network. */
  readonly isNeeded: () => boolean;
  /** The nodes of the routing table. */
  readonly nodes: () => readonly TableNode[];
  readonly isOwnHost: (host: string) => boolean;
  /** Asks a node of the table who it is; null where it does not answer. */
  readonly identify: (node: Address) => Promise<NodeAt | null>;
  /** Says hello to a node, over a connection that stays; rejects where it does not help. */
  readonly hello: (node: NodeAt, signal?: AbortSignal) => Promise<unknown>;
  /** Keeps the connection to a node though nothing uses it; returns how to end that. */
  readonly keep: (nodeKey: Uint8Array) => () => void;
  /** The helpers of the last start. */
  readonly remembered: Pick<RememberedHelpers, 'all' | 'keep'>;
  /** Told of the helpers when they are others than before, the best first. */
  readonly changed: (helpers: readonly NodeAt[]) => void;
}

/** Those that reach as far as any in the table does: one of our own networks does not see us as strangers do. */
function widest<T extends Address>(nodes: readonly T[], table: readonly Address[]): T[] {
  const isPublic = ({ host }: Address): boolean => ipScope(host) === IP_SCOPE.public;
  return table.some(isPublic) ? nodes.filter(isPublic) : [...nodes];
}

export class ChosenHelpers implements Component {
  readonly #deps: ChosenHelpersDependencies;
  /** By their addresses in the record network. */
  readonly #failing: LruCache<string, Failing>;
  #looks: RepeatingTask | null = null;
  #helpers: readonly KnownNode[] = [];
  /** Null before the start. */
  #former: FormerHelpers | null = null;
  /** Not before are others than the former ones asked: milliseconds since the Unix epoch. */
  #othersFrom = 0;
  /** How to give up the connections to the helpers. */
  readonly #kept = new Map<string, () => void>();
  /** Helpers whose connections are lost, by the hex of their keys. */
  readonly #lost = new Set<string>();
  /** Looks in a row after which as many helpers were missing as before. */
  #fruitless = 0;
  #wasNeeded = false;
  #stopped = false;

  constructor(dependencies: ChosenHelpersDependencies) {
    this.#deps = dependencies;
    this.#failing = new LruCache({ maxEntries: MAX_AVOIDED, ttlMs: FAILURES_TTL_MS }, dependencies);
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.warn({ error }, 'helpers could not be looked for');
    const { clock, hello, remembered } = this.#deps;
    this.#othersFrom = clock.now() + SETTLE_MS;
    this.#looks = every(clock, { firstMs: SETTLE_MS, periodMs: HELPER_HELLO_MS, onError }, () => this.#look());
    const heard = (): void => (this.#deps.isNeeded() ? this.#looks?.soon() : undefined);
    this.#former = new FormerHelpers(remembered.all, { clock, hello, heard, answerMs: ANSWER_MS });
    // Whether they are needed shows in the meantime.
    this.#former.ask();
  }

  /** A hello under way ends with the connections, which need not wait for it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const release of this.#kept.values()) release();
    this.#kept.clear();
    this.#looks?.stop();
  }

  /** The helpers that we have, the best first. */
  get current(): readonly NodeAt[] {
    return this.#helpers.map(({ at }) => at);
  }

  /** Their keys, and where they are in the record network. */
  get inRecordNetwork(): readonly (Address & Pick<NodeAt, 'nodeKey'>)[] {
    return this.#helpers.map(({ host, port, at: { nodeKey } }) => ({ host, port, nodeKey }));
  }

  /** Where they are in the record network. */
  get addresses(): readonly Address[] {
    return this.#helpers.map(({ host, port }) => ({ host, port }));
  }

  /** Some nodes that may be asked for help with what is not for long: our helpers, or a few of the table. */
  async others(): Promise<readonly NodeAt[]> {
    if (this.#helpers.length > 0) return this.current;
    return (await this.#candidates()).slice(0, WANTED_HELPERS).map(({ at }) => at);
  }

  has(nodeKey: Uint8Array): boolean {
    return this.#helpers.some(({ at }) => equalBytes(at.nodeKey, nodeKey));
  }

  /** To be called when what is known of the network has changed. */
  onNetwork(): void {
    const isNeeded = this.#deps.isNeeded();
    if (isNeeded && !this.#wasNeeded) {
      const now = this.#deps.clock.now();
      if (now > this.#othersFrom) this.#othersFrom = now + SETTLE_MS;
      this.#former?.ask();
      this.#looks?.soon(this.#former?.some === true ? 0 : SETTLE_MS);
    } else this.#looks?.soon();
    this.#wasNeeded = isNeeded;
  }

  /** To be called when this machine may be on another network: who was out of reach on the last one need not be here. */
  onOtherNetwork(): void {
    this.#failing.clear();
    this.#fruitless = 0;
    this.#looks?.soon();
  }

  /** To be called when no connection to a node stands any more. */
  onLost(nodeKey: Uint8Array): void {
    if (!this.has(nodeKey)) return;
    this.#lost.add(toHex(nodeKey));
    this.#looks?.soon();
  }

  async #look(): Promise<number> {
    const before = this.#helpers;
    if (!this.#deps.isNeeded()) {
      if (this.#helpers.length > 0) this.#deps.remembered.keep([]);
      this.#take([]);
      return UNTIL_REQUESTED;
    }
    await Promise.all(this.#helpers.map((helper) => this.#checkHelper(helper)));
    if (this.#former?.some === true) {
      if (!this.#former.isAsking) await this.#takeFormer();
      const leftMs = this.#othersFrom - this.#deps.clock.now();
      if (leftMs > 0 && this.#helpers.length < WANTED_HELPERS) return leftMs;
    }
    if (this.#helpers.length < WANTED_HELPERS && !this.#stopped) await this.#choose();
    if (this.#helpers.length >= WANTED_HELPERS) this.#fruitless = 0;
    else this.#fruitless = this.#helpers === before ? this.#fruitless + 1 : 1;
    return this.#pauseMs();
  }

  /** Until the next look: soon where helpers are missing, and ever later where none are found. */
  #pauseMs(): number {
    if (this.#fruitless === 0) return HELPER_HELLO_MS;
    const pauseMs = backoff({ firstMs: MIN_SEARCH_MS, maxMs: MAX_SEARCH_MS }, this.#fruitless);
    return this.#helpers.length === 0 ? pauseMs : Math.min(pauseMs, HELPER_HELLO_MS);
  }

  /** Takes the helpers of the last start that still help: where all do, nobody has to be told of others. */
  async #takeFormer(): Promise<void> {
    const former = this.#former?.take() ?? [];
    const answered = widest(former, this.#deps.nodes()).filter(({ at }) => !this.has(at.nodeKey));
    if (answered.length === 0) return;
    // They may have answered some seconds ago, when it was not known whether they are needed.
    using limit = awakeTimeout(this.#deps.clock, ANSWER_MS);
    const helping = await this.#helping(
      answered.map((helper) => ({ ...helper, cost: 0 })),
      limit.signal,
    );
    this.#take([...this.#helpers, ...helping].slice(0, WANTED_HELPERS));
  }

  /** Says hello to a helper, and gives up one that does not answer: at once, however long others take. */
  async #checkHelper(helper: KnownNode): Promise<void> {
    const isLost = this.#lost.delete(toHex(helper.at.nodeKey));
    using limit = isLost ? awakeTimeout(this.#deps.clock, ANSWER_MS) : null;
    const [isHelping] = await this.#helping([helper], limit?.signal);
    if (isHelping === undefined) this.#take(this.#helpers.filter((one) => one !== helper));
  }

  /** Looks for as many helpers as are missing. */
  async #choose(): Promise<void> {
    const found = await this.#candidates();
    // Who answers later than these is not waited for.
    await this.#takeFormer();
    const candidates = found.filter(({ at }) => !this.has(at.nodeKey));
    while (candidates.length > 0 && this.#helpers.length < WANTED_HELPERS && !this.#stopped) {
      const asked = candidates.splice(0, WANTED_HELPERS - this.#helpers.length);
      this.#take([...this.#helpers, ...(await this.#helping(asked))]);
    }
  }

  /** Nodes that may help: those of networks that we have no helper in, and of them the near ones, come first. */
  async #candidates(): Promise<KnownNode[]> {
    const { nodes, isOwnHost, nodeKey } = this.#deps;
    const others = widest(nodes(), nodes()).filter((node) => !this.#isAvoided(node) && !this.#isChosen(node));
    const asked = apartFirst(this.#shuffled(others), isOwnHost).slice(0, ASKED_NODES);
    const answers = await Promise.all(asked.map((node) => this.#identified(node)));
    const near = answers.filter((answer) => answer !== null).sort((a, b) => a.cost - b.cost);
    const chosen = new Set<Address>(this.#helpers);
    const keys = new Set([nodeKey, ...this.current.map((helper) => helper.nodeKey)].map(toHex));
    return apartFirst([...this.#helpers, ...near], isOwnHost).filter((node) => {
      const key = toHex(node.at.nodeKey);
      // One machine may stand in the table under several addresses.
      const isNew = !chosen.has(node) && !keys.has(key);
      keys.add(key);
      return isNew;
    });
  }

  async #identified({ host, port, firstSeen }: TableNode): Promise<KnownNode | null> {
    const { clock, identify } = this.#deps;
    const askedAt = clock.now();
    using limit = awakeTimeout(clock, ANSWER_MS);
    const at = await abortable(identify({ host, port }), limit.signal).catch(() => null);
    const cost = clock.now() - askedAt + (askedAt - firstSeen < OLD_MS ? OLD_IS_WORTH_MS : 0);
    return at === null ? null : { host, port, at, cost };
  }

  /** Says hello to nodes; those that help, in the same order. */
  async #helping(nodes: readonly KnownNode[], signal?: AbortSignal): Promise<KnownNode[]> {
    const words = await Promise.all(
      nodes.map(async (node) => {
        try {
          await this.#deps.hello(node.at, signal);
          return node;
        } catch (error) {
          this.#avoid(node);
          this.#deps.log.debug({ node: formatAddress(node), error }, 'a node does not help');
          return null;
        }
      }),
    );
    return words.filter((node) => node !== null);
  }

  #avoid(node: Address): void {
    const key = formatAddress(node);
    const failures = (this.#failing.peek(key)?.failures ?? 0) + 1;
    const pause = { firstMs: MIN_AVOIDED_MS, maxMs: MAX_AVOIDED_MS, factor: AVOIDED_FACTOR };
    this.#failing.set(key, { failures, until: this.#deps.clock.now() + backoff(pause, failures) });
  }

  #isAvoided(node: Address): boolean {
    return (this.#failing.peek(formatAddress(node))?.until ?? 0) > this.#deps.clock.now();
  }

  #isChosen(node: Address): boolean {
    return this.#helpers.some((helper) => formatAddress(helper) === formatAddress(node));
  }

  #shuffled(nodes: readonly TableNode[]): TableNode[] {
    const drawn = nodes.map((node) => ({ node, lot: this.#deps.random() }));
    return drawn.sort((a, b) => a.lot - b.lot).map(({ node }) => node);
  }

  #take(helpers: readonly KnownNode[]): void {
    const [before, now] = [this.#helpers, helpers].map((all) => all.map(formatAddress).join());
    if (this.#stopped || before === now) return;
    this.#helpers = helpers;
    this.#keep();
    // Where all of them are lost the network may be gone, and they are there again after the next start.
    if (helpers.length > 0) this.#deps.remembered.keep(helpers);
    this.#deps.log.info({ helpers: helpers.map(formatAddress) }, 'helpers of this node');
    this.#deps.changed(this.current);
  }

  #keep(): void {
    const keys = new Map(this.#helpers.map(({ at: { nodeKey } }) => [toHex(nodeKey), nodeKey]));
    for (const [node, release] of this.#kept) {
      if (keys.has(node)) continue;
      release();
      this.#kept.delete(node);
    }
    for (const [node, nodeKey] of keys) if (!this.#kept.has(node)) this.#kept.set(node, this.#deps.keep(nodeKey));
  }
}
