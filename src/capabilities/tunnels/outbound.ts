/**
 * The calling side of tunnel connections: opens them, and finds another link for each that loses its link, that has a
 * better path, or that packet loss slows down.
 */
import type { Clock } from '../../foundation/clock.ts';
import { pause } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { askForBulkLink } from '../../network/links/bulk-links.ts';
import { pairHolder } from '../../network/links/holder.ts';
import { lossyNodes } from '../../network/links/loss-watch.ts';
import type { LinkPath, LinkPaths, LinkStream, Links, OpenOptions } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { Refusal, readExactly, STATUS } from '../../network/peers/wire.ts';
import type { BulkStreams } from '../../network/transport/types.ts';
import { AckTurns, type ConnectionSide, RESUME_MS, TunnelConnection } from './connection.ts';
import { keptQuota } from './kept-bytes.ts';
import type { LinkAhead } from './link-ahead.ts';
import { type EarlyBytes, FirstWords, OPENING, openingOf } from './opening.ts';

/** Time for the first attempt to resume, milliseconds: it may have used the lost path. Each later one has twice as long … */
const FIRST_TRY_MS = 2500;
/** … up to this. */
const TRY_MS = 10_000;
/** Pause after the first failed attempt, milliseconds. Each later one is twice as long … */
const FIRST_PAUSE_MS = 100;
/** … up to this. */
const MAX_PAUSE_MS = 2000;
/** Links that are opened at the same time: thousands of connections may lose theirs together. */
export const MAX_TRIES_AT_ONCE = 64;
/** Connections that change to a faster transport of the same path together: it has room for some hundred. */
const MAX_QUICKENED = 64;
/** Time to agree on a lane, milliseconds. */
const LANE_MS = 15_000;
/** Time from an attempt to open a lane, or from a lost lane, to the next attempt: milliseconds. */
export const NEXT_LANE_MS = 30_000;

/** The terms of a link that may change while a connection exists. */
type LinkTerms = Pick<OpenOptions, 'accessToken' | 'disableRelay'>;

export interface ConnectionOptions extends LinkTerms {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** The terms of later links. Default: the same. */
  readonly later?: () => LinkTerms;
  /** The client's first bytes. Omitted if they must wait for the connection. */
  readonly early?: EarlyBytes;
  /** An open link. Omitted if none may be used. */
  readonly ahead?: LinkAhead;
}

/** A connection, and how its other side is reached. */
interface OpenConnection {
  readonly local: Aid;
  readonly remote: Aid;
  readonly ticket: Uint8Array;
  readonly terms: () => LinkTerms;
  readonly over: AbortController;
  /** When its link was lost, milliseconds. Null again when both sides use another one. */
  lostAt: number | null;
  /** Another link is being opened. */
  isBusy: boolean;
  /** Ends the attempt to open a lane. */
  lane: AbortController | null;
  /** Time of the next attempt to open a lane, milliseconds. */
  nextLaneAt: number;
}

export class OutboundConnections {
  readonly #clock: Clock;
  readonly #links: Links & LinkPaths;
  readonly #bulk: BulkStreams;
  readonly #side: ConnectionSide;
  readonly #connections = new Map<TunnelConnection, OpenConnection>();
  /** Connections that ended because no other link was found. */
  readonly #givenUp = new WeakSet<TunnelConnection>();
  readonly #unsubscribe: () => void;
  #tries = 0;
  readonly #queue: (() => void)[] = [];

  constructor(clock: Clock, links: Links & LinkPaths, bulk: BulkStreams) {
    this.#clock = clock;
    this.#links = links;
    this.#bulk = bulk;
    this.#side = {
      clock,
      kept: keptQuota(),
      acks: new AckTurns(clock),
      lossy: lossyNodes(clock),
      lost: (connection) => this.#lost(connection),
      resumed: (connection) => this.#resumed(connection),
      slowed: (connection) => this.#slowed(connection),
      over: (connection) => this.#over(connection),
    };
    this.#unsubscribe = links.onPathChange(() => this.#lookForBetter());
  }

  /** Connections that exist, and the bytes kept for them. */
  get counts(): { readonly open: number; readonly keptBytes: number } {
    return { open: this.#connections.size, keptBytes: this.#side.kept.used };
  }

  /** When a connection lost its path, milliseconds. Null if it has one. */
  lostAt(connection: TunnelConnection): number | null {
    return connection.isCarried ? null : (this.#connections.get(connection)?.lostAt ?? null);
  }

  /** True if a connection ended because no other link was found. */
  isGivenUp(connection: TunnelConnection): boolean {
    return this.#givenUp.has(connection);
  }

  /** Stops moving connections to better paths. */
  stop(): void {
    this.#unsubscribe();
  }

  /**
   * Opens a connection to the service of an agent.
   * @throws SvcError as `Links.open`
   */
  async open(local: Aid, remote: Aid, options: ConnectionOptions): Promise<TunnelConnection> {
    const { accessToken, disableRelay = false, early, ahead, later, ...limits } = options;
    const now = { accessToken, disableRelay };
    const first = new FirstWords(early ?? null);
    let link = ahead?.take() ?? null;
    if (link === null) link = await this.#links.open(local, remote, 'tcp', { ...limits, ...now, first });
    else link.write(first.bytes({ instance: '', isFresh: true }));
    const { ticket, chunks, isEarly } = first;
    const connection = new TunnelConnection(link, pairHolder(link, true), this.#side, isEarly ? chunks : []);
    if (!isEarly) for (const chunk of chunks) connection.write(chunk);
    const over = new AbortController();
    const state = { lostAt: null, isBusy: false, lane: null, nextLaneAt: 0 };
    this.#connections.set(connection, { local, remote, ticket, terms: later ?? (() => now), over, ...state });
    return connection;
  }

  /** A link for a later connection, for `ahead` of `open`. @throws SvcError as `Links.open` */
  openAhead(local: Aid, remote: Aid, options: OpenOptions): Promise<LinkStream> {
    return this.#links.open(local, remote, 'tcp', options);
  }

  #over(connection: TunnelConnection): void {
    const held = this.#connections.get(connection);
    this.#connections.delete(connection);
    // Most connections were never resumed, and creating an error is expensive.
    if (held?.isBusy === true) held.over.abort(new SvcError('cancelled'));
  }

  #resumed(connection: TunnelConnection): void {
    const held = this.#connections.get(connection);
    if (held !== undefined) held.lostAt = null;
  }

  #lost(connection: TunnelConnection): boolean {
    const held = this.#connections.get(connection);
    if (held === undefined) return false;
    held.lane?.abort(new SvcError('cancelled'));
    if (!held.isBusy) detach(this.#resume(connection, held));
    return true;
  }

  #slowed(connection: TunnelConnection): void {
    // protocol-tunnels.md, step 13
    const held = this.#connections.get(connection);
    if (held === undefined || held.isBusy || !connection.isCarried || !connection.mayMove) return;
    const now = this.#clock.monotonic();
    if (now < held.nextLaneAt) return;
    held.nextLaneAt = now + NEXT_LANE_MS;
    held.lane = new AbortController();
    const { signal } = held.lane;
    detach(this.#move(connection, held, () => this.#openLane(connection, held, signal)));
  }

  /** Moves the connections for which new links would use a better path. */
  #lookForBetter(): void {
    let quickened = 0;
    for (const [connection, held] of this.#connections) {
      if (held.isBusy || !connection.isCarried || !connection.mayMove) continue;
      const path = this.#links.path(held.remote, held.terms().disableRelay === true);
      if (path === null) continue;
      const now = connection.path();
      const isQuicker = path.isUpgraded === true && now.isUpgraded !== true && quickened < MAX_QUICKENED;
      if (isQuicker) quickened++;
      if (isQuicker || isBetter(path, now))
        detach(this.#move(connection, held, () => this.#openLink(connection, held, TRY_MS)));
    }
  }

  async #move(connection: TunnelConnection, held: OpenConnection, open: () => Promise<void>): Promise<void> {
    held.isBusy = true;
    // If it fails, the connection keeps its link.
    await this.#inTurn(held, open).catch(() => {});
    held.isBusy = false;
    held.lane = null;
    if (!connection.isCarried && !connection.destroyed) this.#lost(connection);
  }

  async #resume(connection: TunnelConnection, held: OpenConnection): Promise<void> {
    // protocol-tunnels.md, steps 9 and 12
    const isAgain = held.lostAt !== null;
    held.lostAt ??= this.#clock.monotonic();
    const until = held.lostAt + RESUME_MS;
    held.isBusy = true;
    // A node that ends each new link before it is used would otherwise keep this one busy forever.
    if (isAgain) await pause(this.#clock, FIRST_PAUSE_MS, held.over.signal).catch(() => {});
    if (this.#clock.monotonic() >= until) this.#giveUp(connection);
    let tryMs = FIRST_TRY_MS;
    for (let pauseMs = FIRST_PAUSE_MS; !connection.destroyed; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const ms = tryMs;
      try {
        await this.#inTurn(held, () => this.#openLink(connection, held, ms));
        break;
      } catch (error) {
        if (isFinal(error) || this.#clock.monotonic() >= until) this.#giveUp(connection);
      }
      tryMs = Math.min(2 * tryMs, TRY_MS);
      await pause(this.#clock, pauseMs, held.over.signal).catch(() => {});
    }
    held.isBusy = false;
    if (!connection.isCarried && !connection.destroyed) this.#lost(connection);
  }

  #giveUp(connection: TunnelConnection): void {
    this.#givenUp.add(connection);
    connection.destroy();
  }

  async #openLink(connection: TunnelConnection, held: OpenConnection, ms: number): Promise<void> {
    using limit = awakeTimeout(this.#clock, ms, held.over.signal);
    const link = await this.#open(held, OPENING.resume, limit.signal, ms);
    try {
      await readExactly(link, 1, limit.signal);
    } catch (error) {
      link.destroy();
      throw error;
    }
    connection.attach(link);
  }

  async #openLane(connection: TunnelConnection, held: OpenConnection, signal: AbortSignal): Promise<void> {
    // protocol-tunnels.md, steps 13 and 16
    using limit = awakeTimeout(this.#clock, LANE_MS, AbortSignal.any([signal, held.over.signal]));
    const link = await this.#open(held, OPENING.lane, limit.signal, LANE_MS);
    try {
      const lane = await askForBulkLink(link, this.#bulk, limit.signal);
      lane.on('error', () => {
        held.nextLaneAt = this.#clock.monotonic() + NEXT_LANE_MS;
      });
      if (connection.isCarried) connection.attach(lane);
      else lane.destroy();
    } finally {
      link.end();
      drainAndDestroy(link, this.#clock);
    }
  }

  async #open(
    { local, remote, terms, ticket }: OpenConnection,
    what: typeof OPENING.resume | typeof OPENING.lane,
    signal: AbortSignal,
    timeoutMs: number,
  ): Promise<LinkStream> {
    const first = { bytes: () => openingOf(what, ticket) };
    const link = await this.#links.open(local, remote, 'tcp', { ...terms(), timeoutMs, signal, first });
    return link.on('error', () => {});
  }

  /** Waits until another link may be opened, then opens it. */
  async #inTurn({ over }: OpenConnection, open: () => Promise<void>): Promise<void> {
    if (this.#tries >= MAX_TRIES_AT_ONCE) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#queue.push(resolve);
      await promise;
    }
    this.#tries++;
    try {
      if (!over.signal.aborted) await open();
    } finally {
      this.#tries--;
      this.#queue.shift()?.();
    }
  }
}

/** True if a connection should move to the path of new links. */
function isBetter(path: LinkPath, than: LinkPath): boolean {
  if (isRelayed(path.kind) !== isRelayed(than.kind)) return isRelayed(than.kind);
  return path.kind !== than.kind || path.remote?.host !== than.remote?.host || path.remote?.port !== than.remote?.port;
}

/** True if every later attempt fails too: the other side does not know the connection, or refuses this caller. */
function isFinal(error: unknown): boolean {
  if (error instanceof Refusal && error.refusal === STATUS.proofNeeded) return false;
  if (error instanceof Refusal) return error.code !== 'rate_limited' && error.code !== 'resolve_failed';
  return error instanceof SvcError && (error.code === 'protocol_error' || error.code === 'not_found');
}
