/**
 * One QUIC connection per pair of nodes, whoever dialled it: shared by all who need it, checked by
 * a hello, replaced when it breaks, closed when nobody has used it for a while.
 */

import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import type { RepeatingTask } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { Tally } from '../../foundation/tally.ts';
import { KnownNodes } from '../known-nodes.ts';
import type { Connection, Endpoint, Stream, StreamUpgrade } from '../transport/types.ts';
import { type Dialler, directly, type NodePlace } from './dial.ts';
import { Dials } from './dials.ts';
import { type Greeted, Greeter, HELLO_TIMEOUT_MS } from './greeter.ts';
import { sweepIdle } from './idle-sweep.ts';
import { NodeSession } from './node-session.ts';
import { type PathChange, PathChanges } from './path-changes.ts';
import { PathRecovery } from './path-recovery.ts';
import { PathWatch } from './path-watch.ts';
import { Places } from './places.ts';
import { type Probed, probe, probeAnswers } from './probe.ts';
import { Relocation } from './relocation.ts';
import { SessionTable } from './session-table.ts';
import { KIND, type Kind, StreamDispatcher, type StreamHandler } from './stream-dispatcher.ts';
import { StreamUpgrades } from './stream-upgrades.ts';
import { type ConnectionView, connectionView, type LinkStats, Traffic, type WayView } from './views.ts';

interface NodePoolOptions {
  /** Public key of this node. */
  readonly nodeKey: Uint8Array;
  /** Name of the network; nodes of another one are refused. */
  readonly network: string;
}

interface NodePoolDependencies {
  readonly endpoint: Pick<Endpoint, 'dial' | 'onConnection'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The configuration's `disable_relay`; false where left out. */
  relayDisabled?(): boolean;
  /** TCP beside the QUIC connections with neighbours; none where left out. */
  readonly upgrade?: StreamUpgrade;
  /** Shared with the endpoint, for which strangers make room. */
  readonly known?: KnownNodes;
}

/** Where a node is by what it says to the network; null where nobody knows. */
export type Locate = (nodeKey: Uint8Array, signal: AbortSignal) => Promise<NodePlace | null>;

export interface ConnectOptions {
  /** False where no third node may carry the packets. */
  readonly relays?: boolean;
  /** A connection that seems dead: it is not returned, and gets no new streams once another stands. */
  readonly insteadOf?: NodeSession;
  /** True where the network has just been asked for the place. */
  readonly isFresh?: boolean;
}

export class ConnectionPool implements Component {
  /** Public key of this node. */
  readonly nodeKey: Uint8Array;
  /** Receives the streams that other nodes open. */
  readonly gate: StreamDispatcher;
  /** Nodes for which strangers make room. */
  readonly known: KnownNodes;
  /** Told of a node to which new links go beside its QUIC connection from now on. */
  readonly upgraded: Listeners<[nodeKey: Uint8Array]> = new Listeners();
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #table: SessionTable;
  readonly #traffic = new Traffic();
  readonly #greeter: Greeter;
  readonly #dials: Dials;
  readonly #diallers: Dialler[] = [];
  readonly #paths = new PathChanges();
  readonly #places = new Places();
  readonly #watch: PathWatch;
  readonly #detours: PathRecovery;
  readonly #elsewhere: Relocation;
  /** Nodes whose connections are kept, by the hex of their keys. */
  readonly #kept = new Tally();
  readonly #upgrades: StreamUpgrades | null;
  readonly #relayDisabled: () => boolean;
  #locate: Locate = async () => null;
  /** Those who wait for the hello of a connection that the other node dialled. */
  readonly #awaited = new WeakMap<Connection, (session: NodeSession) => void>();
  #sweep: RepeatingTask | null = null;
  #stopped = false;

  /** Takes the endpoint's connections, so it is made before the endpoint starts. */
  constructor({ nodeKey, network }: NodePoolOptions, dependencies: NodePoolDependencies) {
    const { endpoint, clock, log, upgrade } = dependencies;
    this.nodeKey = nodeKey;
    this.#clock = clock;
    this.#log = log.child('links');
    this.known = dependencies.known ?? new KnownNodes();
    this.gate = new StreamDispatcher({ clock, log: this.#log, known: this.known });
    this.#table = new SessionTable(nodeKey);
    const greeter = new Greeter(network, { clock, gate: this.gate, take: (greeted) => this.#take(greeted) });
    this.#greeter = greeter;
    this.#relayDisabled = () => dependencies.relayDisabled?.() === true;
    this.handle(KIND.probe, probeAnswers({ clock, known: this.known }));
    const onReady = ({ nodeId: node, there }: NodeSession): void => {
      this.#log.debug({ node }, 'new links to a neighbour go over TCP');
      this.upgraded.notify(there.nodeKey);
    };
    this.#upgrades =
      upgrade === undefined ? null : new StreamUpgrades({ upgrade, gate: this.gate, clock, log: this.#log, onReady });
    if (this.#upgrades !== null) this.handle(KIND.near, this.#upgrades.answer);
    this.#diallers.push(directly({ endpoint, clock }));
    this.#dials = new Dials({
      clock,
      diallers: () => this.#diallers,
      greet: (connection, signal) =>
        connection.outbound ? greeter.greet(connection, signal) : this.#greeted(connection, signal),
    });
    const isKept = (session: NodeSession): boolean =>
      this.#table.isCurrent(session) && this.#kept.of(session.nodeId) > 0;
    this.#detours = new PathRecovery({
      clock,
      log: this.#log,
      newer: (session) => this.#table.newerThan(session),
      dial: async (session, signal) => {
        const { nodeKey: there } = session.there;
        const known = this.#places.of(there);
        const place = known ?? (await this.#locate(there, signal));
        const options = { insteadOf: session, isFresh: known === null };
        return place === null ? null : await this.connect(place, signal, options);
      },
    });
    this.#elsewhere = new Relocation({
      clock,
      log: this.#log,
      locate: (there, signal) => this.#locate(there, signal),
      dial: async (place, relays, signal) => {
        this.#places.note(place);
        return await this.#dials.to(place, relays).join(signal);
      },
    });
    this.#watch = new PathWatch({
      clock,
      log: this.#log,
      sessions: () => this.#sessions(),
      isKept,
      onDead: (session, isUsed) => {
        this.#watch.doubtAll();
        if (isUsed) detach(this.#detours.around(session));
        // Nobody waits on it, and who needs one makes one.
        else session.close();
      },
    });
    endpoint.onConnection((connection) => this.receive(connection));
  }

  async start(): Promise<void> {
    const standing = (session: NodeSession) => {
      if (!this.#table.isCurrent(session)) return 'spare';
      return this.#kept.of(session.nodeId) > 0 ? 'kept' : 'current';
    };
    this.#watch.start();
    this.#sweep = sweepIdle(() => this.#sessions(), standing, { clock: this.#clock, log: this.#log });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#sweep?.stop();
    this.#watch.stop();
    this.#detours.stop();
    this.#greeter.stop();
    this.#dials.stop();
    for (const session of this.#sessions()) session.close();
  }

  /** Names who takes the streams of a kind that other nodes open; once each. */
  handle(kind: Kind, handler: StreamHandler): void {
    this.gate.handle(kind, handler);
  }

  /** Waits for the hello of a connection that another node dialled. */
  receive(connection: Connection): void {
    if (this.#relayDisabled() && isRelayed(connection.path.kind)) connection.close();
    else this.#greeter.receive(connection);
  }

  /** A new stream to a neighbour beside its QUIC connection; null where that has to carry it. */
  openUpgraded(session: NodeSession): Stream | null {
    return this.#upgrades?.open(session) ?? null;
  }

  /** Adds a way to reach nodes; it is tried from the next attempt on. */
  addDialler(dialler: Dialler): void {
    this.#diallers.push(dialler);
  }

  /** Says how nodes are found that have only ever dialled us, or do not answer where they are dialled. */
  locateBy(locate: Locate): void {
    this.#locate = locate;
  }

  /**
   * A connection to a node: the one that stands, or a new one.
   * @throws SvcError `connect_failed`, `protocol_error`, or the signal's reason; `relay_required` where only a way that
   *   is not allowed is left
   */
  async connect(place: NodePlace, signal: AbortSignal, options: ConnectOptions = {}): Promise<NodeSession> {
    const { insteadOf, isFresh = false } = options;
    const relays = this.#mayRelay(options.relays);
    this.#places.note(place);
    const current = this.current(place.nodeKey, relays);
    if (current !== null && current !== insteadOf) return current;
    const detour = insteadOf !== undefined && relays ? this.#table.detourOf(insteadOf) : null;
    if (detour !== null) return this.#use(detour, insteadOf);
    const attempt = this.#dials.to(place, relays);
    const found = this.#elsewhere.seek(place, { relays, isLost: insteadOf !== undefined && !isFresh });
    try {
      return this.#use(await attempt.join(signal), insteadOf);
    } finally {
      found();
    }
  }

  /**
   * The connection to a node that stands now, if any.
   * @param relays false where a relayed one is of no use
   */
  current(nodeKey: Uint8Array, relays?: boolean): NodeSession | null {
    return this.#table.current(toHex(nodeKey), this.#mayRelay(relays));
  }

  /**
   * Asks a node over the connection that stands whether it is there.
   * @throws SvcError as `probe`; `connect_failed` where none stands
   */
  async probe(nodeKey: Uint8Array, signal?: AbortSignal): Promise<Probed> {
    const session = this.current(nodeKey);
    if (session === null) throw new SvcError('connect_failed', { message: 'No connection to the node stands.' });
    return await probe(session, this.#clock, signal);
  }

  /**
   * Takes a connection that we dialled beside the one in use, because it came a better way: new streams go there, and
   * those that stand go on. Where the one in use is the better one, the new one is closed.
   * @returns the connection that new streams use from now on
   * @throws SvcError `connect_failed`, `protocol_error`, or the signal's reason; the connection is closed then
   */
  async upgrade(connection: Connection, signal?: AbortSignal): Promise<NodeSession> {
    const standing = this.current(connection.remoteKey);
    const isWorse = standing !== null && isRelayed(connection.path.kind) && !isRelayed(standing.connection.path.kind);
    if (this.#stopped || isWorse) connection.close();
    if (this.#stopped) throw new SvcError('cancelled');
    if (isWorse) return standing;
    using limit = awakeTimeout(this.#clock, HELLO_TIMEOUT_MS, signal);
    const session = await this.#greeter.greet(connection, limit.signal);
    return this.current(connection.remoteKey) ?? session;
  }

  /** To be called when this machine may be on another network: what does not answer any more is replaced or closed. */
  onNetwork(): void {
    this.#detours.onNetwork();
    this.#watch.suspectAll();
  }

  /** Keeps the connection to a node open though no streams use it. Returns how to end that. */
  keep(nodeKey: Uint8Array): () => void {
    const node = toHex(nodeKey);
    let kept = true;
    this.#kept.add(node);
    return () => {
      if (kept) this.#kept.add(node, -1);
      kept = false;
    };
  }

  /** Uses the connections to a node for no new streams; those that stand go on. */
  reset(nodeKey: Uint8Array): void {
    const node = toHex(nodeKey);
    this.#table.drain(node);
    this.#notePath(nodeKey);
  }

  /** Calls back when new streams to a node begin to take another path, or none is left. Returns how to stop. */
  onPathChange(handler: (change: PathChange) => void): () => void {
    return this.#paths.heard.add(handler);
  }

  /** Closes every connection that a relay carries: relays are disabled from now on. */
  closeRelayed(): void {
    for (const session of [...this.#sessions()]) if (isRelayed(session.connection.path.kind)) session.close();
  }

  stats(): LinkStats {
    return this.#traffic.total(this.#sessions());
  }

  /** Every connection, for people. */
  connections(): readonly ConnectionView[] {
    return [...this.#table].map((one) => connectionView(one, this.#table.isCurrent(one)));
  }

  /** How a node at a place would be reached, in the order in which the ways begin. */
  ways(place: NodePlace): readonly WayView[] {
    const relays = this.#mayRelay();
    return this.#diallers
      .map((dialler) => ({
        kind: dialler.kind,
        delayMs: dialler.delayMs(place, relays),
        mayLead: dialler.mayLead(place),
      }))
      .sort((a, b) => a.delayMs - b.delayMs);
  }

  *#sessions(): Generator<NodeSession> {
    yield* this.#table;
  }

  /** The session of a connection that the other node dialled because we asked it to: it says hello. */
  async #greeted(connection: Connection, signal: AbortSignal): Promise<NodeSession> {
    const known = this.#table.of(toHex(connection.remoteKey)).find((session) => session.connection === connection);
    if (known !== undefined) return known;
    const greeting = Promise.withResolvers<NodeSession>();
    this.#awaited.set(connection, greeting.resolve);
    detach(connection.closed.then(() => greeting.reject(new SvcError('connect_failed'))));
    try {
      return await abortable(greeting.promise, signal);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  #mayRelay(wanted: boolean = true): boolean {
    return wanted && !this.#relayDisabled();
  }

  /** Prefers a session, where the current one is of no use any more. */
  #use(session: NodeSession, insteadOf: NodeSession | undefined): NodeSession {
    insteadOf?.drain();
    this.#table.prefer(session);
    this.#notePath(session.there.nodeKey);
    return session;
  }

  #notePath(nodeKey: Uint8Array): void {
    this.#paths.note(nodeKey, this.#table.current(toHex(nodeKey))?.connection.path ?? null);
  }

  /** Takes in a greeted connection. */
  #take({ connection, ours, theirs }: Greeted): NodeSession {
    const session = new NodeSession({ connection, localKey: this.nodeKey, ours, theirs }, { clock: this.#clock });
    if (this.#stopped) session.close();
    // The node has restarted: whatever its former life has left is dead.
    // protocol-links.md, step 4
    for (const other of [...this.#table.of(session.nodeId)]) if (other.instance !== session.instance) other.close();
    this.#add(session);
    this.#awaited.get(connection)?.(session);
    return session;
  }

  #add(session: NodeSession): void {
    const { nodeId: node, connection } = session;
    // A node dials anew only where an older connection has failed it: then it has failed us too.
    for (const older of this.#table.of(node)) if (older.streams > 0) this.#watch.suspect(older);
    this.#table.add(session);
    this.#dials.settle(session);
    this.#notePath(connection.remoteKey);
    this.#log.debug({ node, outbound: connection.outbound, path: connection.path }, 'connected');
    detach(
      connection.closed.then(() => {
        this.#traffic.ended(session);
        this.#table.remove(session);
        this.#notePath(connection.remoteKey);
        this.#log.debug({ node }, 'disconnected');
      }),
    );
  }
}
