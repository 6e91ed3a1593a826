/**
 * Replication keeps long-lived records at the right nodes while nodes come and go, as in Kademlia. New nodes near a key
 * get its records. Every few hours the nodes that should have a record are queried, and get it if they lack it. At the
 * receiver, these records count as ours. See docs/protocol-dht.md, steps 14 to 19.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { unixSeconds } from '../../foundation/clock.ts';
import { REPLICAS } from '../../foundation/domain/directory.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { decodeRecord } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES, type RecordType } from '../../foundation/records/types.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { LARGE_STORE_WIDTH, type NodeAnswer, STORE_WIDTH } from './closest-nodes.ts';
import type { DhtEngine } from './engine.ts';
import {
  encodeFindRequest,
  type FindReply,
  type FindRequest,
  MAX_DATAGRAM_BYTES,
  MAX_PARTS,
  type StoreCode,
} from './messages.ts';
import { compareDistance, hostKeyOf, nodeId } from './node-address.ts';
import type { NodeClient, StoreVerdict } from './node-client.ts';
import type { RecordStore } from './record-store.ts';
import type { ReplicationRow } from './replication-queue.ts';
import type { Searches } from './searches.ts';

/** Records per part. An answer describes at most twice as many. */
const RECORDS_PER_PART = 8;

/**
 * The digests, in hex, of our records that a node has, and possibly of others. Null without an answer.
 * @param at its answer to a request for all types of these records
 */
export async function reconcile(
  at: NodeAnswer,
  key: Uint8Array,
  rows: readonly ReplicationRow[],
  store: RecordStore,
  client: Pick<NodeClient, 'ask'>,
): Promise<ReadonlySet<string> | null> {
  const types = [...new Set<RecordType>(rows.map(({ type }) => type))];
  const { count, digest } = at.reply;
  const own = store.summarize(key, { types });
  if (own.count === count && equalBytes(own.digest, digest)) return new Set(rows.map((row) => toHex(row.digest)));
  const held = digestsOf(at.reply);
  if (held.size >= count) return held;
  const of = Math.min(MAX_PARTS, Math.ceil(count / RECORDS_PER_PART));
  for (const index of new Set(rows.map(({ part }) => part % of))) {
    const reply = await client.ask(at, key, { types, wantsRecords: true, part: { index, of } });
    if (reply === null) return null;
    for (const one of digestsOf(reply)) held.add(one);
  }
  return held;
}

/** The digests of the records that an answer contains or describes. */
function digestsOf({ records, summaries }: FindReply): Set<string> {
  return new Set([...records.map(recordDigest), ...summaries.map(({ digest }) => digest)].map(toHex));
}

/** Time from the arrival or last check of a record to its next check, in seconds … */
export const REST_S: number = 6 * 3600;
/** … reduced by up to this fraction at random, so that nodes with the same records do not check them together. */
const JITTER = 0.3;
/** Records that expire sooner are not replicated, in seconds. */
export const MIN_LIFE_LEFT_S = 3600;
/** Time between checks of a record that enough closer nodes have, in seconds. */
const OUTSIDE_REST_S: number = 24 * 3600;
/** Pause after each step, and if nothing is due, in ms. */
const PAUSE_MS = 1000;
const IDLE_MS = 60_000;
/** Time that a new node must be in the table, in ms; up to twice as long at random. */
export const SETTLE_MS = 60_000;
/** New nodes of one host that get records: a burst, and then one in ten minutes. */
const NEWCOMERS_PER_HOST = 3;
const NEWCOMERS_PER_S: number = 1 / 600;
const MAX_HOSTS = 4096;
/** Bytes that are sent per second, and in a burst. */
const BYTES_PER_S: number = 32 * 1024;
const BURST_BYTES: number = 4 * 1024 * 1024;
/** Number of nodes that give a record to a new node, in case one of them does not know it. */
const HANDERS = 2;
/** Records of one key that one check covers, and that a new node gets. */
const MAX_ROWS = 64;
const MAX_ROWS_FOR_NEWCOMER = 1200;
/** Keys that are read from the database in one query. */
const KEYS_PER_STEP = 100;

/** Replies of nodes that have the record now, or a newer one. */
const TAKEN: ReadonlySet<StoreCode> = new Set(['kept', 'newer', 'removed']);

interface ReplicationDependencies extends RandomParts {
  readonly store: RecordStore;
  readonly engine: Pick<DhtEngine, 'ownAddress' | 'id' | 'closest' | 'isBehind'>;
  readonly searches: Pick<Searches, 'forWrite'>;
  readonly client: Pick<NodeClient, 'find' | 'ask' | 'store'>;
}

/** A node of the table. Times are Unix milliseconds. */
interface Neighbor {
  readonly node: Address;
  /** When it entered the table; 0 if it probably has the records of this node. */
  readonly cameAt: number;
  /** When it gets its records; null afterwards. */
  dueAt: number | null;
}

export class Replication {
  readonly #deps: ReplicationDependencies;
  readonly #neighbors = new Map<string, Neighbor>();
  /** Until when entering nodes probably have our records, because we have them from an earlier run. */
  #reunitedAt = 0;
  /** `REST_S` of this node. */
  readonly #restS: number;
  readonly #hosts: RateLimiter;
  readonly #bytes: RateLimiter;
  #lastPublisher = '';
  #turns: RepeatingTask | null = null;
  #stopped = false;

  constructor(dependencies: ReplicationDependencies) {
    this.#deps = dependencies;
    this.#restS = REST_S * (1 - JITTER * dependencies.random());
    const perHost = { perSecond: NEWCOMERS_PER_S, burst: NEWCOMERS_PER_HOST, maxKeys: MAX_HOSTS };
    this.#hosts = new RateLimiter(perHost, dependencies);
    this.#bytes = new RateLimiter({ perSecond: BYTES_PER_S, burst: BURST_BYTES, maxKeys: 1 }, dependencies);
  }

  start(): void {
    const { clock, log, store, random } = this.#deps;
    const hasEarlierRecords = store.replicationQueue.keys(new Uint8Array(), 1).length > 0;
    if (hasEarlierRecords) this.#reunitedAt = clock.monotonic() + SETTLE_MS;
    const firstMs = IDLE_MS * (1 - random() / 2);
    const onError = (error: unknown): void => log.warn({ error }, 'records could not be replicated');
    this.#turns = every(clock, { firstMs, periodMs: IDLE_MS, onError }, () => this.#step());
  }

  /** Starts no further step. Running requests end with the network. */
  stop(): void {
    this.#stopped = true;
    this.#turns?.stop();
    this.#neighbors.clear();
  }

  /** Call this with each node that enters the table. */
  onNode(node: Address): void {
    if (this.#stopped) return;
    const now = this.#deps.clock.monotonic();
    const cameAt = now < this.#reunitedAt ? 0 : now;
    const dueAt = now + SETTLE_MS * (1 + this.#deps.random());
    this.#neighbors.set(formatAddress(node), { node: { host: node.host, port: node.port }, cameAt, dueAt });
  }

  /** Call this with each node that leaves the table. */
  onLeft(node: Address): void {
    this.#neighbors.delete(formatAddress(node));
  }

  /** Does one due step. Returns the pause until the next one, in ms. */
  async #step(): Promise<number> {
    // protocol-dht.md, step 17
    const { ownAddress, id: own } = this.#deps.engine;
    // A node that is in no routing table neither gets nor replicates records.
    if (ownAddress === null) return IDLE_MS;
    for (let one = this.#nextNewcomer(); one !== null; one = this.#nextNewcomer()) {
      if (await this.#welcome(one, own)) return PAUSE_MS;
      await turn();
    }
    if (this.#bytes.retryAfterMs('') > 0) return PAUSE_MS;
    const now = unixSeconds(this.#deps.clock);
    const { replicationQueue } = this.#deps.store;
    replicationQueue.repairTimes(now, now + OUTSIDE_REST_S - REST_S);
    const due = replicationQueue.due(this.#lastPublisher, Math.ceil(now - this.#restS), now + MIN_LIFE_LEFT_S);
    if (due === null) return this.#idleMs();
    this.#lastPublisher = due.publisher;
    return (await this.#lookAfter(due.key, own, now)) ? PAUSE_MS : IDLE_MS;
  }

  /** The pause if nothing is due: until a new node gets its records, at most a minute. */
  #idleMs(): number {
    const now = this.#deps.clock.monotonic();
    const dues = this.#neighbors.values().map(({ dueAt }) => (dueAt ?? Infinity) - now);
    return Math.max(PAUSE_MS, Math.min(IDLE_MS, ...dues));
  }

  #nextNewcomer(): Neighbor | null {
    const now = this.#deps.clock.monotonic();
    for (const neighbor of this.#neighbors.values()) {
      if (neighbor.dueAt === null || neighbor.dueAt > now) continue;
      neighbor.dueAt = null;
      if (this.#hosts.take(hostKeyOf(neighbor.node))) return neighbor;
    }
    return null;
  }

  /** The new node, and nodes that came later or have no records yet. */
  #laterThan({ node: newcomer, cameAt }: Neighbor): ReadonlySet<string> {
    const later = new Set([formatAddress(newcomer)]);
    for (const [name, neighbor] of this.#neighbors)
      if (neighbor.cameAt > 0 && (neighbor.cameAt >= cameAt || neighbor.dueAt !== null)) later.add(name);
    return later;
  }

  /**
   * Gives a new node the records that it should have and that this node is responsible for. False if it got none from a
   * small store, so that the next new node need not wait.
   */
  async #welcome(newcomer: Neighbor, own: Uint8Array): Promise<boolean> {
    // protocol-dht.md, step 14
    const { store, clock, client } = this.#deps;
    const id = nodeId(newcomer.node);
    const later = this.#laterThan(newcomer);
    let isWork = false;
    for (let after: Uint8Array = new Uint8Array(); ; ) {
      const keys = store.replicationQueue.keys(after, KEYS_PER_STEP);
      for (const key of keys) {
        const share = this.#share(key, id, own, later);
        if (share === null) continue;
        const until = unixSeconds(clock) + MIN_LIFE_LEFT_S;
        const rows = store.replicationQueue.under(key, until, MAX_ROWS_FOR_NEWCOMER).filter(share);
        if (rows.length === 0) continue;
        isWork = true;
        const answer = await client.find(newcomer.node, id, key, encodeFindRequest(wanting(rows)));
        if (answer === null || this.#stopped) return true;
        await this.#give(answer, key, rows);
      }
      const last = keys.at(-1);
      if (last === undefined || keys.length < KEYS_PER_STEP || this.#stopped) return isWork;
      isWork = true;
      after = last;
      await turn();
    }
  }

  /**
   * Which records of a key we give to a new node. Null if it or we are not among the closest nodes of the key.
   * @param later as `#laterThan`
   */
  #share(
    key: Uint8Array,
    id: Uint8Array,
    own: Uint8Array,
    later: ReadonlySet<string>,
  ): ((row: ReplicationRow) => boolean) | null {
    // protocol-dht.md, step 15
    const { engine } = this.#deps;
    // Most new nodes are far from most keys. This is much faster than to find the closest nodes.
    if (engine.isBehind(key, id, STORE_WIDTH - 1)) return null;
    const former = engine.closest(key, STORE_WIDTH + later.size).filter((node) => !later.has(formatAddress(node)));
    const circle = [...former.map((node) => node.id), own]
      .sort((a, b) => compareDistance(key, a, b))
      .slice(0, STORE_WIDTH);
    const last = circle.at(-1);
    if (last === undefined || (circle.length === STORE_WIDTH && compareDistance(key, id, last) > 0)) return null;
    const place = circle.indexOf(own);
    if (place < 0) return null;
    return ({ part }) => (place - (part % circle.length) + circle.length) % circle.length < HANDERS;
  }

  /** Queries the nodes that should have the records under a key, and gives them the missing ones. */
  async #lookAfter(key: Uint8Array, own: Uint8Array, now: number): Promise<boolean> {
    // protocol-dht.md, step 16
    const { store, searches, random, engine } = this.#deps;
    const rows = store.replicationQueue.under(key, now + MIN_LIFE_LEFT_S, MAX_ROWS);
    const search = searches.forWrite(key, wanting(rows));
    await search.finished;
    search.stop();
    const near = search.closest(search.beyond(STORE_WIDTH)).filter(({ token }) => token !== null);
    if (near.length === 0) return false;
    const isSmall = ({ bytes }: ReplicationRow): boolean => bytes <= MAX_DATAGRAM_RECORD_BYTES;
    const isCloser = ({ id }: { readonly id: Uint8Array }): boolean => compareDistance(key, id, own) < 0;
    const whole = await Promise.all(
      near.map(async (answer, i) => {
        // If this node is closer to the key, its rank is before the other node.
        const rank = isCloser(answer) ? i : i + 1;
        if (rank >= search.beyond(STORE_WIDTH)) return false;
        return this.#give(answer, key, rank < search.beyond(LARGE_STORE_WIDTH) ? rows : rows.filter(isSmall));
      }),
    );
    if (this.#stopped) return false;
    const isOutside = engine.closest(key, STORE_WIDTH).filter(isCloser).length >= STORE_WIDTH;
    // If enough other nodes have the records, a node that is no longer among the closest checks them less often.
    const rests = isOutside && whole.filter(Boolean).length >= REPLICAS;
    const heard = now - Math.floor(JITTER * REST_S * random()) + (rests ? OUTSIDE_REST_S - REST_S : 0);
    store.replicationQueue.heard(
      rows.map((row) => row.id),
      heard,
    );
    return true;
  }

  /** Gives a node the records that it lacks. True if it has all of them afterwards. */
  async #give(at: NodeAnswer, key: Uint8Array, rows: readonly ReplicationRow[]): Promise<boolean> {
    const { store, client } = this.#deps;
    const held = await reconcile(at, key, rows, store, client);
    if (held === null) return false;
    for (const row of rows) {
      if (this.#stopped) return false;
      if (held.has(toHex(row.digest))) continue;
      const encoded = store.encoded(row);
      if (encoded === null) continue;
      if (!this.#bytes.take('', encoded.length + MAX_DATAGRAM_BYTES)) return false;
      const verdict = await client.store(at, key, decodeRecord(encoded));
      if (verdict === null || this.#stopped) return false;
      this.#learn(verdict, at.address, key, row);
      // A node that refuses one record for another reason gets none of the remaining records.
      if (!TAKEN.has(verdict.code)) return false;
    }
    return true;
  }

  /** Stores what a node knows better. */
  #learn({ code, newer, token }: StoreVerdict, from: Address, key: Uint8Array, { digest }: ReplicationRow): void {
    // protocol-dht.md, step 19
    const { store } = this.#deps;
    if (code === 'newer' && newer !== null) store.offer(key, newer, hostKeyOf(from));
    // The store verifies the token.
    if (code === 'removed' && token !== null) store.removeNotes(key, [{ digest, token }]);
  }
}

/** A request for the types of these records. */
function wanting(rows: readonly ReplicationRow[]): FindRequest {
  const types = new Set<RecordType>(rows.map(({ type }) => type));
  return { types: [...types].sort((a, b) => a - b), wantsRecords: true };
}
