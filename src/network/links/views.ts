/** What the pool of connections tells people. */
import { type Aid, nativeAid } from '../../foundation/identity/aid.ts';
import type { Path } from '../transport/path.ts';
import type { ConnectionStats } from '../transport/types.ts';
import type { Dialler } from './dial.ts';
import type { NodeSession } from './node-session.ts';

/** Totals since the start. */
export interface LinkStats {
  readonly connections: number;
  readonly streams: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/** One connection, for people who look for a fault. */
export interface ConnectionView extends ConnectionStats {
  readonly node: Aid;
  readonly path: Path;
  readonly outbound: boolean;
  /** New streams of ours go here. */
  readonly current: boolean;
  readonly streams: number;
  readonly rttMs: number;
  /** Milliseconds since the Unix epoch. */
  readonly openedAt: number;
}

/** One way to reach a node, before anything is dialled. */
export interface WayView extends Pick<Dialler, 'kind'> {
  /** After the beginning of the attempt, milliseconds. */
  readonly delayMs: number;
  /** False where nothing is known that it could begin with. */
  readonly mayLead: boolean;
}

/** How one connection stands. */
export function connectionView(session: NodeSession, current: boolean): ConnectionView {
  const { connection, there, streams, openedAt } = session;
  return {
    node: nativeAid(there.nodeKey),
    path: connection.path,
    outbound: connection.outbound,
    current,
    streams,
    rttMs: connection.rtt(),
    openedAt,
    ...session.stats(),
  };
}

/** Counts what connections carried, those that have ended included. */
export class Traffic {
  readonly #past = { bytesSent: 0, bytesReceived: 0 };

  /** Keeps the figures of a connection that has ended. */
  ended(session: NodeSession): void {
    const { bytesSent, bytesReceived } = session.stats();
    this.#past.bytesSent += bytesSent;
    this.#past.bytesReceived += bytesReceived;
  }

  /** @param standing the connections that have not ended */
  total(standing: Iterable<NodeSession>): LinkStats {
    const total = { connections: 0, streams: 0, ...this.#past };
    for (const session of standing) {
      const { bytesSent, bytesReceived } = session.stats();
      total.connections++;
      total.streams += session.streams;
      total.bytesSent += bytesSent;
      total.bytesReceived += bytesReceived;
    }
    return total;
  }
}
