/**
 * A record network without a network: nodes that share one store. It verifies and orders records like the real one;
 * `test/network/dht/compliance.ts` tests both.
 */

import type { Address } from '../../src/foundation/address.ts';
import { toHex } from '../../src/foundation/bytes.ts';
import { type Clock, systemClock, unixSeconds } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { recordDigest } from '../../src/foundation/records/digest.ts';
import { belongsUnderKey } from '../../src/foundation/records/keys.ts';
import { decodeRecord, type SignedRecord } from '../../src/foundation/records/record.ts';
import { MAX_RECORDS_PER_KEY, type RecordType } from '../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../src/foundation/records/verifier.ts';
import { RecordStore } from '../../src/network/records/record-store.ts';
import type {
  DhtPeer,
  GetOptions,
  HolderCount,
  ListOptions,
  NearbyNodes,
  NoteRemoval,
  PutOptions,
  PutResult,
  Reachability,
  RecordNetwork,
  StoreUsage,
} from '../../src/network/records/types.ts';

/** Largest number of storage nodes per record. */
const MAX_REPLICAS = 8;
const STORE_BYTES = 64 * 1024 * 1024;

/** Shared state of the nodes of one test. */
export class MemoryRecordHub {
  readonly clock: Clock;
  readonly store: RecordStore;
  readonly nodes = new Set<MemoryRecordNetwork>();
  #lastPort = 0;

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
    this.store = new RecordStore({ file: ':memory:', maxBytes: STORE_BYTES }, { clock, log: silentLog });
  }

  nextPort(): number {
    return ++this.#lastPort;
  }
}

export class MemoryRecordNetwork implements RecordNetwork {
  readonly #hub: MemoryRecordHub;
  readonly #verifier = new RecordVerifier({}, { delegations: new DelegationVerifier() });
  readonly #handlers = new Set<(r: Reachability) => void>();
  readonly address: Address;
  #reachability: Partial<Reachability> = {};
  /** Makes every `put` fail, like a network outage. */
  unreachable = false;

  constructor(hub: MemoryRecordHub) {
    this.#hub = hub;
    this.address = { host: '127.0.0.1', port: hub.nextPort() };
  }

  async start(): Promise<void> {
    this.#hub.nodes.add(this);
    for (const node of this.#hub.nodes) node.setReachability({});
  }

  async stop(): Promise<void> {
    this.#hub.nodes.delete(this);
    this.#handlers.clear();
    for (const node of this.#hub.nodes) node.setReachability({});
  }

  async put(key: Uint8Array, record: SignedRecord, options: PutOptions = {}): Promise<PutResult> {
    if (!belongsUnderKey(record, key)) throw new SvcError('bad_record');
    await this.#verifier.verifyAsync(record, unixSeconds(this.#hub.clock));
    if (options.signal?.aborted === true) throw new SvcError('cancelled');
    if (this.unreachable) return { replicas: 0, newer: null, refused: {} };
    const offer = this.#hub.store.offer(key, record, String(this.address.port));
    const others = Math.min(MAX_REPLICAS, this.#hub.nodes.size - 1);
    if (offer.code === 'kept') return { replicas: others, newer: null, refused: {}, isHere: true };
    const newer = offer.code === 'newer' ? offer.held : null;
    return { replicas: 0, newer, refused: { [offer.code]: others } };
  }

  async get(key: Uint8Array, type: RecordType, options: GetOptions = {}): Promise<SignedRecord | null> {
    return (await this.list(key, [type], options))[0] ?? null;
  }

  async list(
    key: Uint8Array,
    types: readonly RecordType[],
    options: ListOptions = {},
  ): Promise<readonly SignedRecord[]> {
    await Promise.resolve();
    if (options.signal?.aborted === true) throw new SvcError('cancelled');
    if (this.unreachable) return [];
    const { store, clock } = this.#hub;
    const rows = store.find(key, { types }, MAX_RECORDS_PER_KEY);
    const records = rows.map((row) => store.encoded(row)).filter((encoded) => encoded !== null);
    const decoded = records.map((encoded) => decodeRecord(encoded));
    const errors = await this.#verifier.verifyAll(decoded, unixSeconds(clock));
    return decoded
      .filter((record, i) => errors[i] === null && options.known?.has(toHex(recordDigest(record.encoded))) !== true)
      .sort((a, b) => b.timestamp - a.timestamp)
      .slice(0, options.limit);
  }

  recent(type: RecordType, limit: number): readonly SignedRecord[] {
    return this.#hub.store.recent(type, limit);
  }

  async holders(key: Uint8Array, type: RecordType, aid: Aid, seq: number): Promise<HolderCount> {
    const answered = this.unreachable ? 0 : this.#hub.nodes.size - 1;
    const isHeld = (await this.list(key, [type])).some((record) => record.aid === aid && record.seq >= seq);
    return { answered, holding: isHeld ? answered : 0 };
  }

  near(key: Uint8Array): NearbyNodes {
    return {
      get: (type, options) => this.get(key, type, options),
      put: (record, options) => this.put(key, record, options),
      stop: () => {},
    };
  }

  async removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): Promise<number> {
    await Promise.resolve();
    return this.unreachable ? 0 : this.#hub.store.removeNotes(key, removals);
  }

  reachability(): Reachability {
    const peers = this.#hub.nodes.size - 1;
    return {
      ready: peers > 0,
      peers,
      clients: 0,
      natType: 1,
      observed: [this.address],
      inRoutingTables: true,
      ...this.#reachability,
    };
  }

  /** Changes the reachability of this node and notifies listeners. */
  setReachability(change: Partial<Reachability>): void {
    this.#reachability = { ...this.#reachability, ...change };
    for (const handler of this.#handlers) handler(this.reachability());
  }

  onReachability(handler: (r: Reachability) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  peers(): readonly DhtPeer[] {
    const others = [...this.#hub.nodes].filter((node) => node !== this);
    return others.map(({ address }) => ({ ...address, firstSeen: 0, lastSeen: this.#hub.clock.now() }));
  }

  usage(): StoreUsage {
    return this.#hub.store.usage();
  }

  addNode(): void {
    // All nodes know each other.
  }
}
