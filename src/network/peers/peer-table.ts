/** Finds the peer of a remote node. Two nodes share one QUIC connection, regardless of which node dialed it. */

import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, nativeAid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import { awakeTimeout, SLEEP_MS } from '../../foundation/stall.ts';
import { KnownNodes } from '../known-nodes.ts';
import type { Path } from '../transport/path.ts';
import type { Connection, ConnectionStats, Endpoint, Stream, StreamUpgrade } from '../transport/types.ts';
import { type Dialer, directly, type NodePlace } from './dial.ts';
import { type Greeted, Greeter } from './greeter.ts';
import { LOOK_MS } from './path-health.ts';
import { type ConnectOptions, type PathChange, Peer, type PeerContext } from './peer.ts';
import { NodeSession, openStreamWithin, type Probed, probe, sessionHolder } from './session.ts';
import { StreamDispatcher, type StreamHandler } from './stream-dispatcher.ts';
import { endWith, KIND, type Kind, ProtocolBreach, Refusal, readExactly, readFrame, STATUS, u16 } from './wire.ts';

/** Maximum number of inactive peers with a stored place. The least recently used peer is removed first. */
const MAX_AT_REST = 1024;
/** After a dead path all other used paths are checked, but only once within this time, milliseconds. */
export const DOUBT_MS = 5_000;

interface PeerTableOptions {
  /** Public key of this node. */
  readonly nodeKey: Uint8Array;
  /** Name of the network. Nodes of another network are refused. */
  readonly network: string;
}

interface PeerTableDependencies extends NodeParts {
  readonly endpoint: Pick<Endpoint, 'dial' | 'onConnection'>;
  /** The configuration's `disable_relay`. Default: false. */
  relayDisabled?(): boolean;
  /** A faster transport for connections with LAN peers. */
  readonly upgrade?: StreamUpgrade;
  /** Shared with the endpoint. Known nodes have priority over strangers. */
  readonly known?: KnownNodes;
}

/** Totals since the start. */
export interface LinkStats {
  readonly connections: number;
  readonly streams: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/** One connection, for diagnosis. */
export interface ConnectionView extends ConnectionStats {
  readonly node: Aid;
  readonly path: Path;
  readonly outbound: boolean;
  /** True if new streams of this node use it. */
  readonly current: boolean;
  readonly streams: number;
  readonly rttMs: number;
  /** Milliseconds since the Unix epoch. */
  readonly openedAt: number;
}

/** One dialer, before a dial. */
export interface WayView extends Pick<Dialer, 'kind'> {
  /** From the start of the attempt, milliseconds. */
  readonly delayMs: number;
  /** False if it has no start point. */
  readonly mayLead: boolean;
}

/** The place in a node's newest record, or null if unknown. */
export type Locate = PeerContext['locate'];

export class PeerTable implements Component {
  /** Public key of this node. */
  readonly nodeKey: Uint8Array;
  /** Receives the streams that other nodes open. */
  readonly gate: StreamDispatcher;
  /** Nodes with priority over strangers. */
  readonly known: KnownNodes;
  /** Called for a node whose new links use the faster transport. */
  readonly upgraded: Listeners<[nodeKey: Uint8Array]> = new Listeners();
  readonly #clock: Clock;
  readonly #log: Log;
  /** Peers with a connection or an attempt, by their keys in hex. */
  readonly #active = new Map<string, Peer>();
  readonly #atRest = new LruCache<string, Peer>({ maxEntries: MAX_AT_REST });
  readonly #context: PeerContext;
  readonly #dialers: Dialer[];
  readonly #greeter: Greeter;
  readonly #upgrades: StreamUpgrades | null;
  readonly #pathChanges = new Listeners<[PathChange]>();
  readonly #past = { bytesSent: 0, bytesReceived: 0 };
  #locate: Locate = async () => null;
  #looks: RepeatingTask | null = null;
  #lookedAt = 0;
  #doubtedAt = Number.NEGATIVE_INFINITY;
  /** Number of possible changes of network. */
  #networks = 0;
  #isStopped = false;

  /** Handles the endpoint's connections, so it must exist before the endpoint starts. */
  constructor({ nodeKey, network }: PeerTableOptions, dependencies: PeerTableDependencies) {
    const { endpoint, clock, upgrade } = dependencies;
    const log = dependencies.log.child('links');
    this.nodeKey = nodeKey;
    this.#clock = clock;
    this.#log = log;
    this.known = dependencies.known ?? new KnownNodes();
    this.gate = new StreamDispatcher({ clock, log, known: this.known });
    this.handle(KIND.probe, probeAnswers(clock, this.known));
    this.#greeter = new Greeter(network, this.gate, (greeted) => this.#take(greeted), clock);
    const onReady = ({ nodeId: node, there }: NodeSession): void => {
      log.debug({ node }, 'new links to a LAN peer use TCP');
      this.upgraded.notify(there.nodeKey);
    };
    this.#upgrades = upgrade === undefined ? null : new StreamUpgrades(upgrade, this.gate, { clock, log }, onReady);
    if (this.#upgrades !== null) this.handle(KIND.lanTcp, this.#upgrades.answer);
    this.#dialers = [directly(endpoint, clock)];
    this.#context = {
      localKey: nodeKey,
      clock,
      log,
      dialers: this.#dialers,
      mayRelay: () => dependencies.relayDisabled?.() !== true,
      greet: (connection, signal) => this.#greeter.greet(connection, signal),
      locate: (there, signal) => this.#locate(there, signal),
      lookups: 0,
      improved: 0,
      onActivity: (peer) => this.#file(peer),
      onPathChange: (change) => this.#pathChanges.notify(change),
      onDeadPath: () => this.#doubtAll(),
      onEnded: (session) => {
        const { bytesSent, bytesReceived } = session.stats();
        this.#past.bytesSent += bytesSent;
        this.#past.bytesReceived += bytesReceived;
      },
    };
    endpoint.onConnection((connection) => this.receive(connection));
  }

  async start(): Promise<void> {
    this.#lookedAt = this.#clock.monotonic();
    const onError = (error: unknown): void => this.#log.warn({ error }, 'connections could not be checked');
    const options = { firstMs: this.#lookPauseMs, periodMs: LOOK_MS, onError };
    this.#looks = every(this.#clock, options, () => {
      this.#look();
      return this.#lookPauseMs;
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#looks?.stop();
    this.#greeter.stop();
    for (const peer of this.#active.values()) peer.stop();
  }

  /** Adds a dialer for future attempts. */
  addDialer(dialer: Dialer): void {
    this.#dialers.push(dialer);
  }

  /** Sets the lookup for nodes that only ever dialed this node, or that do not answer at their known place. */
  locateBy(locate: Locate): void {
    this.#locate = locate;
  }

  /** Sets the handler for streams of one kind. Each kind has one handler. */
  handle(kind: Kind, handler: StreamHandler): void {
    this.gate.handle(kind, handler);
  }

  /** Waits for the hello on a connection that another node dialed. */
  receive(connection: Connection): void {
    if (!this.#context.mayRelay() && isRelayed(connection.path.kind)) connection.close();
    else this.#greeter.receive(connection);
  }

  /** As `Peer.connect`. If the network changes during a failed dial, it is repeated once. */
  async connect(place: NodePlace, signal: AbortSignal, options: ConnectOptions = {}): Promise<NodeSession> {
    if (this.#isStopped) throw new SvcError('cancelled');
    const network = this.#networks;
    try {
      return await this.#peer(place.nodeKey).connect(place, signal, options);
    } catch (error) {
      if (network === this.#networks || signal.aborted || this.#isStopped) throw error;
      return await this.#peer(place.nodeKey).connect(place, signal, options);
    }
  }

  /** As `Peer.current`. */
  current(nodeKey: Uint8Array, relays?: boolean): NodeSession | null {
    return this.#find(nodeKey)?.current(relays) ?? null;
  }

  /** As `Peer.dialed`. */
  dialed(nodeKey: Uint8Array): NodeSession | null {
    return this.#find(nodeKey)?.dialed() ?? null;
  }

  /** As `Peer.upgrade`. */
  async upgrade(connection: Connection, signal?: AbortSignal): Promise<NodeSession> {
    return await this.#peer(connection.remoteKey).upgrade(connection, signal);
  }

  /** As `Peer.keep`. */
  keep(nodeKey: Uint8Array): () => void {
    return this.#peer(nodeKey).keep();
  }

  /** As `Peer.reset`. */
  reset(nodeKey: Uint8Array): void {
    this.#find(nodeKey)?.reset();
  }

  /** A new stream to a LAN peer over the faster transport. Null if QUIC must carry it. */
  openUpgraded(session: NodeSession): Stream | null {
    return this.#upgrades?.open(session) ?? null;
  }

  /**
   * Probes a node over its current connection.
   * @throws SvcError as `probe`; `connect_failed` without a connection
   */
  async probe(nodeKey: Uint8Array, signal?: AbortSignal): Promise<Probed> {
    const session = this.current(nodeKey);
    if (session === null) throw new SvcError('connect_failed', { message: 'There is no connection to the node.' });
    return await probe(session, this.#clock, signal);
  }

  /** To be called after a possible change of network. Connections without an answer are replaced or closed. */
  onNetwork(): void {
    this.#networks++;
    for (const peer of this.#active.values()) peer.onNetwork();
  }

  /** To be called after a possible change of the router or firewall. Paths without a relay are tried again. */
  improveRelayed(): void {
    for (const peer of this.#active.values()) peer.improveSoon();
  }

  /**
   * To be called when other nodes withdraw their ports. Settles when the used connections over them have moved,
   * or cannot.
   * @param areDead true if they are closed first; false if they close after their streams have moved
   */
  async onPathsWithdrawn(areDead: boolean): Promise<void> {
    await Promise.all([...this.#active.values()].map((peer) => peer.onPathsWithdrawn(areDead)));
  }

  /** True if streams use paths that may be withdrawn. */
  get usesWithdrawable(): boolean {
    return [...this.#sessions()].some(
      ({ session: { connection, streams } }) => connection.path.mayBeWithdrawn === true && streams > 0,
    );
  }

  /** Adds a listener for path changes. Returns a function that removes it. */
  onPathChange(handler: (change: PathChange) => void): () => void {
    return this.#pathChanges.add(handler);
  }

  /** Closes all relayed connections, because relays are disabled now. */
  closeRelayed(): void {
    for (const peer of this.#active.values()) peer.closeRelayed();
  }

  stats(): LinkStats {
    const total = { connections: 0, streams: 0, ...this.#past };
    for (const { session } of this.#sessions()) {
      const { bytesSent, bytesReceived } = session.stats();
      total.connections++;
      total.streams += session.streams;
      total.bytesSent += bytesSent;
      total.bytesReceived += bytesReceived;
    }
    return total;
  }

  /** Every connection, for diagnosis. */
  connections(): readonly ConnectionView[] {
    return Array.from(this.#sessions(), ({ peer, session }) => {
      const { connection, streams, openedAt } = session;
      const { path, outbound } = connection;
      const view = { node: nativeAid(peer.nodeKey), path, outbound, current: peer.isCurrent(session), streams };
      return { ...view, rttMs: connection.rtt(), openedAt, ...session.stats() };
    });
  }

  /** The dialers for a place, in order of their start. */
  ways(place: NodePlace): readonly WayView[] {
    const relays = this.#context.mayRelay();
    return this.#dialers
      .map((dialer) => ({
        kind: dialer.kind,
        delayMs: dialer.delayMs(place, relays),
        mayLead: dialer.mayLead(place),
      }))
      .sort((a, b) => a.delayMs - b.delayMs);
  }

  *#sessions(): Generator<{ readonly peer: Peer; readonly session: NodeSession }> {
    for (const peer of this.#active.values()) for (const session of peer.sessions) yield { peer, session };
  }

  #find(nodeKey: Uint8Array): Peer | undefined {
    const node = toHex(nodeKey);
    return this.#active.get(node) ?? this.#atRest.get(node);
  }

  /** A new peer is added at its first activity. */
  #peer(nodeKey: Uint8Array): Peer {
    return this.#find(nodeKey) ?? new Peer(nodeKey, this.#context);
  }

  #file(peer: Peer): void {
    const { nodeId } = peer;
    const had = this.#active.size > 0;
    if (!peer.isAtRest) this.#active.set(nodeId, peer);
    else if (this.#active.delete(nodeId) && peer.isPlaced) this.#atRest.set(nodeId, peer);
    if (this.#active.size > 0 === had) return;
    this.#lookedAt = this.#clock.monotonic();
    this.#looks?.plan(this.#lookPauseMs);
  }

  /** Without active peers, an idle node is not woken. */
  get #lookPauseMs(): number {
    return this.#active.size > 0 ? LOOK_MS : UNTIL_REQUESTED;
  }

  #take({ connection, ours, theirs }: Greeted): NodeSession {
    const session = new NodeSession({ connection, localKey: this.nodeKey, ours, theirs }, { clock: this.#clock });
    if (this.#isStopped) session.close();
    this.#peer(connection.remoteKey).take(session);
    return session;
  }

  #look(): void {
    const now = this.#clock.monotonic();
    const passedMs = now - this.#lookedAt;
    this.#lookedAt = now;
    const peers = this.#active.values();
    // After a sleep of the machine, the clock leaps ahead.
    if (passedMs > SLEEP_MS) for (const peer of peers) peer.suspect();
    else for (const peer of peers) peer.look();
  }

  #doubtAll(): void {
    const now = this.#clock.monotonic();
    if (now - this.#doubtedAt < DOUBT_MS) return;
    this.#doubtedAt = now;
    for (const peer of this.#active.values()) peer.doubt();
  }
}

/** Probes of one node that get an answer. Others are refused, which is also an answer. */
export const PROBE_RATE: Rate = { perSecond: 20, burst: 100 };
/** The same for strangers at one IPv4 address or IPv6 /64. */
export const PROBE_RATE_PER_SOURCE: Rate = { perSecond: 40, burst: 200 };
/** The same for strangers in one IPv4 /24 or IPv6 /48. */
export const PROBE_RATE_PER_NETWORK: Rate = { perSecond: 80, burst: 400 };
/** The same for all strangers. */
export const PROBE_RATE_OF_STRANGERS: Rate = { perSecond: 500, burst: 2000 };

/** Answers the probes of other nodes, within limits. */
function probeAnswers(clock: Clock, known: KnownNodes): StreamHandler {
  const rate = new RateQuota(
    {
      perKey: PROBE_RATE,
      perSource: PROBE_RATE_PER_SOURCE,
      perNetwork: PROBE_RATE_PER_NETWORK,
      strangers: PROBE_RATE_OF_STRANGERS,
    },
    { clock },
  );
  return async (stream: Stream, session) => {
    if (!rate.take(sessionHolder(session, known))) throw new SvcError('rate_limited');
    endWith(stream, STATUS.ok, clock);
  };
}

/** Deadline for the response of a peer, milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;

/** Opens streams of a connection over a faster transport, and answers nodes that request one. */
class StreamUpgrades {
  readonly #upgrade: StreamUpgrade;
  readonly #gate: StreamDispatcher;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #onReady: (session: NodeSession) => void;

  constructor(
    upgrade: StreamUpgrade,
    gate: StreamDispatcher,
    { clock, log }: { readonly clock: Clock; readonly log: Log },
    onReady: (session: NodeSession) => void,
  ) {
    this.#upgrade = upgrade;
    this.#gate = gate;
    this.#clock = clock;
    this.#log = log;
    this.#onReady = onReady;
  }

  /** A new stream to a node over the faster transport, or null if the connection must carry it. */
  open(session: NodeSession): Stream | null {
    const stream = this.#upgrade.open({
      connection: session.connection,
      state: session.upgrade,
      request: (body) => this.#request(session, body),
      onReady: () => this.#onReady(session),
    });
    if (stream !== null) session.adopt(stream);
    return stream;
  }

  /** Handles the streams of kind `lanTcp`. */
  readonly answer: StreamHandler = async (stream, session, signal) => {
    const request = await readFrame(stream, this.#upgrade.maxRequestBytes, signal);
    const answer = await this.#upgrade
      .answer(request, {
        connection: session.connection,
        state: session.upgrade,
        onStream: (opened) => this.#gate.admit(opened, session),
      })
      .catch((error: unknown) => {
        const isMalformed = error instanceof SvcError && error.code === 'protocol_error';
        throw isMalformed ? new ProtocolBreach(error.message) : error;
      });
    if (answer === null) throw new Refusal(STATUS.unknownPurpose);
    stream.end(Buffer.concat([Uint8Array.of(STATUS.ok), answer]));
    stream.resume();
  };

  async #request(session: NodeSession, body: Uint8Array): Promise<Uint8Array | null> {
    using limit = awakeTimeout(this.#clock, REQUEST_TIMEOUT_MS);
    const stream = await openStreamWithin(session, limit.signal);
    try {
      stream.end(Buffer.concat([Uint8Array.of(KIND.lanTcp), u16(body.length), body]));
      const [status] = await readExactly(stream, 1, limit.signal);
      if (status === STATUS.ok) return await readExactly(stream, this.#upgrade.responseBytes, limit.signal);
      this.#log.debug({ node: session.nodeId }, 'the peer declines a faster transport');
      return null;
    } finally {
      stream.destroy();
    }
  }
}
