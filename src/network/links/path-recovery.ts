/**
 * What becomes of a connection whose path is dead: another one is dialled beside it, and once that one is proven to
 * lead to the node while the first is still silent, the first is closed, so that who waits on it learns it at once.
 * Where no other one can be had, it may outlive a break of the network.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeSession } from './node-session.ts';
import { probe } from './probe.ts';

/** Time to find another way to a node, milliseconds. */
export const DETOUR_MS = 10_000;

interface DetoursDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** The connection to the same node that came after this one; null where none did. */
  readonly newer: (session: NodeSession) => NodeSession | null;
  /** Connects to the same node another time; null where nobody here knows where it is. */
  readonly dial: (session: NodeSession, signal: AbortSignal) => Promise<NodeSession | null>;
}

export class PathRecovery {
  readonly #deps: DetoursDependencies;
  readonly #running = new Set<NodeSession>();
  #search = new AbortController();
  #stopped = false;

  constructor(dependencies: DetoursDependencies) {
    this.#deps = dependencies;
  }

  stop(): void {
    this.#stopped = true;
    this.#search.abort();
  }

  /** Gives up what is looked for: on another network it would be found later than by who begins now. */
  onNetwork(): void {
    this.#search.abort();
    this.#search = new AbortController();
  }

  /** Finds a way around a dead connection that is in use, unless one is already looked for. Never rejects. */
  async around(session: NodeSession): Promise<void> {
    if (this.#running.has(session) || this.#stopped || session.closed) return;
    this.#running.add(session);
    try {
      await this.#find(session);
    } catch (error) {
      this.#deps.log.debug({ node: session.nodeId, error }, 'no way around a dead path');
    } finally {
      this.#running.delete(session);
    }
  }

  async #find(session: NodeSession): Promise<void> {
    const { clock, log, newer, dial } = this.#deps;
    const { signal } = this.#search;
    const received = session.stats().bytesReceived;
    const isSilent = (): boolean => !session.closed && session.stats().bytesReceived === received;
    using limit = awakeTimeout(clock, DETOUR_MS, signal);
    try {
      const other = newer(session) ?? (await dial(session, limit.signal));
      if (other === null) return;
      await probe(other, clock, limit.signal);
    } catch (error) {
      // Where nothing is under way on it, nothing is lost with it: who keeps it looks for another node.
      if (session.streams === 0 && isSilent() && !signal.aborted) session.close();
      throw error;
    }
    if (!isSilent()) return;
    log.info({ node: session.nodeId, path: session.connection.path.kind }, 'a path is dead, another one is in use');
    session.close();
  }
}
