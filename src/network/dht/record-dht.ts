/** The record network on dht-rpc: puts the parts of this folder together. */
import type { Address } from '../../foundation/address.ts';
import { type Clock, type Timer, unixSeconds } from '../../foundation/clock.ts';
import { abortable, deadline } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import type { Log } from '../../foundation/log.ts';
import { belongsUnder } from '../../foundation/records/keys.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES, type RecordType } from '../../foundation/records/types.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import type { NodeRequests } from '../node-requests.ts';
import { Collector } from './collecting.ts';
import { Contacts } from './contacts.ts';
import { Engine } from './engine.ts';
import { HandOver } from './hand-over.ts';
import { Holdings } from './holdings.ts';
import { type Answer, Lookup, type LookupOptions } from './lookup.ts';
import { Membership } from './membership.ts';
import { encodeFindRequest, encodeRemoveRequest, type FindRequest, MAX_REMOVALS } from './messages.ts';
import { nodeId, scopeOf } from './node-address.ts';
import { NodeClient } from './node-client.ts';
import { NodeServer } from './node-server.ts';
import { ObservedAddresses } from './observed.ts';
import { OwnHosts } from './own-hosts.ts';
import { type ClockComparison, PeerClocks } from './peer-clocks.ts';
import { PeerHealth } from './peer-health.ts';
import { Publication } from './publication.ts';
import { Reading } from './reading.ts';
import { RecordHost } from './record-host.ts';
import { RecordStore } from './record-store.ts';
import { Repairs } from './repairs.ts';
import type {
  DhtPeer,
  GetOptions,
  ListOptions,
  NoteRemoval,
  PutResult,
  Reachability,
  RecordNetwork,
  StoreUsage,
} from './types.ts';
import { networkTag } from './wire.ts';

/** Acknowledgements that end the wait for a publication. */
export const REPLICAS = 8;
/** How many of the closest nodes are given a record: with a third of them dead, enough are left. */
const STORE_WIDTH = 16;
/** As many for a record that goes over QUIC. */
const LARGE_STORE_WIDTH = 10;
/** How many of the closest nodes a thorough search hears. */
const SEARCH_WIDTH = 20;
/** How a read searches: it ends with the first answers that agree. */
const READ_PACE = { parallel: 8, enough: 4 };
/** How a write searches: it wants many nodes. */
const WRITE_PACE = { parallel: 20, enough: REPLICAS };
/** Time for a publication, milliseconds. */
const PUT_TIMEOUT_MS = 10_000;
/** After how many milliseconds a node that has answered and does not acknowledge is no longer waited for. */
const STORE_PATIENCE_MS = 1000;
/** How often expired records are removed, and again where many are left, milliseconds. */
const PURGE_INTERVAL_MS = 60_000;
const PURGE_AGAIN_MS = 200;
/** How often the known nodes are written down for the next start, and how many, milliseconds. */
const SAVE_NODES_INTERVAL_MS = 300_000;
const MAX_SAVED_NODES = 50;
/** Whose share of the store our own records take. */
const OWN_PUBLISHER = 'self';

type Pace = Pick<LookupOptions, 'parallel' | 'enough'>;

export interface RecordDhtOptions {
  /** Where it listens; IPv4, `0.0.0.0` for every interface, port 0 for any. */
  readonly listen: Address;
  /** Nodes to begin with: addresses or names. */
  readonly bootstrap: readonly Address[];
  /** The name of a private network; empty for the public one. */
  readonly network: string;
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  /** Bytes that the records of others may take. */
  readonly maxStoreBytes: number;
  /** The file that holds them; `:memory:` for none. */
  readonly storeFile: string;
  /** Distinct peers that must report the same address of ours before it is believed. */
  readonly minObservedPeers: number;
}

export interface RecordDhtDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly verifier: RecordVerifier;
  readonly nodeRequests: NodeRequests;
  /** The port at which other nodes reach us over QUIC; 0 while there is none. */
  readonly quicPort: () => number;
  /** The IPv4 address of a bootstrap name; the system's resolver where left out. */
  readonly resolveName?: (name: string) => Promise<string>;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

export class RecordDht implements RecordNetwork {
  readonly #nodeKey: Uint8Array;
  readonly #deps: RecordDhtDependencies;
  readonly #health: PeerHealth;
  readonly #contacts: Contacts;
  readonly #store: RecordStore;
  readonly #engine: Engine;
  readonly #membership: Membership;
  readonly #client: NodeClient;
  readonly #reading: Reading;
  readonly #clocks = new PeerClocks();
  readonly #isOwnHost: (host: string) => boolean;
  readonly #handOver: HandOver;
  readonly #timers = new Map<string, Timer>();
  #stopped = false;

  /** @throws SvcError `store_corrupt` */
  constructor(options: RecordDhtOptions, dependencies: RecordDhtDependencies) {
    const { clock, verifier, nodeRequests, quicPort } = dependencies;
    const log = dependencies.log.child('dht');
    const tag = networkTag(options.network);
    const ownHosts = new OwnHosts({ clock });
    const isOwnHost = (host: string): boolean => ownHosts.has(host);
    this.#isOwnHost = isOwnHost;
    this.#nodeKey = options.nodeKey;
    this.#deps = dependencies;
    this.#health = new PeerHealth({ clock });
    this.#contacts = new Contacts(options.bootstrap, dependencies);
    this.#store = new RecordStore({ file: options.storeFile, maxBytes: options.maxStoreBytes }, { clock });
    const host = new RecordHost(
      { nodeKey: options.nodeKey, tag },
      {
        clock,
        log,
        verifier,
        quicPort,
        store: this.#store,
        closest: (key, max) => this.#engine.closest(key, max),
        closerThanSelf: (key) => (this.#engine.ownAddress === null ? 0 : this.#engine.closerThanSelf(key)),
      },
    );
    nodeRequests.onRequest((body, from) => host.answerNode(body, from.address));
    const server = new NodeServer({
      clock,
      log,
      host,
      health: this.#health,
      engine: () => this.#engine,
      membership: () => this.#membership,
    });
    this.#engine = new Engine(
      { ...options.listen, tag },
      {
        clock,
        health: this.#health,
        wire: server,
        isOwnHost,
        onRequest: (request) => server.onRequest(request),
        onNode: (node) => this.#handOver.onNode(node),
        onTableChange: () => this.#membership.onTableChange(),
        onNetworkChange: () => this.#membership.onNetworkChange(),
      },
    );
    this.#client = new NodeClient({
      clock,
      verifier,
      nodeRequests,
      tag,
      engine: this.#engine,
      clocks: this.#clocks,
      onObserved: (reporter, seen) => this.#membership.onObserved(reporter, seen),
    });
    this.#membership = new Membership(options, {
      clock,
      log,
      engine: this.#engine,
      contacts: this.#contacts,
      observed: new ObservedAddresses({ clock }),
      isOwnHost,
      greet: (contact) => this.#greet(contact),
      search: (id) => this.#search(id, SURVEY, WRITE_PACE, () => {}).finished,
    });
    const collector = new Collector({
      clock,
      verifier,
      nodeRequests,
      tag,
      ask: (at, key, request) => this.#client.ask(at, key, request),
    });
    const repairs = new Repairs(STORE_WIDTH, { clock, give: (at, key, record) => this.#client.store(at, key, record) });
    this.#reading = new Reading({
      clock,
      verifier,
      collector,
      store: this.#store,
      search: (key, request, onAnswer) => this.#search(key, request, READ_PACE, onAnswer),
      onRead: (...read) => repairs.onRead(...read),
    });
    this.#handOver = new HandOver(
      { width: STORE_WIDTH, largeWidth: LARGE_STORE_WIDTH, enough: REPLICAS },
      {
        clock,
        log,
        store: this.#store,
        holdings: new Holdings({ store: this.#store, ask: (at, key, request) => this.#client.ask(at, key, request) }),
        random: dependencies.random,
        ownId: () => (this.#engine.ownAddress === null ? null : this.#engine.id),
        closest: (key, max) => this.#engine.closest(key, max),
        search: (key, request) => this.#search(key, request, WRITE_PACE, () => {}),
        find: (address, id, key, request) => this.#client.find(address, id, key, encodeFindRequest(request)),
        give: (at, key, record) => this.#client.store(at, key, record),
      },
    );
  }

  /** Binds and returns; the network is entered in the background. @throws SvcError `address_in_use` */
  async start(): Promise<void> {
    for (const node of this.#store.savedNodes()) this.#contacts.add(node);
    try {
      await this.#engine.start();
    } catch (error) {
      this.#store.close();
      throw error;
    }
    this.#membership.start();
    this.#handOver.start();
    this.#every('purge', PURGE_INTERVAL_MS, () => (this.#store.purge() ? PURGE_AGAIN_MS : PURGE_INTERVAL_MS));
    this.#every('save', SAVE_NODES_INTERVAL_MS, () => {
      this.#saveNodes();
      return SAVE_NODES_INTERVAL_MS;
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#membership.stop();
    this.#handOver.stop();
    try {
      this.#saveNodes();
    } finally {
      await this.#engine.stop();
      this.#store.close();
    }
  }

  /** Runs a task now and then; it returns after how many milliseconds it runs again. What the disk refuses is tried later. */
  #every(name: string, firstMs: number, task: () => number): void {
    const run = (): void => {
      let ms = firstMs;
      try {
        ms = task();
      } catch (error) {
        this.#deps.log.warn({ error, task: name }, 'the store of records could not be written');
      }
      if (!this.#stopped) this.#timers.set(name, this.#deps.clock.after(ms, run));
    };
    this.#timers.set(name, this.#deps.clock.after(firstMs, run));
  }

  #saveNodes(): void {
    const nodes = this.#engine.nodes().map(({ node }) => node);
    if (nodes.length > 0) this.#store.saveNodes(nodes.slice(-MAX_SAVED_NODES));
  }

  get address(): Address {
    return this.#engine.address;
  }

  async put(
    key: Uint8Array,
    record: SignedRecord,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<PutResult> {
    const { clock, verifier } = this.#deps;
    if (!belongsUnder(record, key))
      throw new SvcError('bad_record', { message: 'The record belongs under another key.' });
    await verifier.verifyAsync(record, unixSeconds(clock));
    const isSmall = record.encoded.length <= MAX_DATAGRAM_RECORD_BYTES;
    const own = this.#keepOwn(key, record);
    if (own?.code === 'newer') return { replicas: 0, newer: own.held, refused: { newer: 1 } };
    using limit = deadline(clock, PUT_TIMEOUT_MS, options.signal);
    const publication = new Publication(
      {
        wanted: REPLICAS,
        width: isSmall ? STORE_WIDTH : LARGE_STORE_WIDTH,
        keptBy: own?.code === 'kept' ? this.#nodeKey : null,
        patienceMs: STORE_PATIENCE_MS,
      },
      { clock, store: (at) => this.#client.store(at, key, record) },
    );
    const lookup = this.#search(key, { types: [record.type], wantsRecords: false }, WRITE_PACE, () =>
      publication.advance(lookup),
    );
    limit.signal.addEventListener('abort', () => {
      lookup.stop();
      publication.stop();
    });
    const result = publication.run(lookup);
    return await abortable(result, options.signal);
  }

  /** Keeps a record of our own where we are among those who should, or there is nobody else. */
  #keepOwn(key: Uint8Array, record: SignedRecord): ReturnType<RecordStore['offer']> | null {
    const isClose = this.#engine.ownAddress !== null && this.#engine.closerThanSelf(key) < STORE_WIDTH;
    return isClose || this.#engine.peerCount === 0 ? this.#store.offer(key, record, OWN_PUBLISHER) : null;
  }

  get(key: Uint8Array, type: RecordType, options: GetOptions = {}): Promise<SignedRecord | null> {
    return this.#reading.get(key, type, options);
  }

  list(key: Uint8Array, types: readonly RecordType[], options: ListOptions = {}): Promise<readonly SignedRecord[]> {
    return this.#reading.list(key, types, options);
  }

  async removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): Promise<number> {
    let removed = this.#store.removeNotes(key, removals);
    const lookup = this.#search(key, SURVEY, WRITE_PACE, () => {});
    await lookup.finished;
    for (let at = 0; at < removals.length; at += MAX_REMOVALS) {
      const value = encodeRemoveRequest(removals.slice(at, at + MAX_REMOVALS));
      const near = lookup.closest(SEARCH_WIDTH).filter(({ token }) => token !== null);
      const counts = await Promise.all(near.map((answer) => this.#client.removeNotes(answer, key, value)));
      removed += counts.reduce((sum, count) => sum + count, 0);
    }
    return removed;
  }

  #search(key: Uint8Array, request: FindRequest, pace: Pace, onAnswer: (answer: Answer) => void): Lookup {
    const value = encodeFindRequest(request);
    const near = this.#engine.closest(key, SEARCH_WIDTH);
    return new Lookup(
      {
        target: key,
        width: SEARCH_WIDTH,
        ...pace,
        start: near.length < SEARCH_WIDTH ? [...near, ...this.#contacts.addresses()] : near,
      },
      {
        clock: this.#deps.clock,
        health: this.#health,
        ask: (address, id) => this.#client.find(address, id, key, value),
        isOwn: (address) => this.#isOwn(address),
        isOwnHost: this.#isOwnHost,
        onAnswer,
      },
    );
  }

  async #greet(contact: Address): Promise<boolean> {
    const { id } = this.#engine;
    return (await this.#client.find(contact, nodeId(contact), id, encodeFindRequest(SURVEY))) !== null;
  }

  #isOwn(address: Address): boolean {
    const { ownAddress, address: bound } = this.#engine;
    if (address.port !== bound.port) return false;
    if (address.host === ownAddress?.host || address.host === bound.host) return true;
    return scopeOf(bound.host) === IP_SCOPE.none && this.#isOwnHost(address.host);
  }

  reachability(): Reachability {
    return this.#membership.reachability();
  }

  onReachability(handler: (r: Reachability) => void): () => void {
    return this.#membership.onReachability(handler);
  }

  peers(): readonly DhtPeer[] {
    return this.#engine.nodes().map(({ node: { host, port }, lastSeen }) => ({ host, port, lastSeen }));
  }

  /** How our clock compares with those of the nodes that answered lately. */
  clocks(): ClockComparison {
    return this.#clocks.compare(this.#deps.clock.now());
  }

  usage(): StoreUsage {
    return this.#store.usage();
  }

  addNode(address: Address): void {
    if (!this.#isOwn(address)) this.#membership.addContact(address);
  }
}

/** Asks only who is near. */
const SURVEY: FindRequest = { types: [], wantsRecords: false };
