/** Attempts to connect to nodes: one at a time to each, shared by all who need it. */
import { formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { patience } from '../../foundation/stall.ts';
import type { QuicConnection } from '../quic/types.ts';
import { type DialWay, dialBy, type NodePlace, SharedAttempt } from './dial.ts';
import type { NodeSession } from './node-session.ts';

/** All ways to a node together have this long to lead there, milliseconds. */
export const NODE_DIAL_TIMEOUT_MS = 4_000;

/** An attempt, and the addresses that it knows. */
interface Dialling {
  readonly attempt: SharedAttempt<NodeSession>;
  readonly addresses: ReadonlySet<string>;
}

interface DialsDependencies {
  readonly clock: Clock;
  /** How a node may be reached, the best first. */
  readonly ways: readonly DialWay[];
  /** Says hello on a connection that was dialled. */
  readonly greet: (connection: QuicConnection, isSide: boolean, signal: AbortSignal) => Promise<NodeSession>;
}

export class Dials {
  readonly #deps: DialsDependencies;
  /** By the hex of the node's key. */
  readonly #running = new Map<string, Dialling>();
  #stopped = false;

  constructor(dependencies: DialsDependencies) {
    this.#deps = dependencies;
  }

  /** Gives up what runs, and begins nothing more. */
  stop(): void {
    this.#stopped = true;
    for (const { attempt } of this.#running.values()) attempt.cancel();
  }

  /** The attempt to reach a node that runs, or a new one. */
  to(place: NodePlace): Dialling {
    const node = toHex(place.nodeKey);
    const running = this.#running.get(node);
    if (running !== undefined) return running;
    const attempt = this.attempt(place, false, () => {
      if (this.#running.get(node)?.attempt === attempt) this.#running.delete(node);
    });
    const dialling = { attempt, addresses: new Set(place.addresses.map(formatAddress)) };
    this.#running.set(node, dialling);
    return dialling;
  }

  /** Gives those who wait for a node a connection that came another way; who comes later dials anew. */
  settle(session: NodeSession): void {
    this.#running.get(session.nodeId)?.attempt.settle(session);
    this.#running.delete(session.nodeId);
  }

  /**
   * A new attempt, which nobody else joins by itself.
   * @param isSide for bulk, beside the connection that is used for all else
   * @param ended called when it is over
   */
  attempt(place: NodePlace, isSide: boolean, ended: () => void = () => {}): SharedAttempt<NodeSession> {
    return new SharedAttempt(async (cancelled) => {
      try {
        using limit = patience(this.#deps.clock, NODE_DIAL_TIMEOUT_MS, cancelled);
        return await this.#connect(place, isSide, limit.signal);
      } catch (error) {
        // A node that does not answer in time cannot be reached; how long the caller waits is his own affair.
        if (error instanceof SvcError && error.code === 'timeout')
          throw new SvcError('connect_failed', { cause: error });
        throw error;
      } finally {
        ended();
      }
    });
  }

  async #connect(place: NodePlace, isSide: boolean, signal: AbortSignal): Promise<NodeSession> {
    if (this.#stopped) throw new SvcError('cancelled');
    return await this.#deps.greet(await dialBy(this.#deps.ways, place, signal), isSide, signal);
  }
}
