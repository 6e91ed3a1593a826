/**
 * One remote node, and everything that can happen to it. The order of this file: a caller needs a connection
 * (`connect`); dialers race (`#attempt`, `#dial`) while a newer place is searched (`#seek`); a connection is
 * established (`take`), and one of several becomes the current one (`#choose`); a better path replaces it (`upgrade`,
 * `#improve`); it becomes idle or its path dies (`look`), and another path is found (`#recover`); it closes (`#ended`).
 * `PeerTable` finds the peer of a node and calls `look`.
 */
import { formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { isStraight, type Path } from '../transport/path.ts';
import type { Connection } from '../transport/types.ts';
import { DialAttempt } from './attempt.ts';
import {
  type Dialer,
  isUnreached,
  knownOf,
  NodeAbsent,
  type NodePlace,
  type NodeSilence,
  type Rounds,
  raceDialers,
  tryRelays,
} from './dial.ts';
import { HELLO_TIMEOUT_MS } from './greeter.ts';
import { PathHealth } from './path-health.ts';
import { type NodeSession, probe } from './session.ts';

/**
 * An attempt older than this is not shared, milliseconds. The node may have restarted, and a lost handshake packet is
 * repeated more and more rarely.
 */
export const JOINED_MS = 1_000;
/** Delay before a search for a newer place, and interval of its lookups, milliseconds. */
export const LOOK_ELSEWHERE_MS = 1_000;
/** Concurrent lookups for all peers. Without a network, all nodes seem to be unreachable. */
export const MAX_LOOKED_FOR = 8;
/** Two connections within this time, one dialed by each node, count as simultaneous, milliseconds. */
export const SIMULTANEOUS_MS = 5_000;
/** Maximum number of connections to one node: the current one, and older ones with open streams. */
export const MAX_PER_NODE = 4;
/** Time until a connection without streams closes, milliseconds. A kept connection stays open. */
export const IDLE_MS: number = 5 * 60_000;
/** The same for a connection that was replaced. */
export const SPARE_IDLE_MS = 5_000;
/** Maximum number of peers for which a better path than a relay is searched concurrently. */
export const MAX_IMPROVED = 32;
/** Timeout of a recovery, milliseconds. */
const RECOVERY_MS = 10_000;

/** New streams to a node now use another path. */
export interface PathChange {
  readonly nodeKey: Uint8Array;
  /** Null if there is no connection. */
  readonly path: Path | null;
  /** Null if there was no connection. */
  readonly before: Path | null;
}

export interface ConnectOptions {
  /** False if no third node may carry the packets. */
  readonly relays?: boolean;
  /** A connection that seems dead. It is not returned, and gets no new streams after a replacement. */
  readonly insteadOf?: NodeSession;
  /** True if the place is the result of a lookup just now. */
  readonly isFresh?: boolean;
  readonly silence?: NodeSilence | undefined;
}

/** Shared by all peers. */
export interface PeerContext extends NodeParts {
  /** Public key of this node. */
  readonly localKey: Uint8Array;
  /** All dialers. */
  readonly dialers: readonly Dialer[];
  /** False while the configuration disables relays. */
  mayRelay(): boolean;
  /** Sends the hello on a connection that this node dialed, and passes its session to `Peer.take`. */
  greet(connection: Connection, signal: AbortSignal): Promise<NodeSession>;
  /** The place in the node's newest record, or null if unknown. */
  locate(nodeKey: Uint8Array, signal: AbortSignal): Promise<NodePlace | null>;
  /** Number of current lookups. */
  lookups: number;
  /** Number of peers for which a better path is searched. */
  improved: number;
  /** Called when `isAtRest` may have changed. */
  onActivity(peer: Peer): void;
  onPathChange(change: PathChange): void;
  /** Called for a dead path. */
  onDeadPath(): void;
  /** Called for a closed connection. */
  onEnded(session: NodeSession): void;
}

/** A search for a newer place of the node. */
interface PlaceSearch {
  /** Start points that were dialed, as returned by `knownOf`. */
  readonly known: Set<string>;
  readonly end: AbortController;
  readonly lookups: RepeatingTask;
  waiters: number;
  hasLooked: boolean;
}

/** The search for a better path than a relay. */
interface Improvement {
  place: NodePlace;
  plan: Rounds;
  /** Number of remaining early rounds. */
  left: number;
  readonly rounds: RepeatingTask;
}

export class Peer {
  readonly nodeKey: Uint8Array;
  /** Its key as hex. */
  readonly nodeId: string;
  readonly #context: PeerContext;
  /** The place of the last dial. */
  #place: NodePlace | null = null;
  #attempts: readonly DialAttempt[] = [];
  /** The keys are true for callers that allow relays, false for others. */
  readonly #searches = new Map<boolean, PlaceSearch>();
  /** Callbacks for hellos on connections that the node dialed on request. */
  readonly #awaitedHellos = new Map<Connection, (session: NodeSession) => void>();
  /** The connections, the oldest first. */
  readonly #sessions = new Map<NodeSession, PathHealth>();
  /** The connection for new streams. */
  #current: NodeSession | null = null;
  /** The path of new streams, as last reported. */
  #path: Path | null = null;
  /** Number of callers that keep a connection without streams open. */
  #keepers = 0;
  /** Number of better connections before their hello. */
  #upgrades = 0;
  /** Connections with a dead path for which a replacement is searched. */
  readonly #recovering = new Set<NodeSession>();
  #recovery = new AbortController();
  #improvement: Improvement | null = null;
  /** Number of current dials that may replace a relay. */
  #improving = 0;
  readonly #end = new AbortController();

  constructor(nodeKey: Uint8Array, context: PeerContext) {
    this.nodeKey = nodeKey;
    this.nodeId = toHex(nodeKey);
    this.#context = context;
  }

  /** True without a connection and without activity. While it is false, no other object may take its place. */
  get isAtRest(): boolean {
    const dials = this.#attempts.length + this.#upgrades + this.#improving + this.#recovering.size;
    return this.#sessions.size + dials + this.#searches.size + this.#keepers === 0;
  }

  /** True if its place is worth storing. */
  get isPlaced(): boolean {
    return this.#place !== null;
  }

  get sessions(): Iterable<NodeSession> {
    return this.#sessions.keys();
  }

  /** Closes all connections. Nothing can be started after this. */
  stop(): void {
    this.#end.abort(new SvcError('cancelled'));
    this.#recovery.abort();
    this.#endImprovement();
    for (const attempt of this.#attempts) attempt.cancel();
    for (const session of this.#sessions.keys()) session.close();
  }

  // Connecting.

  /**
   * The current connection, or a new one.
   * @throws SvcError `connect_failed`, `protocol_error`, or the signal's reason; `relay_required` if only a relay is
   *   left and none is allowed
   */
  async connect(place: NodePlace, signal: AbortSignal, options: ConnectOptions = {}): Promise<NodeSession> {
    if (this.#end.signal.aborted) throw new SvcError('cancelled');
    const { insteadOf, isFresh = false } = options;
    const relays = this.#mayRelay(options.relays);
    this.#notePlace(place);
    const usable = this.#usable(relays);
    if (usable !== null && usable !== insteadOf) return usable;
    const detour = insteadOf !== undefined && relays ? this.#detourOf(insteadOf) : null;
    if (detour !== null) return this.#use(detour, insteadOf);
    const attempt = this.#attempt(place, relays);
    const endSearch = this.#seek(place, relays, insteadOf !== undefined && !isFresh);
    const watched = isUnreached(place) ? undefined : options.silence;
    const silence = watched && attempt.watch(watched, this.#context.clock);
    try {
      return this.#use(await attempt.join(signal), insteadOf);
    } finally {
      silence?.cancel();
      endSearch();
    }
  }

  /** Stores a place, unless the stored place has helpers or a meeting point and the new one has neither. */
  #notePlace(place: NodePlace): void {
    const isMet = ({ helpers, meeting }: NodePlace): boolean => helpers.length > 0 || meeting !== undefined;
    if (this.#place === null || isMet(place) || !isMet(this.#place)) this.#place = place;
  }

  #mayRelay(wanted = true): boolean {
    return wanted && this.#context.mayRelay();
  }

  /** Makes a session current if the current one is unusable. */
  #use(session: NodeSession, insteadOf: NodeSession | undefined): NodeSession {
    insteadOf?.drain();
    if (this.#sessions.has(session) && !isUsable(this.#current)) this.#current = session;
    this.#reportPath();
    return session;
  }

  /** A recent attempt with the same start points, or a new one. */
  #attempt(place: NodePlace, relays: boolean): DialAttempt {
    const now = this.#context.clock.monotonic();
    const names = knownOf(place);
    const fits = (other: DialAttempt): boolean =>
      other.relays === relays &&
      other.isJoinable &&
      now - other.begunAt < JOINED_MS &&
      // An attempt with fewer start points may wait at an old place.
      names.every((name) => other.known.has(name));
    const joined = this.#attempts.findLast(fits);
    if (joined !== undefined) return joined;
    const attempt: DialAttempt = new DialAttempt(
      { relays, known: new Set(names), begunAt: now },
      async (cancelled: AbortSignal, onAnswer: () => void) => {
        try {
          return await this.#dial(place, relays, cancelled, onAnswer);
        } catch (error) {
          // For the caller this is no timeout: the node is unreachable.
          if (!(error instanceof SvcError) || error.code !== 'timeout') throw error;
          throw new SvcError('connect_failed', { cause: error });
        } finally {
          this.#attempts = this.#attempts.filter((other) => other !== attempt);
          this.#context.onActivity(this);
        }
      },
    );
    this.#attempts = [...this.#attempts, attempt];
    this.#context.onActivity(this);
    return attempt;
  }

  /** Races the dialers, then waits for the hello. @param onAnswer called after the handshake */
  async #dial(place: NodePlace, relays: boolean, cancelled: AbortSignal, onAnswer: () => void): Promise<NodeSession> {
    const { clock, dialers } = this.#context;
    const leading = dialers.filter((dialer) => dialer.mayLead(place));
    const allowed = relays ? leading : leading.filter(({ kind }) => !isRelayed(kind));
    const withRelays = tryRelays(allowed);
    const limitMs = Math.max(0, ...allowed.map((one) => one.delayMs(place, withRelays) + one.timeoutMs));
    using limit = awakeTimeout(clock, limitMs, cancelled);
    let connection: Connection;
    try {
      const ways = allowed.map((dialer) => (dialer.rounds === undefined ? dialer : this.#goingOn(dialer)));
      connection = await raceDialers(ways, place, { clock, signal: limit.signal });
    } catch (cause) {
      // A relay cannot reach an absent node either.
      if (cancelled.aborted || allowed.length === leading.length || cause instanceof NodeAbsent) throw cause;
      throw new SvcError('relay_required', { cause });
    }
    onAnswer();
    if (!this.#mayRelay(relays) && isRelayed(connection.path.kind)) {
      // This dialer fell back to a relay, or relays were disabled meanwhile.
      connection.close();
      throw new SvcError('relay_required');
    }
    const session = connection.outbound
      ? await this.#context.greet(connection, limit.signal)
      : await this.#greeted(connection, limit.signal);
    if (session.connection.path.kind === 'relay') this.#improve(place);
    return session;
  }

  /** The session of a connection that the node dialed on request. The node sends the hello. */
  async #greeted(connection: Connection, signal: AbortSignal): Promise<NodeSession> {
    for (const session of this.#sessions.keys()) if (session.connection === connection) return session;
    const hello = Promise.withResolvers<NodeSession>();
    this.#awaitedHellos.set(connection, hello.resolve);
    detach(connection.closed.then(() => hello.reject(new SvcError('connect_failed'))));
    try {
      return await abortable(hello.promise, signal);
    } catch (error) {
      connection.close();
      throw error;
    } finally {
      this.#awaitedHellos.delete(connection);
    }
  }

  // Relocation: a restarted node may have another port, and a dial of the old port gets no answer for seconds.

  /**
   * During a dial, repeats the lookup of the newest place and dials that place too.
   * @param isLost true if the connection died: the first lookup starts immediately
   * @returns a function that ends the search for one caller
   */
  #seek(place: NodePlace, relays: boolean, isLost: boolean): () => void {
    const search = this.#searches.get(relays) ?? this.#beginSearch(relays);
    search.waiters++;
    for (const name of knownOf(place)) search.known.add(name);
    if (isLost && !search.hasLooked) search.lookups.soon();
    return () => {
      search.waiters--;
      if (search.waiters > 0) return;
      this.#searches.delete(relays);
      search.lookups.stop();
      search.end.abort(new SvcError('cancelled'));
      this.#context.onActivity(this);
    };
  }

  #beginSearch(relays: boolean): PlaceSearch {
    const { clock, log } = this.#context;
    const onError = (error: unknown): void => log.debug({ error }, 'the place of a node was not found');
    const lookups = every(clock, { periodMs: LOOK_ELSEWHERE_MS, onError }, () => this.#lookElsewhere(search, relays));
    const search: PlaceSearch = {
      ...{ known: new Set(), end: new AbortController(), lookups, waiters: 0, hasLooked: false },
    };
    this.#searches.set(relays, search);
    return search;
  }

  async #lookElsewhere(search: PlaceSearch, relays: boolean): Promise<void> {
    const context = this.#context;
    const { signal } = search.end;
    if (context.lookups >= MAX_LOOKED_FOR) return;
    search.hasLooked = true;
    context.lookups++;
    let place: NodePlace | null;
    try {
      place = await context.locate(this.nodeKey, signal);
    } finally {
      context.lookups--;
    }
    const names = place === null ? [] : knownOf(place);
    if (place === null || signal.aborted || names.every((name) => search.known.has(name))) return;
    for (const name of names) search.known.add(name);
    context.log.debug({ node: this.nodeId }, 'a node that does not answer is now elsewhere');
    this.#notePlace(place);
    // Waiting callers get the connection through `take`, or the error of the first place.
    detach(
      this.#attempt(place, relays)
        .join(signal)
        .catch(() => {}),
    );
  }

  // Connections.

  /**
   * The connection for new streams, or null.
   * @param relays false to exclude relayed connections
   */
  current(relays?: boolean): NodeSession | null {
    return this.#usable(this.#mayRelay(relays));
  }

  /** The newest direct connection that this node dialed, or null. After simultaneous dials it may not be the current one. */
  dialed(): NodeSession | null {
    const isOwn = ({ connection }: NodeSession): boolean => connection.outbound && isStraight(connection.path);
    return [...this.#sessions.keys()].findLast((one) => isUsable(one) && isOwn(one)) ?? null;
  }

  isCurrent(session: NodeSession): boolean {
    return this.#current === session;
  }

  /** Keeps the connection open without streams. Returns a function that stops this. */
  keep(): () => void {
    let isKept = true;
    this.#keepers++;
    this.#context.onActivity(this);
    return () => {
      if (!isKept) return;
      isKept = false;
      this.#keepers--;
      this.#context.onActivity(this);
    };
  }

  /** Adds a connection after its hello, regardless of which node dialed it. All waiting callers receive it. */
  take(session: NodeSession): void {
    const { connection } = session;
    // Relays may have been disabled before the hello.
    if (this.#end.signal.aborted || (isRelay(session) && !this.#mayRelay())) session.close();
    for (const [older, health] of this.#sessions) {
      // protocol-links.md, step 4: the node restarted, so its older connections are dead.
      if (older.instance !== session.instance) older.close();
      // The node dials again only after an older connection failed. Check that one.
      if (older.streams > 0) health.suspect();
    }
    this.#sessions.set(session, new PathHealth(session, this.#context.clock));
    this.#choose(session);
    for (const attempt of this.#attempts) if (attempt.relays || !isRelay(session)) attempt.settle(session);
    this.#awaitedHellos.get(connection)?.(session);
    this.#reportPath();
    this.#context.onActivity(this);
    const { path, outbound } = connection;
    this.#context.log.debug({ node: this.nodeId, outbound, path }, 'connected');
    detach(connection.closed.then(() => this.#ended(session)));
  }

  /** Makes a new connection current if it is better, and closes the oldest of too many spare ones. */
  #choose(session: NodeSession): void {
    const current = this.#current;
    if (!isUsable(current) || !this.#staysCurrent(current, session)) this.#current = session;
    for (const spare of this.#sessions.keys()) {
      if (this.#sessions.size <= MAX_PER_NODE) return;
      if (spare === this.#current) continue;
      this.#sessions.delete(spare);
      spare.close();
    }
  }

  /**
   * A connection without a relay wins over a relayed one. Otherwise the newer one wins, because a node dials again only
   * after the older one failed. After simultaneous dials both nodes must choose the same connection: the node with the
   * smaller key decides by its dial.
   */
  #staysCurrent(current: NodeSession, newer: NodeSession): boolean {
    // protocol-links.md, step 5
    if (isRelay(current) !== isRelay(newer)) return isRelay(newer);
    if (current.connection.outbound === newer.connection.outbound) return false;
    if (newer.openedAt - current.openedAt > SIMULTANEOUS_MS) return false;
    const weAreSmaller = Buffer.compare(this.#context.localKey, this.nodeKey) < 0;
    return current.connection.outbound === weAreSmaller;
  }

  #usable(relays: boolean): NodeSession | null {
    if (isUsable(this.#current) && (relays || !isRelay(this.#current))) return this.#current;
    if (relays) return null;
    return [...this.#sessions.keys()].findLast((other) => isUsable(other) && !isRelay(other)) ?? null;
  }

  /** A newer relayed connection. */
  #detourOf(session: NodeSession): NodeSession | null {
    const isDetour = (other: NodeSession): boolean => isRelay(other) && other !== session;
    return this.#newerThan(session, isDetour);
  }

  /** The last usable connection that is newer than another. */
  #newerThan(session: NodeSession, fits: (other: NodeSession) => boolean = () => true): NodeSession | null {
    const isNewer = (other: NodeSession): boolean =>
      isUsable(other) && other.openedAt > session.openedAt && fits(other);
    return [...this.#sessions.keys()].findLast(isNewer) ?? null;
  }

  /** Stops using the connections for new streams. */
  reset(): void {
    for (const session of this.#sessions.keys()) session.drain();
    this.#current = null;
    this.#reportPath();
  }

  /** Closes all relayed connections. */
  closeRelayed(): void {
    for (const session of this.#sessions.keys()) if (isRelay(session)) session.close();
  }

  #ended(session: NodeSession): void {
    this.#sessions.delete(session);
    if (this.#current === session) {
      const left = [...this.#sessions.keys()].filter(isUsable);
      this.#current = left.findLast((other) => !isRelay(other)) ?? left.at(-1) ?? null;
    }
    if (this.#sessions.size === 0) this.#endImprovement();
    this.#context.onEnded(session);
    this.#reportPath();
    this.#context.onActivity(this);
    this.#context.log.debug({ node: this.nodeId }, 'disconnected');
  }

  #reportPath(): void {
    const before = this.#path;
    const path = this.#usable(true)?.connection.path ?? null;
    this.#path = path;
    if (nameOf(path) !== nameOf(before)) this.#context.onPathChange({ nodeKey: this.nodeKey, path, before });
  }

  /**
   * Adds a dialed connection with a better path. New streams use it. Open streams stay on their connection. If the
   * current path is better, the new connection is closed.
   * @returns the connection for new streams
   * @throws SvcError `connect_failed`, `protocol_error`, or the signal's reason; the connection is closed then
   */
  async upgrade(connection: Connection, signal?: AbortSignal): Promise<NodeSession> {
    const current = this.current();
    const isWorse = current !== null && isRelayed(connection.path.kind) && !isRelay(current);
    if (this.#end.signal.aborted || isWorse) connection.close();
    if (this.#end.signal.aborted) throw new SvcError('cancelled');
    if (isWorse) return current;
    using limit = awakeTimeout(this.#context.clock, HELLO_TIMEOUT_MS, signal);
    this.#upgrades++;
    this.#context.onActivity(this);
    try {
      const session = await this.#context.greet(connection, limit.signal);
      return this.current() ?? session;
    } finally {
      this.#upgrades--;
      this.#context.onActivity(this);
    }
  }

  // Better paths than a relay.

  /** A dialer that continues after another one wins. */
  #goingOn(dialer: Dialer): Dialer {
    const { kind, timeoutMs } = dialer;
    return {
      kind,
      timeoutMs,
      delayMs: (place, relays) => dialer.delayMs(place, relays),
      mayLead: (place) => dialer.mayLead(place),
      dial: async (place, signal) => {
        const dialing = this.#dialToImprove(dialer, place);
        dialing.then(
          (connection) => (signal.aborted ? detach(this.#offer(connection)) : undefined),
          () => {},
        );
        return await abortable(dialing, signal);
      },
    };
  }

  /** Dials until the timeout of the dialer, even without a waiting caller. */
  async #dialToImprove(dialer: Dialer, place: NodePlace): Promise<Connection> {
    using limit = awakeTimeout(this.#context.clock, dialer.timeoutMs, this.#end.signal);
    this.#improving++;
    const dialing = dialer.dial(place, limit.signal);
    try {
      // A dialer that ignores its signal must not block later rounds.
      return await abortable(dialing, limit.signal);
    } catch (error) {
      dialing.then(
        (late) => late.close(),
        () => {},
      );
      throw error;
    } finally {
      this.#improving--;
      this.#context.onActivity(this);
    }
  }

  /** Moves new streams to a connection, unless there is one without a relay. */
  async #offer(connection: Connection): Promise<void> {
    const current = this.current();
    if (current !== null && !isRelay(current)) return connection.close();
    // A node that dialed sends the hello itself.
    if (!connection.outbound) return;
    try {
      await this.upgrade(connection, this.#end.signal);
    } catch (error) {
      this.#context.log.debug({ node: this.nodeId, error }, 'a better path failed at the hello');
    }
  }

  /** Searches for a better path than the relay: a few rounds soon, then rarely. */
  #improve(place: NodePlace): void {
    const context = this.#context;
    const dialer = context.dialers.find((one) => one.rounds !== undefined);
    const plan = dialer?.rounds?.(place, this.#improving > 0);
    if (dialer === undefined || plan === undefined || this.#end.signal.aborted) return;
    const next = { place, plan, left: plan.soon };
    if (this.#improvement !== null) {
      Object.assign(this.#improvement, next);
      return this.#improvement.rounds.soon(plan.firstMs);
    }
    if (context.improved >= MAX_IMPROVED) return;
    context.improved++;
    const onError = (error: unknown): void => context.log.debug({ error }, 'a relayed connection was not improved');
    const rounds = every(context.clock, { ...plan, onError }, () => this.#improveOnce(dialer));
    this.#improvement = { ...next, rounds };
  }

  /** @returns milliseconds to the next round */
  async #improveOnce(dialer: Dialer): Promise<number> {
    const improvement = this.#improvement;
    const current = this.current();
    if (improvement === null || current === null || !isRelay(current)) {
      this.#endImprovement();
      return UNTIL_REQUESTED;
    }
    improvement.left--;
    try {
      await this.#offer(await this.#dialToImprove(dialer, improvement.place));
    } catch (error) {
      this.#context.log.debug({ node: this.nodeId, error }, 'no better path than a relay was found yet');
    }
    return improvement.left > 0 ? improvement.plan.periodMs : improvement.plan.laterMs;
  }

  #endImprovement(): void {
    if (this.#improvement === null) return;
    this.#improvement.rounds.stop();
    this.#improvement = null;
    this.#context.improved--;
  }

  /** To be called after a possible change of the router or firewall. The next round starts soon. */
  improveSoon(): void {
    this.#improvement?.rounds.soon(this.#improvement.plan.periodMs);
  }

  // Idle connections and dead paths.

  /** Closes idle connections and notices dead paths. Called every `LOOK_MS`. */
  look(): void {
    for (const [session, health] of this.#sessions) {
      const isKept = this.#isKept(session);
      const limitMs = this.isCurrent(session) ? IDLE_MS : SPARE_IDLE_MS;
      if (!isKept && session.idleMs >= limitMs) session.close();
      const isUsed = health.isUsed || isKept;
      if (!health.look(isUsed)) continue;
      this.#context.onDeadPath();
      if (isUsed) detach(this.#recover(session));
      // It has no user. The next caller dials again.
      else session.close();
    }
  }

  #isKept(session: NodeSession): boolean {
    return this.#keepers > 0 && this.isCurrent(session);
  }

  /** After a sleep or a change of network: probes the node over each connection. */
  suspect(): void {
    for (const health of this.#sessions.values()) health.suspect();
  }

  /** After the path to another node died: probes the node over each connection in use. */
  doubt(): void {
    for (const [session, health] of this.#sessions) if (health.isUsed || this.#isKept(session)) health.suspect();
  }

  /**
   * To be called after a possible change of network. Restarts all recoveries, because old dials would only delay them.
   */
  onNetwork(): void {
    this.#recovery.abort();
    this.#recovery = new AbortController();
    this.suspect();
  }

  /** As `PeerTable.onPathsWithdrawn`. Never rejects. */
  async onPathsWithdrawn(areDead: boolean): Promise<void> {
    const leaving = [...this.#sessions.keys()].filter(({ connection }) => connection.path.mayBeWithdrawn === true);
    const isUsed = this.#keepers > 0 || leaving.some(({ streams }) => streams > 0);
    for (const session of leaving)
      if (areDead || session.streams === 0) session.close();
      else session.drain();
    if (!isUsed || leaving.length === 0) return;
    const { log, clock } = this.#context;
    using limit = awakeTimeout(clock, RECOVERY_MS, this.#end.signal);
    try {
      const place = this.#place ?? (await this.#context.locate(this.nodeKey, limit.signal));
      if (place !== null) await this.connect(place, limit.signal);
    } catch (error) {
      log.debug({ node: this.nodeId, error }, 'a withdrawn path was not replaced');
    }
  }

  /**
   * Finds a replacement for a connection with a dead path. After the replacement answers a probe, the dead connection
   * is closed, so its users notice. Without a replacement it may survive an interruption of the network. Never rejects.
   */
  async #recover(session: NodeSession): Promise<void> {
    if (this.#recovering.has(session) || this.#end.signal.aborted || session.closed) return;
    this.#recovering.add(session);
    const { clock, log } = this.#context;
    const { signal } = this.#recovery;
    const received = session.receivedBytes;
    const isSilent = (): boolean => !session.closed && session.receivedBytes === received;
    using limit = awakeTimeout(clock, RECOVERY_MS, signal);
    try {
      const other = this.#newerThan(session) ?? (await this.#replace(session, limit.signal));
      if (other === null) return;
      await probe(other, clock, limit.signal);
      if (!isSilent()) return;
      log.info({ node: this.nodeId, path: session.connection.path.kind }, 'a path is dead and was replaced');
      session.close();
    } catch (error) {
      log.debug({ node: this.nodeId, error }, 'a dead path was not replaced');
      // No stream is lost with it. A caller that keeps it chooses another node.
      if (session.streams === 0 && isSilent() && !signal.aborted) session.close();
    } finally {
      this.#recovering.delete(session);
      this.#context.onActivity(this);
    }
  }

  /** Connects again. Null if the place is unknown. */
  async #replace(session: NodeSession, signal: AbortSignal): Promise<NodeSession | null> {
    const isFresh = this.#place === null;
    const place = this.#place ?? (await this.#context.locate(this.nodeKey, signal));
    return place === null ? null : await this.connect(place, signal, { insteadOf: session, isFresh });
  }
}

function isUsable(session: NodeSession | null): session is NodeSession {
  return session !== null && !session.closed && !session.draining;
}

function isRelay({ connection }: NodeSession): boolean {
  return isRelayed(connection.path.kind);
}

function nameOf(path: Path | null): string {
  return path === null ? '' : `${path.kind} ${formatAddress(path.remote)}`;
}
