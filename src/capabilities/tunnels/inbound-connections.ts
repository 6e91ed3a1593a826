/** The called side of tunnel connections: knows them by their tickets, and lets them wait for another link. */
import { toHex } from '../../foundation/bytes.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { Quota } from '../../foundation/quota.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { answerForBulkLink } from '../../network/links/bulk-links.ts';
import { pairHolder } from '../../network/links/holder.ts';
import { lossyNodes } from '../../network/links/loss-watch.ts';
import type { LinkNames, LinkPair, LinkStream } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { readExactly } from '../../network/peers/wire.ts';
import type { BulkStreams } from '../../network/transport/types.ts';
import { AckTurns, type ConnectionSide, RESUME_MS, TunnelConnection } from './connection.ts';
import { ACK_FRAME_BYTES } from './frames.ts';
import { keptQuota } from './kept-bytes.ts';
import { OPENING, OPENING_BYTES } from './opening.ts';

/** Time for each message of a caller, milliseconds. */
export const OPENING_TIMEOUT_MS = 10_000;
/** The answer to a caller that resumes a connection. */
const KNOWN = 0;
/** Tickets of ended connections that are remembered … */
const MAX_USED = 8192;
/** … and for how long, milliseconds: longer than a caller tries to open a connection. */
export const USED_MS = 60_000;
/** Connections of one node that wait for a link: as many as one tunnel may have. */
export const MAX_LOST_PER_NODE = 6000;
/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const MAX_LOST_PER_SOURCE = 8000;
/** The same of all nodes. */
export const MAX_LOST = 16_000;

type Names = Pick<LinkNames, 'caller' | 'called' | 'nodeKey'>;

/** Both agents and the caller's node. Only they can name a connection. */
function pairOf({ nodeKey, caller, called }: Names): string {
  return `${toHex(nodeKey ?? new Uint8Array())} ${caller} ${called}`;
}

export class InboundConnections {
  readonly #clock: Clock;
  readonly #bulk: BulkStreams;
  readonly #isNamed: (link: LinkPair) => boolean;
  /** By pair, then by ticket. */
  readonly #known = new Map<string, Map<string, TunnelConnection>>();
  /** Tickets of ended connections: an attempt to open one may still arrive. */
  readonly #used: LruCache<string, true>;
  /** The last link that was opened to continue a connection: its caller has given up all earlier ones. */
  readonly #newest = new WeakMap<TunnelConnection, LinkStream>();
  readonly #ends = new WeakMap<TunnelConnection, () => void>();
  readonly #places = new Quota({ perNode: MAX_LOST_PER_NODE, perSource: MAX_LOST_PER_SOURCE, total: MAX_LOST });
  readonly #waiting = new Map<TunnelConnection, { readonly timer: Timer; readonly leave: () => void }>();
  readonly #side: Omit<ConnectionSide, 'over'>;

  /** @param isNamed true if the owner of the called agent allowed the caller by name */
  constructor(clock: Clock, bulk: BulkStreams, isNamed: (link: LinkPair) => boolean) {
    this.#clock = clock;
    this.#bulk = bulk;
    this.#isNamed = isNamed;
    this.#used = new LruCache({ maxEntries: MAX_USED, ttlMs: USED_MS }, { clock });
    this.#side = {
      clock,
      kept: keptQuota(),
      acks: new AckTurns(clock),
      lossy: lossyNodes(clock),
      lost: (connection) => this.#wait(connection),
      resumed: (connection) => this.#waitNoMore(connection),
      slowed: (connection, direction) => {
        if (direction === 'sending') connection.reportLoss();
      },
    };
  }

  /** Known connections, waiting connections, and the bytes kept for both. */
  get counts(): { readonly known: number; readonly waiting: number; readonly keptBytes: number } {
    const known = this.#known.values().reduce((sum, { size }) => sum + size, 0);
    return { known, waiting: this.#waiting.size, keptBytes: this.#side.kept.used };
  }

  /** Calls `done` at the end of a connection. */
  whenOver(connection: TunnelConnection, done: () => void): void {
    this.#ends.set(connection, done);
  }

  /** True if a caller has a connection that it could resume. */
  hasAny(names: Names): boolean {
    return this.#known.has(pairOf(names));
  }

  /**
   * Takes a link of purpose `tcp`. Returns the connection that it begins; null if it resumes one or requests a lane.
   * @throws SvcError `protocol_error`, `connect_failed`, `timeout`
   */
  async take(link: LinkStream): Promise<TunnelConnection | null> {
    // protocol-tunnels.md, steps 3 and 6
    using limit = awakeTimeout(this.#clock, OPENING_TIMEOUT_MS);
    const message = await readExactly(link, OPENING_BYTES, limit.signal);
    const ticket = toHex(message.subarray(1));
    if (message[0] === OPENING.connect) return this.#begin(link, ticket);
    const connection = this.#known.get(pairOf(link))?.get(ticket);
    // Otherwise its caller would use the new link, and no longer read the old one.
    if (connection?.isResumable !== true) throw new SvcError('protocol_error');
    this.#newest.set(connection, link);
    if (message[0] === OPENING.resume) {
      link.write(Uint8Array.of(KNOWN));
      await this.#moveTo(link, connection, link);
    } else if (message[0] === OPENING.lane) await this.#openLane(link, connection);
    else throw new SvcError('protocol_error');
    return null;
  }

  #begin(link: LinkStream, ticket: string): TunnelConnection {
    const pair = pairOf(link);
    const ofPair = this.#known.get(pair) ?? new Map<string, TunnelConnection>();
    const name = `${pair} ${ticket}`;
    if (ofPair.has(ticket) || this.#used.has(name)) throw new SvcError('protocol_error');
    const over = (connection: TunnelConnection): void => {
      ofPair.delete(ticket);
      if (ofPair.size === 0) this.#known.delete(pair);
      this.#used.set(name, true);
      this.#ends.get(connection)?.();
      this.#waitNoMore(connection);
    };
    const holder = pairHolder(link, this.#isNamed(link));
    const connection = new TunnelConnection(link, holder, { ...this.#side, over });
    ofPair.set(ticket, connection);
    this.#known.set(pair, ofPair);
    return connection;
  }

  async #openLane(link: LinkStream, connection: TunnelConnection): Promise<void> {
    // protocol-tunnels.md, step 14
    using limit = awakeTimeout(this.#clock, OPENING_TIMEOUT_MS);
    let lane: LinkStream | null;
    try {
      lane = await answerForBulkLink(link, this.#bulk, limit.signal);
    } finally {
      link.end();
      drainAndDestroy(link, this.#clock);
    }
    if (lane !== null) await this.#moveTo(lane, connection, link);
  }

  /**
   * Moves a connection once its caller uses the new link. Until then the caller may give the link up, and keep the old one.
   * @param opening the link on which the caller asked for it
   */
  async #moveTo(link: LinkStream, connection: TunnelConnection, opening: LinkStream): Promise<void> {
    // protocol-tunnels.md, step 11
    using limit = awakeTimeout(this.#clock, OPENING_TIMEOUT_MS);
    try {
      link.unshift(await readExactly(link, ACK_FRAME_BYTES, limit.signal));
    } catch (error) {
      link.destroy();
      throw error;
    }
    // An acknowledgement on a link that the caller lost may arrive after those on the next one.
    if (this.#newest.get(connection) === opening) connection.attach(link);
    else link.destroy();
  }

  #wait(connection: TunnelConnection): boolean {
    if (this.#waiting.has(connection)) return true;
    const holder = pairHolder(connection.first, this.#isNamed(connection.first));
    const share = this.#places.take(holder, { onEvict: () => connection.destroy() });
    if (share === null) return false;
    const timer = this.#clock.after(RESUME_MS, () => connection.destroy());
    this.#waiting.set(connection, { timer, leave: () => share.release() });
    return true;
  }

  #waitNoMore(connection: TunnelConnection): void {
    const waits = this.#waiting.get(connection);
    this.#waiting.delete(connection);
    waits?.timer.cancel();
    waits?.leave();
  }
}
