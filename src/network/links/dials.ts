/** Attempts to connect to nodes: one at a time to each, shared by all who need it. */
import { formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { Connection } from '../transport/types.ts';
import { SharedAttempt } from './attempt.ts';
import { type Dialler, dialBy, NodeAbsent, type NodePlace, tryRelays } from './dial.ts';
import type { NodeSession } from './node-session.ts';

/**
 * Who comes later than this after an attempt has begun begins another one: the node may have come back meanwhile, and
 * the packets of a handshake that nobody heard are repeated more and more rarely. Milliseconds.
 */
export const JOINED_MS = 1_000;

/** An attempt, and what it knows of the node. */
interface Dialling {
  readonly attempt: SharedAttempt<NodeSession>;
  /** As `knownOf` names them. */
  readonly known: ReadonlySet<string>;
  readonly begunAt: number;
}

interface DialsDependencies {
  readonly clock: Clock;
  /** How nodes may be reached. */
  readonly diallers: () => readonly Dialler[];
  /** Says hello on a connection that was dialled. */
  readonly greet: (connection: Connection, signal: AbortSignal) => Promise<NodeSession>;
}

/** Names for all that a dial of a place can begin with: two places with the same ones lead to the same. */
export function knownOf({ addresses, helpers, meeting }: NodePlace): string[] {
  const met = meeting === undefined ? [] : [`at ${toHex(meeting.publicKey)}`];
  return [...addresses.map(formatAddress), ...helpers.map((helper) => `by ${toHex(helper.nodeKey)}`), ...met];
}

export class Dials {
  readonly #deps: DialsDependencies;
  /** By the hex of the node's key, the newest last; those that may use a relay apart from those that may not. */
  readonly #running = {
    any: new Map<string, readonly Dialling[]>(),
    unrelayed: new Map<string, readonly Dialling[]>(),
  };
  #stopped = false;

  constructor(dependencies: DialsDependencies) {
    this.#deps = dependencies;
  }

  /** Gives up what runs, and begins nothing more. */
  stop(): void {
    this.#stopped = true;
    for (const running of Object.values(this.#running))
      for (const { attempt } of [...running.values()].flat()) attempt.cancel();
  }

  /** The attempt to reach a node that has begun just now with all that is known here, or a new one. */
  to(place: NodePlace, relays: boolean): SharedAttempt<NodeSession> {
    const node = toHex(place.nodeKey);
    const running = relays ? this.#running.any : this.#running.unrelayed;
    const others = running.get(node) ?? [];
    const begunAt = this.#deps.clock.now();
    // One that does not know all that is known here may wait for an answer from where the node no longer is.
    const fits = (other: Dialling): boolean => knownOf(place).every((one) => other.known.has(one));
    const joined = others.findLast(
      (other) => begunAt - other.begunAt < JOINED_MS && !other.attempt.isGivenUp && fits(other),
    );
    if (joined !== undefined) return joined.attempt;
    const ended = (): void => {
      const left = running.get(node)?.filter((other) => other !== dialling) ?? [];
      if (left.length > 0) running.set(node, left);
      else running.delete(node);
    };
    const attempt = this.#attempt(place, relays, ended);
    const dialling: Dialling = { attempt, known: new Set(knownOf(place)), begunAt };
    running.set(node, [...others, dialling]);
    return attempt;
  }

  /** Gives those who wait for a node, and may use its path, a connection that came another way; who comes later dials anew. */
  settle(session: NodeSession): void {
    const { any, unrelayed } = this.#running;
    const served = isRelayed(session.connection.path.kind) ? [any] : [any, unrelayed];
    for (const running of served) {
      for (const { attempt } of running.get(session.nodeId) ?? []) attempt.settle(session);
      running.delete(session.nodeId);
    }
  }

  #attempt(place: NodePlace, relays: boolean, ended: () => void): SharedAttempt<NodeSession> {
    return new SharedAttempt(async (cancelled) => {
      try {
        return await this.#connect(place, relays, cancelled);
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

  async #connect(place: NodePlace, relays: boolean, cancelled: AbortSignal): Promise<NodeSession> {
    if (this.#stopped) throw new SvcError('cancelled');
    const leading = this.#deps.diallers().filter((dialler) => dialler.mayLead(place));
    const allowed = relays ? leading : leading.filter(({ kind }) => !isRelayed(kind));
    const { clock } = this.#deps;
    const begins = (dialler: Dialler): number => dialler.delayMs(place, tryRelays(allowed));
    const limitMs = Math.max(0, ...allowed.map((dialler) => begins(dialler) + dialler.timeoutMs));
    using limit = awakeTimeout(clock, limitMs, cancelled);
    let connection: Connection;
    try {
      connection = await dialBy(allowed, place, { clock, signal: limit.signal });
    } catch (cause) {
      // Where nobody is, a relay does not lead to anybody either.
      if (cancelled.aborted || allowed.length === leading.length || cause instanceof NodeAbsent) throw cause;
      throw new SvcError('relay_required', { cause });
    }
    if (!relays && isRelayed(connection.path.kind)) {
      // What a way of another kind fell back to.
      connection.close();
      throw new SvcError('relay_required');
    }
    return await this.#deps.greet(connection, limit.signal);
  }
}
