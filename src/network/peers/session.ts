/** One connection to another node after its hello. */

import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { guard } from '../../foundation/stream-listeners.ts';
import type { KnownNodes } from '../known-nodes.ts';
import type { Path } from '../transport/path.ts';
import type { BulkStream, Connection, ConnectionStats, Stream, UpgradeState } from '../transport/types.ts';
import { KIND, readExactly } from './wire.ts';

/** One end of a connection: the node's public key, and the nonce that it chose for this connection. */
export interface ConnectionEnd {
  readonly nodeKey: Uint8Array;
  readonly nonce: Uint8Array;
}

/** The hello of one node on one connection. */
export interface Hello {
  /** Fresh for this connection. */
  readonly nonce: Uint8Array;
  /** Random value of the node's process. It changes with a restart. */
  readonly instance: Uint8Array;
}

interface SessionOptions {
  readonly connection: Connection;
  readonly localKey: Uint8Array;
  readonly ours: Hello;
  readonly theirs: Hello;
}

export class NodeSession {
  readonly connection: Connection;
  /** Both ends of the connection, as named in proofs. */
  readonly here: ConnectionEnd;
  readonly there: ConnectionEnd;
  /** The other node's key in hex. */
  readonly nodeId: string;
  /** Random value of the other process in hex. It changes with a restart. */
  readonly instance: string;
  /** Milliseconds since the Unix epoch. */
  readonly openedAt: number;
  /** Traffic of the faster transport. */
  readonly upgrade: UpgradeState = { sent: 0, received: 0, isReady: false };
  readonly #clock: Clock;
  /** Lanes on which links of this connection continue. */
  readonly #lanes = new Set<BulkStream>();
  #streams = 0;
  #idleSince: number;
  #heardAt = Number.NEGATIVE_INFINITY;
  /** The first packet without an answer: its time, and the bytes received before it. */
  #asked: { readonly at: number; readonly received: number } | null = null;
  #draining = false;
  #closed = false;

  constructor(options: SessionOptions, dependencies: { readonly clock: Clock }) {
    const { connection, localKey, ours, theirs } = options;
    this.#clock = dependencies.clock;
    this.connection = connection;
    this.here = { nodeKey: localKey, nonce: ours.nonce };
    this.there = { nodeKey: connection.remoteKey, nonce: theirs.nonce };
    this.nodeId = toHex(connection.remoteKey);
    this.instance = toHex(theirs.instance);
    this.openedAt = dependencies.clock.now();
    this.#idleSince = dependencies.clock.monotonic();
    detach(
      connection.closed.then(() => {
        this.#closed = true;
      }),
    );
  }

  /** Number of open streams of both sides. */
  get streams(): number {
    return this.#streams;
  }

  /** Milliseconds since the last stream closed; 0 with an open stream. */
  get idleMs(): number {
    return this.#streams > 0 ? 0 : this.#clock.monotonic() - this.#idleSince;
  }

  /** True if this node opens no new streams on it. Open streams continue. */
  get draining(): boolean {
    return this.#draining;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Opens a stream.
   * @throws SvcError `connect_failed` if the connection is closed
   */
  async openStream(): Promise<Stream> {
    const message = 'The connection was lost.';
    if (this.#closed) throw new SvcError('connect_failed', { message });
    // An opening stream counts, so the connection is not idle.
    this.#streams++;
    try {
      const stream = await this.connection.openStream();
      this.adopt(stream);
      return stream;
    } catch (cause) {
      throw cause instanceof SvcError ? cause : new SvcError('connect_failed', { message, cause });
    } finally {
      this.#release();
    }
  }

  /** Counts a stream of either side until it closes. */
  adopt(stream: Stream): void {
    this.#streams++;
    guard(stream);
    stream.once('close', () => this.#release());
  }

  /** A link of this connection continues on a lane. */
  continuesOn(lane: BulkStream): void {
    this.#lanes.add(lane);
    lane.once('close', () => this.#lanes.delete(lane));
  }

  /** Bytes received on the connection, and by links of it on lanes. A closed lane no longer counts. */
  get receivedBytes(): number {
    let sum = this.connection.stats().bytesReceived + this.upgrade.received;
    for (const lane of this.#lanes) sum += lane.received();
    return sum;
  }

  /** A packet arrived. */
  heard(): void {
    this.#heardAt = this.#clock.monotonic();
  }

  /** True if a packet arrived within this time. */
  heardWithin(ms: number): boolean {
    return this.#clock.monotonic() - this.#heardAt < ms;
  }

  /** To be called when a packet is sent that the other node answers. */
  expectAnswer(): void {
    // Every request comes here, and the counters of the engine are expensive to read.
    const received = this.receivedBytes;
    if (this.#asked?.received !== received) this.#asked = { at: this.#clock.monotonic(), received };
  }

  /** When the first packet was sent that the other node should have answered; null if a packet arrived since. */
  get unansweredSince(): number | null {
    return this.#asked?.received === this.receivedBytes ? this.#asked.at : null;
  }

  /** This node opens no new streams on it after this. */
  drain(): void {
    this.#draining = true;
  }

  close(): void {
    this.#closed = true;
    this.connection.close();
  }

  stats(): ConnectionStats {
    const { bytesSent, bytesReceived, ...packets } = this.connection.stats();
    const { sent, received } = this.upgrade;
    return { bytesSent: bytesSent + sent, bytesReceived: bytesReceived + received, ...packets };
  }

  #release(): void {
    this.#streams--;
    this.#idleSince = this.#clock.monotonic();
  }
}

/** The node at the other end of a session. */
export function sessionHolder({ nodeId, there, connection }: NodeSession, known: KnownNodes): QuotaHolder {
  return { node: nodeId, source: connection.path.source, named: known.has(there.nodeKey) };
}

/**
 * Opens a stream of a session. After an abort a late stream is closed.
 * @throws SvcError as `NodeSession.openStream`, and the signal's reason
 */
export async function openStreamWithin(session: NodeSession, signal: AbortSignal): Promise<Stream> {
  const opening = session.openStream();
  try {
    return await abortable(opening, signal);
  } catch (error) {
    opening.then(
      (stream) => stream.destroy(),
      () => {},
    );
    throw error;
  }
}

/** Timeout of a probe, milliseconds. */
export const ANSWERED_MS = 5_000;
/** The result of a probe. */
export interface Probed {
  /** Round trip including both processes, in milliseconds with fractions. */
  readonly rttMs: number;
  readonly path: Path;
}

/**
 * Probes the other node over a connection. Any status is a success, including a refusal or an unknown kind.
 * @throws SvcError `connect_failed` if the connection is closed; `timeout` after `ANSWERED_MS` without stalls;
 *   `protocol_error` after a reset; or the signal's reason
 */
export async function probe(session: NodeSession, clock: Clock, signal?: AbortSignal): Promise<Probed> {
  // protocol-links.md, step 17
  using limit = awakeTimeout(clock, ANSWERED_MS, signal);
  const stream = await openStreamWithin(session, limit.signal);
  try {
    // The time of day may change meanwhile.
    const askedAt = performance.now();
    stream.end(Uint8Array.of(KIND.probe));
    await readExactly(stream, 1, limit.signal);
    return { rttMs: performance.now() - askedAt, path: session.connection.path };
  } catch (error) {
    const isLate = error instanceof SvcError && error.code === 'timeout';
    throw isLate ? new SvcError('timeout', { message: 'The other node does not answer.', cause: error }) : error;
  } finally {
    stream.destroy();
  }
}
