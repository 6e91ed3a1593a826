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
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { Tally } from '../../foundation/tally.ts';
import type { NodeAt } from '../node-requests.ts';
import { type Dialer, NodeAbsent, type NodePlace, race } from '../peers/dial.ts';
import { HELLO_TIMEOUT_MS } from '../peers/greeter.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import type { Connection } from '../transport/types.ts';
import { BIRTHDAY_ROUNDS, BIRTHDAY_SPACING_MS } from './client-pool.ts';
import { ipv6Between } from './interface-addresses.ts';
import type { PunchInitiator, PunchOptions } from './punch-initiator.ts';
import { allReachableHelpers, askHelpers, othersHelping } from './reachable-helpers.ts';
import { needsWitnesses, type OwnSide, punchDelayMs, RELAY_HEAD_START_MS } from './relayed.ts';

/** Time to punch a way: its helper is reached, it is asked twice, and a round of random ports may be needed: milliseconds. */
export const PUNCH_TIMEOUT_MS = 10_000;
/** Head start of a way over IPv6 where both nodes have it, over IPv4 with what it may take there: milliseconds. */
export const IPV6_HEAD_START_MS = 300;
/** Nodes to which a better way is looked for at one time. */
export const MAX_IMPROVED = 32;

/** After the first rounds the next is so long after the last, or soon after a change of our network: milliseconds. */
export const PUNCH_AGAIN_MS: number = 10 * 60_000;

/** From when a relay leads to a node to the first random ports, which would hold up what it was called for: milliseconds. */
export const IMPROVE_AFTER_MS = 1_000;

/** A node that a better way is looked for to. */
interface Improved {
  /** As it was last known. */
  place: NodePlace;
  /** Rounds that follow soon. */
  left: number;
  /** When a relay has led there last, in the clock's time. */
  reachedAt: number;
  readonly rounds: RepeatingTask;
}

interface PunchesDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly pool: Pick<PeerTable, 'connect' | 'current' | 'upgrade' | 'nodeKey'>;
  readonly own: OwnSide;
  readonly caller: Pick<PunchInitiator, 'punch' | 'punchOverIpv6'>;
}

export class Punches implements Dialer {
  readonly kind = 'punched';
  readonly timeoutMs: number = PUNCH_TIMEOUT_MS;
  readonly #deps: PunchesDependencies;
  readonly #stop = new AbortController();
  /** By the hex of the node's key. */
  readonly #improved = new Map<string, Improved>();
  /** Nodes that a way is being punched to. */
  readonly #punching = new Tally();

  constructor(dependencies: PunchesDependencies) {
    this.#deps = dependencies;
  }

  stop(): void {
    this.#stop.abort();
    for (const { rounds } of this.#improved.values()) rounds.stop();
    this.#improved.clear();
  }

  delayMs(place: NodePlace, relays: boolean): number {
    return punchDelayMs(place, this.#deps.own, relays);
  }

  mayLead(place: NodePlace): boolean {
    return othersHelping(place, this.#deps.pool.nodeKey).length > 0;
  }

  /** Where another way is faster, most often a relay, the one that is being punched still comes to its end. */
  async dial(place: NodePlace, signal: AbortSignal): Promise<Connection> {
    const punching = this.#punch(place);
    punching.then(
      (connection) => (signal.aborted ? detach(this.#offer(connection)) : undefined),
      () => {},
    );
    return await abortable(punching, signal);
  }

  /**
   * Goes on punching a way to a node that is reached by a relay: soon and not often, then now and then. Where random ports
   * are needed, this is where they are tried first.
   */
  improve(place: NodePlace): void {
    const node = toHex(place.nodeKey);
    const known = this.#improved.get(node);
    const isBegun = this.#punching.of(node) > 0 || !needsWitnesses(place, this.#deps.own);
    const { clock, log } = this.#deps;
    // Where the dial has punched, that was the first round.
    const left = isBegun ? BIRTHDAY_ROUNDS - 1 : BIRTHDAY_ROUNDS;
    const firstMs = isBegun ? BIRTHDAY_SPACING_MS : IMPROVE_AFTER_MS;
    const reachedAt = clock.now();
    if (known !== undefined) {
      Object.assign(known, { place, left, reachedAt });
      known.rounds.soon(firstMs);
    }
    if (this.#stop.signal.aborted || known !== undefined || this.#improved.size >= MAX_IMPROVED) return;
    const onError = (error: unknown): void => log.debug({ node, error }, 'a relayed connection could not be improved');
    const rounds = every(clock, { periodMs: BIRTHDAY_SPACING_MS, firstMs, onError }, () => this.#round(node));
    this.#improved.set(node, { place, left, reachedAt, rounds });
  }

  /** To be called when what stands before us may be another: nodes that are reached by a relay may be reached now. */
  onNetwork(): void {
    for (const { rounds } of this.#improved.values()) rounds.soon(BIRTHDAY_SPACING_MS);
  }

  /** One round with a node that is reached by a relay; returns the milliseconds to the next. */
  async #round(node: string): Promise<number> {
    const improved = this.#improved.get(node);
    if (improved === undefined) return UNTIL_REQUESTED;
    if (!this.#isRelayed(improved.place.nodeKey)) {
      // On a slow path or machine the hello over the relay takes its time.
      if (this.#isAwaited(improved)) return IMPROVE_AFTER_MS;
      improved.rounds.stop();
      this.#improved.delete(node);
      return UNTIL_REQUESTED;
    }
    improved.left--;
    try {
      await this.#offer(await this.#punch(improved.place));
    } catch (error) {
      this.#deps.log.debug({ node, error }, 'no way could be punched yet');
    }
    return improved.left > 0 ? BIRTHDAY_SPACING_MS : PUNCH_AGAIN_MS;
  }

  async #punch(place: NodePlace): Promise<Connection> {
    const node = toHex(place.nodeKey);
    this.#punching.add(node);
    try {
      return await this.#punchBy(place);
    } finally {
      this.#punching.add(node, -1);
    }
  }

  async #punchBy(place: NodePlace): Promise<Connection> {
    const { clock } = this.#deps;
    using limit = awakeTimeout(clock, PUNCH_TIMEOUT_MS, this.#stop.signal);
    const work = this.#punchWithin(place, limit.signal);
    try {
      // What does not end by itself would keep all later rounds from being tried.
      return await abortable(work, limit.signal);
    } catch (error) {
      work.then(
        (late) => late.close(),
        () => {},
      );
      throw error;
    }
  }

  async #punchWithin(place: NodePlace, signal: AbortSignal): Promise<Connection> {
    const { clock, pool, own } = this.#deps;
    const { nodeKey } = place;
    const options = { signal, isWanted: () => this.#isWanted(nodeKey) };
    if (needsWitnesses(place, own)) {
      const helpers = await allReachableHelpers(place, this.#deps, signal);
      return await this.#introduced(place, helpers, options);
    }
    let isDecided = false;
    const answered = (): void => {
      isDecided = true;
    };
    const ask = async (helper: NodeAt, given: AbortSignal): Promise<Connection> => {
      try {
        return await this.#introduced(place, [helper], { ...options, signal: given, answered });
      } catch (error) {
        // Another helper changes nothing but that.
        isDecided ||= !(error instanceof NodeAbsent);
        throw error;
      }
    };
    return await askHelpers(place, { ask, isDecided: () => isDecided }, { clock, pool, signal });
  }

  /** Over IPv6 first where both nodes have it. Random ports wait longer for that than one packet does. */
  async #introduced(
    place: NodePlace,
    helpers: readonly NodeAt[],
    options: PunchOptions & { readonly signal: AbortSignal },
  ): Promise<Connection> {
    const { clock, caller, own } = this.#deps;
    const { nodeKey, addresses } = place;
    const at = ipv6Between(addresses, own.interfaces());
    const [first] = helpers;
    if (at === null || first === undefined) return await caller.punch(nodeKey, helpers, options);
    const runners = [
      {
        afterMs: 0,
        run: (signal: AbortSignal) => caller.punchOverIpv6(nodeKey, first, at, { ...options, signal }),
      },
      {
        afterMs: needsWitnesses(place, own) ? RELAY_HEAD_START_MS : IPV6_HEAD_START_MS,
        run: (signal: AbortSignal) => caller.punch(nodeKey, helpers, { ...options, signal }),
      },
    ];
    const drop = (late: Connection): void => late.close();
    return await race(runners, { hurry: 'when one has failed', drop }, { clock, signal: options.signal });
  }

  #isWanted(nodeKey: Uint8Array): boolean {
    return this.#deps.pool.current(nodeKey) === null || this.#isRelayed(nodeKey);
  }

  /** Whether the connection may still come that a relay has led to. */
  #isAwaited({ place, reachedAt }: Improved): boolean {
    const { clock, pool } = this.#deps;
    return pool.current(place.nodeKey) === null && clock.now() - reachedAt < HELLO_TIMEOUT_MS;
  }

  #isRelayed(nodeKey: Uint8Array): boolean {
    const current = this.#deps.pool.current(nodeKey);
    return current !== null && isRelayed(current.connection.path.kind);
  }

  /** Moves new streams to a connection, where none as good stands. One that the other node dialled is in the pool. */
  async #offer(connection: Connection): Promise<void> {
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
