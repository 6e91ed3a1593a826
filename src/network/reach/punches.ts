/**
 * Punched ways to nodes, as one of the ways that a dial tries; and once more in the background while a relay carries
 * what there is to carry: new streams move when one of them leads there.
 */
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type Repeating } from '../../foundation/repeat.ts';
import { patience } from '../../foundation/stall.ts';
import type { ConnectionPool } from '../links/connection-pool.ts';
import { type Dialler, NodeAbsent, type NodePlace, whyNot } from '../links/dial.ts';
import type { QuicConnection } from '../quic/types.ts';
import type { Caller } from './caller.ts';
import { BIRTHDAY_ROUNDS, BIRTHDAY_SPACING_MS } from './client-pool.ts';
import { needsWitnesses, type OwnSide, punchDelayMs } from './head-starts.ts';
import { allReachableHelpers, othersHelping, reachableHelpers } from './reachable-helpers.ts';

/** Time to punch a way: its helper is reached, it is asked twice, and a round of random ports may be needed: milliseconds. */
export const PUNCH_TIMEOUT_MS = 10_000;
/** Nodes to which a better way is looked for at one time. */
export const MAX_IMPROVED = 32;

interface PunchesDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly pool: Pick<ConnectionPool, 'connect' | 'current' | 'upgrade' | 'nodeKey'>;
  readonly own: OwnSide;
  readonly caller: Pick<Caller, 'punch'>;
}

export class Punches implements Dialler {
  readonly kind = 'punched';
  readonly timeoutMs: number = PUNCH_TIMEOUT_MS;
  readonly #deps: PunchesDependencies;
  readonly #stop = new AbortController();
  /** Rounds in the background, by the hex of the node's key. */
  readonly #rounds = new Map<string, Repeating>();

  constructor(dependencies: PunchesDependencies) {
    this.#deps = dependencies;
  }

  stop(): void {
    this.#stop.abort();
    for (const rounds of this.#rounds.values()) rounds.stop();
    this.#rounds.clear();
  }

  delayMs(place: NodePlace): number {
    return punchDelayMs(place, this.#deps.own);
  }

  mayLead(place: NodePlace): boolean {
    return othersHelping(place, this.#deps.pool.nodeKey).length > 0;
  }

  /** Where another way is faster, most often a relay, the one that is being punched still comes to its end. */
  async dial(place: NodePlace, signal: AbortSignal): Promise<QuicConnection> {
    const punching = this.#punch(place);
    punching.then(
      (connection) => (signal.aborted ? detach(this.#offer(connection)) : undefined),
      () => {},
    );
    return await abortable(punching, signal);
  }

  /** Goes on punching a way to a node that is reached by a relay, now and then and not for long. */
  improve(place: NodePlace): void {
    const node = toHex(place.nodeKey);
    const { clock, log } = this.#deps;
    if (this.#stop.signal.aborted || this.#rounds.has(node) || this.#rounds.size >= MAX_IMPROVED) return;
    // The dial itself was the first round.
    let left = BIRTHDAY_ROUNDS - 1;
    const onError = (error: unknown): void => log.debug({ node, error }, 'no way could be punched yet');
    const rounds = every(clock, { periodMs: BIRTHDAY_SPACING_MS, onError }, async () => {
      const isWanted = left > 0 && this.#isRelayed(place.nodeKey);
      left--;
      if (isWanted) await this.#offer(await this.#punch(place));
      else {
        rounds.stop();
        this.#rounds.delete(node);
      }
    });
    this.#rounds.set(node, rounds);
  }

  async #punch(place: NodePlace): Promise<QuicConnection> {
    const { clock, caller, own } = this.#deps;
    const { nodeKey } = place;
    using limit = patience(clock, PUNCH_TIMEOUT_MS, this.#stop.signal);
    const { signal } = limit;
    const options = { signal, isWanted: () => this.#isWanted(nodeKey) };
    if (needsWitnesses(place, own)) {
      const helpers = await allReachableHelpers(place, this.#deps, signal);
      return await caller.punch(nodeKey, helpers, options);
    }
    const failures: unknown[] = [];
    for await (const helper of reachableHelpers(place, this.#deps, signal)) {
      try {
        return await caller.punch(nodeKey, [helper], options);
      } catch (error) {
        failures.push(error);
        // Another helper changes nothing but that.
        if (!(error instanceof NodeAbsent)) break;
      }
    }
    throw whyNot(failures);
  }

  #isWanted(nodeKey: Uint8Array): boolean {
    return this.#deps.pool.current(nodeKey) === null || this.#isRelayed(nodeKey);
  }

  #isRelayed(nodeKey: Uint8Array): boolean {
    const current = this.#deps.pool.current(nodeKey);
    return current !== null && isRelayed(current.connection.path.kind);
  }

  /** Moves new streams to a connection, where none as good stands. One that the other node dialled is in the pool. */
  async #offer(connection: QuicConnection): Promise<void> {
    const { pool, log } = this.#deps;
    if (!this.#isWanted(connection.remoteKey)) return connection.close();
    if (!connection.outbound) return;
    try {
      await pool.upgrade(connection, this.#stop.signal);
    } catch (error) {
      log.debug({ error }, 'a punched way led to nobody');
    }
  }
}
