/** The called side of connections that outlive their links: knows them by their tickets, and lets them wait for a link. */
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import { pairHolder } from '../../../network/links/holder.ts';
import type { LinkStream } from '../../../network/links/types.ts';
import { readTicket, TICKET_TIMEOUT_MS } from '../wide/ticket.ts';
import { AckTurns } from './ack-turns.ts';
import { keptQuota } from './kept-bytes.ts';
import { LastingConnection, type LastingHost } from './lasting-connection.ts';
import { KNOWN, type Resumable } from './resumable.ts';
import { Waiting, type WaitingDependencies } from './waiting.ts';

/** Tickets that are remembered after their connection has ended … */
const MAX_USED = 8192;
/** … and for how long, milliseconds: longer than a caller tries to open one. */
export const USED_MS = 60_000;

export class LastingCalled {
  readonly #clock: Clock;
  readonly #isNamed: WaitingDependencies['isNamed'];
  /** By ticket, with the names of the node and both agents. */
  readonly #known = new Map<string, Resumable>();
  /** Tickets of connections that have ended: an attempt may still come that was made for them. */
  readonly #used: LruCache<string, true>;
  readonly #waiting: Waiting;
  readonly #host: Omit<LastingHost, 'over'>;

  constructor(dependencies: WaitingDependencies) {
    const { clock } = dependencies;
    this.#clock = clock;
    this.#isNamed = (link) => dependencies.isNamed(link);
    this.#used = new LruCache({ maxEntries: MAX_USED, ttlMs: USED_MS }, dependencies);
    this.#waiting = new Waiting(dependencies);
    this.#host = {
      clock,
      kept: keptQuota(),
      acks: new AckTurns(dependencies),
      lost: (connection) => this.lost(connection, connection.first),
      resumed: (connection) => this.resumed(connection),
    };
  }

  /** Connections that can be named, those that wait for a link, and bytes that are kept. */
  get counts(): { readonly known: number; readonly waiting: number; readonly keptBytes: number } {
    return { known: this.#known.size, waiting: this.#waiting.size, keptBytes: this.#host.kept.used };
  }

  /**
   * Makes a connection of a link of purpose `tcp-lasting`.
   * @throws SvcError `protocol_error`, `connect_failed`, `timeout`
   */
  async accept(link: LinkStream): Promise<LastingConnection> {
    const ticket = await this.#ticket(link);
    if (this.isUsed(ticket)) throw new SvcError('protocol_error');
    const over = (connection: LastingConnection): void => this.forget(ticket, connection);
    const holder = pairHolder(link, this.#isNamed(link));
    const connection = new LastingConnection(link, holder, { ...this.#host, over });
    this.know(ticket, connection);
    return connection;
  }

  /** Hands a link of purpose `tcp-resume` to the connection that it names; cuts it off where there is none. */
  async resume(link: LinkStream): Promise<void> {
    // protocol-tunnels.md, step 9
    const connection = this.#known.get(await this.#ticket(link));
    if (connection === undefined || link.destroyed) return void link.destroy();
    link.write(Uint8Array.of(KNOWN));
    connection.attach(link);
  }

  /** True where a connection has this ticket, or had it lately: what its caller says first is said once. */
  isUsed(ticket: string): boolean {
    return this.#known.has(ticket) || this.#used.has(ticket);
  }

  /** A connection can be named from now on. */
  know(ticket: string, connection: Resumable): void {
    this.#known.set(ticket, connection);
  }

  forget(ticket: string, connection: Resumable): void {
    if (this.#known.delete(ticket)) this.#used.set(ticket, true);
    this.#waiting.end(connection);
  }

  /** Lets a connection wait for another link; false where no more may. */
  lost(connection: Resumable, first: LinkStream): boolean {
    return this.#waiting.begin(connection, first);
  }

  resumed(connection: Resumable): void {
    this.#waiting.end(connection);
  }

  async #ticket(link: LinkStream): Promise<string> {
    // protocol-tunnels.md, step 6
    using limit = awakeTimeout(this.#clock, TICKET_TIMEOUT_MS);
    return await readTicket(link, limit.signal);
  }
}
