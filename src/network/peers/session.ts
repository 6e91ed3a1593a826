/** One connection to another node after its hello: what stands on it, and what binds proofs to it. */

import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { guard } from '../../foundation/stream-listeners.ts';
import type { ConnectionEnd } from '../links/proofs.ts';
import { KIND, readExactly } from '../links/wire.ts';
import type { Path } from '../transport/path.ts';
import type { Connection, ConnectionStats, Stream, UpgradeState } from '../transport/types.ts';

/** What one node says of itself on one connection. */
export interface Hello {
  /** Fresh for this connection. */
  readonly nonce: Uint8Array;
  /** Drawn when the node's process started: another one means that it has restarted. */
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
  /** Our end and the other, as proofs name them. */
  readonly here: ConnectionEnd;
  readonly there: ConnectionEnd;
  /** Hex of the other node's key. */
  readonly nodeId: string;
  /** Hex of the other process's mark: it changes when the node restarts. */
  readonly instance: string;
  /** Milliseconds since the Unix epoch. */
  readonly openedAt: number;
  /** The faster transport of this connection. */
  readonly upgrade: UpgradeState = { sent: 0, received: 0, isReady: false };
  readonly #clock: Clock;
  #streams = 0;
  #idleSince: number;
  #heardAt = Number.NEGATIVE_INFINITY;
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
    this.#idleSince = this.openedAt;
    detach(
      connection.closed.then(() => {
        this.#closed = true;
      }),
    );
  }

  /** Streams of either side that are open. */
  get streams(): number {
    return this.#streams;
  }

  /** Milliseconds since the last stream ended; 0 while one is open. */
  get idleMs(): number {
    return this.#streams > 0 ? 0 : this.#clock.now() - this.#idleSince;
  }

  /** True where no new stream of ours should use it, though those that stand may go on. */
  get draining(): boolean {
    return this.#draining;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Opens a stream.
   * @throws SvcError `connect_failed` where the connection has ended
   */
  async openStream(): Promise<Stream> {
    const message = 'The connection was lost.';
    if (this.#closed) throw new SvcError('connect_failed', { message });
    // Counted while it opens, so that the connection is not taken for an idle one.
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

  /** Counts a stream, such as one that the other node opened, until it closes. */
  adopt(stream: Stream): void {
    this.#streams++;
    guard(stream);
    stream.once('close', () => this.#release());
  }

  /** Something has come from the other node. */
  heard(): void {
    this.#heardAt = this.#clock.now();
  }

  /** Whether that is known to have been so lately; a clock that was set back says no. */
  heardWithin(ms: number): boolean {
    const silentMs = this.#clock.now() - this.#heardAt;
    return silentMs >= 0 && silentMs < ms;
  }

  /** Takes no new streams of ours from now on. */
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
    this.#idleSince = this.#clock.now();
  }
}

/**
 * A new stream of a session; one that comes only after the signal has aborted is closed.
 * @throws SvcError as `Session.openStream`, and what the signal stands for
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

/** Time for the answer to a probe, milliseconds. */
export const ANSWERED_MS = 5_000;
/** What came back. */
export interface Probed {
  /** From the question to the answer, milliseconds with fractions: of the network and of both processes. */
  readonly rttMs: number;
  readonly path: Path;
}

/**
 * Asks the other node over a connection whether it is there. Whatever status it answers with, it is: so does one that
 * does not know the question, and one that we ask too often.
 * @throws SvcError `connect_failed` where the connection has ended; `timeout` after `ANSWERED_MS`, in which we could
 *   have heard it; `protocol_error` where it resets the stream; or the signal's reason
 */
export async function probe(session: NodeSession, clock: Clock, signal?: AbortSignal): Promise<Probed> {
  // protocol-links.md, step 17
  using limit = awakeTimeout(clock, ANSWERED_MS, signal);
  const stream = await openStreamWithin(session, limit.signal);
  try {
    // Not the time of day, which may be set meanwhile.
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
