/**
 * One QUIC connection per pair of nodes, whoever dialled it: shared by all who need it, checked by
 * a hello, replaced when it breaks, closed when nobody has used it for a while. Beside it there may
 * be some for bulk.
 */

import { formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import type { Repeating } from '../../foundation/repeat.ts';
import type { QuicEndpoint } from '../quic/types.ts';
import { directly, type NodePlace } from './dial.ts';
import { Dials } from './dials.ts';
import { type Greeted, Greeter } from './greeter.ts';
import { sweepIdle } from './idle-sweep.ts';
import { NodeSession } from './node-session.ts';
import { SessionTable } from './session-table.ts';
import { SideSessions } from './sides.ts';
import { type Kind, StreamDispatcher, type StreamHandler } from './stream-dispatcher.ts';
import { type ConnectionView, connectionView, type LinkStats, Traffic } from './views.ts';

interface NodePoolOptions {
  /** Public key of this node. */
  readonly nodeKey: Uint8Array;
  /** Name of the network; nodes of another one are refused. */
  readonly network: string;
}

interface NodePoolDependencies {
  readonly endpoint: Pick<QuicEndpoint, 'dial' | 'onConnection'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class ConnectionPool implements Component {
  /** Public key of this node. */
  readonly nodeKey: Uint8Array;
  /** Receives the streams that other nodes open. */
  readonly gate: StreamDispatcher;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #table: SessionTable;
  readonly #sides = new SideSessions();
  readonly #traffic = new Traffic();
  readonly #greeter: Greeter;
  readonly #dials: Dials;
  #sweep: Repeating | null = null;
  #stopped = false;

  /** Takes the endpoint's connections, so it is made before the endpoint starts. */
  constructor({ nodeKey, network }: NodePoolOptions, { endpoint, clock, log }: NodePoolDependencies) {
    this.nodeKey = nodeKey;
    this.#clock = clock;
    this.#log = log.child('links');
    this.gate = new StreamDispatcher({ clock, log: this.#log });
    this.#table = new SessionTable(nodeKey);
    const greeter = new Greeter(network, { clock, gate: this.gate, take: (greeted) => this.#take(greeted) });
    this.#greeter = greeter;
    this.#dials = new Dials({
      clock,
      ways: [directly({ endpoint, clock })],
      greet: (connection, isSide, signal) => greeter.greet(connection, isSide, signal),
    });
    endpoint.onConnection((connection) => greeter.receive(connection));
  }

  async start(): Promise<void> {
    const isCurrent = (session: NodeSession): boolean => this.#table.isCurrent(session);
    this.#sweep = sweepIdle(() => this.#sessions(), isCurrent, { clock: this.#clock, log: this.#log });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#sweep?.stop();
    this.#greeter.stop();
    this.#dials.stop();
    this.#sides.cancel();
    for (const session of this.#sessions()) session.close();
  }

  /** Names who takes the streams of a kind that other nodes open; once each. */
  handle(kind: Kind, handler: StreamHandler): void {
    this.gate.handle(kind, handler);
  }

  /**
   * A connection to a node: the one that stands, or a new one.
   * @param insteadOf a connection that seems dead: it is not returned, and gets no new streams once another stands
   * @throws SvcError `connect_failed`, `protocol_error`, or the signal's reason
   */
  async connect(place: NodePlace, signal: AbortSignal, insteadOf?: NodeSession): Promise<NodeSession> {
    for (;;) {
      const current = this.current(place.nodeKey);
      if (current !== null && current !== insteadOf) return current;
      const { attempt, addresses } = this.#dials.to(place);
      try {
        const session = await attempt.join(signal);
        insteadOf?.drain();
        this.#table.prefer(session);
        return session;
      } catch (error) {
        // Another caller's attempt may not have known all of our addresses.
        const tried = place.addresses.every((address) => addresses.has(formatAddress(address)));
        if (tried || signal.aborted || this.#stopped) throw error;
      }
    }
  }

  /**
   * A connection for bulk beside the current one.
   * @param index which of them, 0 to `MAX_SIDES` − 1
   * @throws SvcError as `connect`
   */
  side(place: NodePlace, index: number, signal: AbortSignal): Promise<NodeSession> {
    return this.#sides.connect(toHex(place.nodeKey), index, signal, () => this.#dials.attempt(place, true));
  }

  /** The connection to a node that stands now, if any. */
  current(nodeKey: Uint8Array): NodeSession | null {
    return this.#table.current(toHex(nodeKey));
  }

  /** Uses the connections to a node for no new streams; those that stand go on. */
  reset(nodeKey: Uint8Array): void {
    const node = toHex(nodeKey);
    for (const session of this.#sides.of(node)) session.drain();
    this.#table.drain(node);
  }

  stats(): LinkStats {
    return this.#traffic.total(this.#sessions());
  }

  /** Every connection, for the debug page. */
  connections(): readonly ConnectionView[] {
    return [...this.#sessions()].map((session) => connectionView(session, this.#table.isCurrent(session)));
  }

  *#sessions(): Generator<NodeSession> {
    yield* this.#table;
    yield* this.#sides;
  }

  /** Takes in a greeted connection. */
  #take({ connection, ours, theirs, isSide }: Greeted): NodeSession {
    const session = new NodeSession({ connection, localKey: this.nodeKey, ours, theirs }, { clock: this.#clock });
    if (this.#stopped) session.close();
    const known = [...this.#table.of(session.nodeId), ...this.#sides.of(session.nodeId)];
    // The node has restarted: whatever its former life has left is dead.
    for (const other of known) if (other.instance !== session.instance) other.close();
    if (isSide) this.#addSide(session);
    else this.#add(session);
    return session;
  }

  #addSide(session: NodeSession): void {
    detach(
      session.connection.closed.then(() => {
        this.#traffic.ended(session);
        this.#sides.forget(session);
      }),
    );
    if (!session.connection.outbound && !this.#sides.accept(session)) session.close();
  }

  #add(session: NodeSession): void {
    const { nodeId: node, connection } = session;
    this.#table.add(session);
    this.#dials.settle(session);
    this.#log.debug({ node, outbound: connection.outbound, path: connection.path }, 'connected');
    detach(
      connection.closed.then(() => {
        this.#traffic.ended(session);
        this.#table.remove(session);
        this.#log.debug({ node }, 'disconnected');
      }),
    );
  }
}
