/** The record network: creates the parts of this folder and connects them. */
import { randomBytes } from 'node:crypto';
import { type Address, formatAddress, type NodeContact } from '../../foundation/address.ts';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import type { MeetingState } from '../../foundation/domain/joining.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import { lentSource } from '../../foundation/quota.ts';
import { KEY_BYTES } from '../../foundation/records/keys.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { NodeAt, NodeRequests } from '../node-requests.ts';
import type { UdpSocket } from '../transport/udp-socket.ts';
import { BootstrapNodes, type ContactView, MAX_FOUND } from './bootstrap-nodes.ts';
import { DhtEngine } from './engine.ts';
import { Membership } from './membership.ts';
import { networkTag, sourceKeyOf } from './node-address.ts';
import { NodeClient } from './node-client.ts';
import type { OpenPort } from './open-port.ts';
import { ObservedAddresses, ownHosts } from './own-hosts.ts';
import { type ClockComparison, PeerHealth } from './peer-health.ts';
import { NodeServer, RecordHost } from './record-host.ts';
import { ReadRepair, RecordReader } from './record-reader.ts';
import { RecordSetFetcher } from './record-set-fetcher.ts';
import { RecordStore } from './record-store.ts';
import { RecordWriter } from './record-writer.ts';
import { Replication } from './replication.ts';
import { machine, type RpcWorld } from './rpc/world.ts';
import { Searches } from './searches.ts';
import type {
  DhtPeer,
  GetOptions,
  HolderCount,
  ListOptions,
  NearbyNodes,
  Neighbour,
  NoteRemoval,
  PutOptions,
  PutResult,
  Reachability,
  RecordNetwork,
  StoreUsage,
} from './types.ts';

/** Pause between removals of expired records, and the pause if many are left, in ms. */
const PURGE_INTERVAL_MS = 60_000;
const PURGE_AGAIN_MS = 200;
/** Pause between saves of the known nodes if every one counts, because they are few, and if they are many, in ms. */
const SAVE_FEW_INTERVAL_MS = 60_000;
const SAVE_MANY_INTERVAL_MS = 300_000;

/** Periodically removes expired records and saves the known nodes. */
export class Housekeeping {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #store: Pick<RecordStore, 'purge' | 'saveNodes' | 'sure'>;
  /** Nodes that may answer after the next start, the best ones last. */
  readonly #nodes: () => readonly Address[];
  readonly #repeating: RepeatingTask[] = [];
  /** The addresses that were saved last. */
  #saved = '';

  constructor(
    clock: Clock,
    log: Log,
    store: Pick<RecordStore, 'purge' | 'saveNodes' | 'sure'>,
    nodes: () => readonly Address[],
  ) {
    this.#clock = clock;
    this.#log = log;
    this.#store = store;
    this.#nodes = nodes;
  }

  start(): void {
    // Failed writes are repeated later.
    const onError = (error: unknown): void => this.#log.warn({ error }, 'the record store could not be written');
    this.#repeating.push(
      every(this.#clock, { periodMs: PURGE_INTERVAL_MS, onError }, () =>
        this.#store.purge() ? PURGE_AGAIN_MS : PURGE_INTERVAL_MS,
      ),
      every(this.#clock, { periodMs: SAVE_FEW_INTERVAL_MS, onError }, () => this.#saveNodes()),
    );
  }

  /** Saves the known nodes a last time. @throws SvcError if the disk refuses */
  stop(): void {
    for (const repeating of this.#repeating) repeating.stop();
    const nodes = this.#best();
    if (nodes.length > 0) this.#store.saveNodes(nodes);
  }

  /** Saves the known nodes, unless the same ones are on disk. Returns the pause until the next time. */
  async #saveNodes(): Promise<number> {
    const nodes = this.#best();
    const names = nodes.map(formatAddress).toSorted().join();
    if (nodes.length > 0 && names !== this.#saved) {
      this.#store.saveNodes(nodes);
      await this.#store.sure();
      this.#saved = names;
    }
    return nodes.length < MAX_FOUND ? SAVE_FEW_INTERVAL_MS : SAVE_MANY_INTERVAL_MS;
  }

  #best(): Address[] {
    const bestFirst = new Map<string, Address>();
    for (const node of this.#nodes().toReversed()) {
      const name = formatAddress(node);
      if (!bestFirst.has(name) && bestFirst.size < MAX_FOUND) bestFirst.set(name, node);
    }
    return [...bestFirst.values()];
  }
}

export interface RecordDhtOptions {
  /** Listening address; IPv4, `0.0.0.0` for every interface, port 0 for any. */
  readonly listen: Address;
  /** Initial nodes: addresses or names, with the keys that they must prove. */
  readonly bootstrap: readonly NodeContact[];
  /** The name of a private network; empty for the public network. */
  readonly network: string;
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  /** Maximum size of other agents' records, in bytes. */
  readonly maxStoreBytes: number;
  /** The database file; `:memory:` for none. */
  readonly storeFile: string;
  /** Distinct peers that must report the same address of this node before it is believed. */
  readonly minObservedPeers: number;
  /** The configured public address of this node, which no interface has; empty without one. */
  readonly statedHost?: string;
}

interface RecordDhtDependencies extends RandomParts {
  readonly verifier: RecordVerifier;
  readonly nodeRequests: NodeRequests;
  /** The port at which other nodes reach us over QUIC; 0 without QUIC. */
  readonly quicPort: () => number;
  /** The IP addresses of a bootstrap name. Default: the resolver of the system. */
  readonly resolveName?: (name: string) => Promise<readonly string[]>;
  /** Whether the node at an address proves its key over QUIC. */
  readonly proveKey: (node: NodeAt) => Promise<boolean>;
  /** Clock, sockets and randomness for datagrams. Default: this machine. */
  readonly world?: RpcWorld;
}

type Parts = ReturnType<typeof makeParts>;

/** Creates the parts, each from earlier ones. Later parts subscribe to events of earlier parts at the end. */
function makeParts(options: RecordDhtOptions, dependencies: RecordDhtDependencies) {
  const { nodeKey } = options;
  const { clock, verifier, nodeRequests, quicPort, proveKey, random } = dependencies;
  const log = dependencies.log.child('dht');
  const tag = networkTag(options.network);
  const own = ownHosts({ clock });
  const isOwnHost = (host: string): boolean => own.has(host);
  const health = new PeerHealth({ clock });
  const bootstrapNodes = new BootstrapNodes(options.bootstrap, clock, dependencies.resolveName);
  const store = new RecordStore({ file: options.storeFile, maxBytes: options.maxStoreBytes }, { clock, log });
  const engine = new DhtEngine(
    { ...options.listen, tag },
    { clock, health, isOwnHost, sourceTo: (host) => own.sourceTo(host), world: dependencies.world ?? machine() },
  );

  // Answers to other nodes, and requests to other nodes.
  const host = new RecordHost({ nodeKey, tag }, clock, log, verifier, quicPort, store, engine);
  const server = new NodeServer(log, host, engine);
  const client = new NodeClient(clock, verifier, nodeRequests, tag, engine);
  const searches = new Searches({ clock, health, engine, bootstrapNodes, client, isOwnHost, proveKey });

  // Membership, reads, writes and replication.
  const observed = new ObservedAddresses({ clock });
  const membership = new Membership(options, {
    clock,
    log,
    random,
    engine,
    bootstrapNodes,
    observed,
    isOwnHost,
    searches,
  });
  const fetcher = new RecordSetFetcher(clock, verifier, nodeRequests, tag, client);
  const readRepair = new ReadRepair(clock, client);
  const reader = new RecordReader(clock, verifier, store, searches, fetcher, readRepair);
  const writer = new RecordWriter(clock, verifier, store, engine, searches, client);
  const replication = new Replication({ clock, log, store, random, engine, searches, client });
  // While many nodes cannot be reached, the table gets smaller. They are not forgotten then.
  const nodes = (): Address[] => [...bootstrapNodes.remembered(), ...engine.nodes().map(({ node }) => node)];
  const housekeeping = new Housekeeping(clock, log, store, nodes);

  nodeRequests.onRequest('record', (body, { path }) => host.answerNode(body, sourceKeyOf(path)));
  client.observed.add((reporter, seen) => membership.onObserved(reporter, seen));
  const { events } = engine;
  events.unasked.add((to) => membership.onUnasked(to));
  events.request.add((request) => detach(server.onRequest(request)));
  events.serverAnswer.add((from) => membership.onServerAnswer(from));
  events.node.add((node) => replication.onNode(node));
  events.tableChange.add(() => membership.onTableChange());
  events.refresh.add((id) => detach(searches.forWrite(id).finished));
  events.left.add((node) => {
    bootstrapNodes.left(node);
    replication.onLeft(node);
  });
  return {
    clock,
    health,
    bootstrapNodes,
    store,
    engine,
    host,
    client,
    searches,
    membership,
    reader,
    writer,
    replication,
    housekeeping,
  };
}

/** As `RecordNetwork.near`: reads and writes use the nodes of one search. */
export function nearbyNodes(
  key: Uint8Array,
  type: RecordType | null,
  { searches, reader, writer }: { searches: Pick<Searches, 'forWrite'>; reader: RecordReader; writer: RecordWriter },
): NearbyNodes {
  const search = searches.forWrite(key, { types: type === null ? [] : [type], wantsRecords: type !== null });
  return {
    get: (wanted, options) => reader.get(key, wanted, options, wanted === type ? search : null),
    put: (record, options) => writer.put(key, record, options, search.isFresh ? search : null),
    stop: () => search.stop(),
  };
}

export class RecordDht implements RecordNetwork {
  readonly #parts: Parts;

  /** @throws SvcError `store_corrupt` */
  constructor(options: RecordDhtOptions, dependencies: RecordDhtDependencies) {
    this.#parts = makeParts(options, dependencies);
  }

  /** Binds and returns. The node joins the network in the background. @throws SvcError `address_in_use` */
  async start(): Promise<void> {
    const { store, bootstrapNodes, engine, membership, replication, housekeeping } = this.#parts;
    for (const node of store.savedNodes()) bootstrapNodes.add(node);
    try {
      await engine.start();
    } catch (error) {
      store.close();
      throw error;
    }
    for (const part of [membership, replication, housekeeping]) part.start();
  }

  async stop(): Promise<void> {
    const { store, engine, host, membership, replication, housekeeping } = this.#parts;
    try {
      for (const part of [host, membership, replication, housekeeping]) part.stop();
    } finally {
      await engine.stop();
      store.close();
    }
  }

  get address(): Address {
    return this.#parts.engine.address;
  }

  put(key: Uint8Array, record: SignedRecord, options: PutOptions = {}): Promise<PutResult> {
    return this.#parts.writer.put(key, record, options);
  }

  get(key: Uint8Array, type: RecordType, options: GetOptions = {}): Promise<SignedRecord | null> {
    return this.#parts.reader.get(key, type, options);
  }

  list(key: Uint8Array, types: readonly RecordType[], options: ListOptions = {}): Promise<readonly SignedRecord[]> {
    return this.#parts.reader.list(key, types, options);
  }

  holders(key: Uint8Array, type: RecordType, aid: Aid, seq: number): Promise<HolderCount> {
    return this.#parts.searches.holders(key, type, aid, seq);
  }

  near(key: Uint8Array, type: RecordType | null): NearbyNodes {
    return nearbyNodes(key, type, this.#parts);
  }

  removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): Promise<number> {
    return this.#parts.writer.removeNotes(key, removals);
  }

  reachability(): Reachability {
    return this.#parts.membership.reachability();
  }

  /** Our host as other nodes see it, whatever the port; null if unknown. */
  get seenHost(): string | null {
    return this.#parts.membership.seenHost;
  }

  onReachability(handler: (r: Reachability) => void): () => void {
    return this.#parts.membership.onReachability(handler);
  }

  peers(): readonly DhtPeer[] {
    return this.#parts.engine.nodes().map(({ node: { host, port }, ...seen }) => ({ host, port, ...seen }));
  }

  /** Called with each node that enters the routing table. Returns a function that unsubscribes. */
  onNode(handler: (node: Address) => void): () => void {
    return this.#parts.engine.events.node.add(handler);
  }

  /** Searches for other nodes, which enter the routing table. */
  async findNodes(): Promise<void> {
    await this.#parts.searches.forWrite(randomBytes(KEY_BYTES)).finished;
  }

  /** The nodes of the routing table with all known facts. Sends nothing. */
  neighbours(): readonly Neighbour[] {
    const { bootstrapNodes, client, engine, health } = this.#parts;
    const listed = new Set(bootstrapNodes.contacts().flatMap(({ addresses }) => addresses.map(formatAddress)));
    return engine.nodes().map(({ node: { host, port }, firstSeen, lastSeen }) => {
      const at = { host, port };
      const isBootstrap = listed.has(formatAddress(at));
      return { ...at, firstSeen, lastSeen, nodeKey: client.keyOf(at), rttMs: health.rttMsOf(at), isBootstrap };
    });
  }

  /** The key and QUIC address that a node states. Null without an answer or a QUIC port. */
  async identify(node: Address): Promise<NodeAt | null> {
    return await this.#parts.searches.identify(node);
  }

  /**
   * The source that limits count for a connected node at a host. The host of a storage node counts apart for other
   * nodes, because they probably borrow its ports.
   */
  sourceAt(host: string, nodeKey: Uint8Array): string {
    const { client, engine } = this.#parts;
    if (!engine.mayLend(host)) return host;
    const isItself = engine.nodes().some(({ node }) => {
      const key = node.host === host ? client.keyOf(node) : null;
      return key !== null && equalBytes(key, nodeKey);
    });
    return isItself ? host : lentSource(host);
  }

  /** When another node was last heard, Unix milliseconds. */
  get lastAnswerAt(): number {
    return this.#parts.engine.lastAnswerAt;
  }

  /** The same for nodes with a public address. */
  get lastPublicAnswerAt(): number {
    return this.#parts.engine.lastPublicAnswerAt;
  }

  /** Initial addresses: of the contacts, of nodes found on the LAN, and of nodes known before. */
  places(): readonly Address[] {
    return this.#parts.bootstrapNodes.addresses();
  }

  /** Compares our clock with the clocks of nodes that answered lately. */
  clocks(): ClockComparison {
    const { client, clock } = this.#parts;
    return client.clocks.compare(clock.now());
  }

  /** Usual time of an answer, milliseconds. */
  usualRttMs(): number {
    return this.#parts.health.usualRttMs;
  }

  /** As `PeerClocks.aheadMs`, now. */
  clockAheadMs(): number {
    const { client, clock } = this.#parts;
    return client.clocks.aheadMs(clock.now());
  }

  /** Opens another UDP port on every interface. Other nodes can report how they see it. */
  openPort(family: 4 | 6): OpenPort {
    return this.#parts.engine.openPort(family);
  }

  /** As `openPort` over IPv4, but never over TLS. */
  openSystemPort(): OpenPort {
    return this.#parts.engine.openSystemPort();
  }

  /** As `openPort` over IPv4, with another socket. */
  openPortAt(socket: UdpSocket): OpenPort {
    return this.#parts.engine.openPortAt(socket);
  }

  /**
   * True if one of the nodes answers a datagram as long as those of a QUIC handshake, never over TLS. If short ones are
   * answered and long ones are not, the path is too narrow for QUIC.
   */
  async carriesQuic(nodes: readonly Address[]): Promise<boolean> {
    const port = this.openSystemPort();
    try {
      return (await Promise.all(nodes.map((node) => port.answersLong(node)))).includes(true);
    } finally {
      await port.close();
    }
  }

  /** An unbound UDP socket that is independent of the record network. */
  plainSocket(): UdpSocket {
    return this.#parts.engine.plainSocket();
  }

  /** The socket at which strangers reach this node. */
  get openSocket(): UdpSocket {
    return this.#parts.engine.openSocket;
  }

  usage(): StoreUsage {
    return this.#parts.store.usage();
  }

  recent(type: RecordType, limit: number): readonly SignedRecord[] {
    return this.#parts.store.recent(type, limit);
  }

  /** The contacts, with the result of the last attempt. */
  contacts(): readonly ContactView[] {
    const { bootstrapNodes, engine } = this.#parts;
    return bootstrapNodes.contacts((address) => engine.hasNode(address));
  }

  /** Joins by a contact. If it answers, it stays a contact until the process ends. */
  async join(contact: NodeContact): Promise<MeetingState> {
    return await this.#parts.membership.join(contact);
  }

  /** Adds a contact for times when this node has no peers. */
  listContact(contact: NodeContact): void {
    this.#parts.bootstrapNodes.list(contact);
  }

  /** Removes a contact. Nodes that are known through it stay. */
  forget(contact: NodeContact): void {
    this.#parts.bootstrapNodes.forget(contact);
  }

  /** Call this if this machine may be on another network: reachability is determined again. */
  onPortChange(handler: () => void): () => void {
    return this.#parts.engine.events.portChange.add(handler);
  }

  onNetwork(): void {
    const { engine, membership } = this.#parts;
    engine.onNetwork();
    membership.onNetworkChange();
  }

  /** Call this if the router starts to forward a port to the listening port. */
  onMapped(): void {
    this.#parts.membership.onMapped();
  }

  addNode(address: Address): void {
    const { engine, membership } = this.#parts;
    if (!engine.isOwn(address)) membership.addContact(address);
  }
}
