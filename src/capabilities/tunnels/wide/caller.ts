/** The calling side of tunnel connections: whether they are wide or not, how their lanes are opened, and that they outlive their links. */
import type { Clock } from '../../../foundation/clock.ts';
import type { Aid } from '../../../foundation/identity/aid.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import { askForBulkLink } from '../../../network/links/bulk-links.ts';
import { pairHolder } from '../../../network/links/holder.ts';
import { drainAndDestroy } from '../../../network/links/lingering.ts';
import { Refusal, STATUS } from '../../../network/links/status.ts';
import type { LinkPath, LinkPaths, LinkStream, Links, OpenOptions, Purpose } from '../../../network/links/types.ts';
import type { BulkStreams } from '../../../network/transport/types.ts';
import type { Carrier } from '../carrier.ts';
import { AckTurns } from '../lasting/ack-turns.ts';
import type { EarlyBytes } from '../lasting/early-bytes.ts';
import { FirstWords } from '../lasting/first-words.ts';
import { framedData } from '../lasting/frames.ts';
import { keptQuota } from '../lasting/kept-bytes.ts';
import { LastingConnection, type LastingHost } from '../lasting/lasting-connection.ts';
import type { LinkAhead } from '../lasting/link-ahead.ts';
import { type Anchor, Resumer } from '../lasting/resumer.ts';
import { dataFrame } from './frames.ts';
import { countsOf, LossWatch } from './loss-watch.ts';
import { LossyNodes } from './lossy-nodes.ts';
import { peerOf } from './ticket.ts';
import { WideStream } from './wide-stream.ts';
import { Widening } from './widening.ts';
import { WindowBudget, WindowShare } from './window-budget.ts';

/** Round-trip time from which a connection can gain by a lane for bulk, milliseconds. */
export const LONG_PATH_MS = 10;
/** How long an agent whose node does not know wide connections is not asked for one again, milliseconds. */
const ASK_AGAIN_MS = 10 * 60_000;
const MAX_NARROW = 1024;
/** Wide connections at one time, for all of which a called node has room; more are plain ones. */
const MAX_WIDE = 64;
/** Time to agree on a lane for bulk, milliseconds. */
const LANE_MS = 15_000;

interface WideCallerDependencies {
  readonly clock: Clock;
  readonly links: Links & LinkPaths;
  readonly lanes: BulkStreams;
}

/** What a connection is opened with. */
interface Terms extends OpenOptions {
  /** What its later links are opened with. */
  readonly later?: () => Pick<OpenOptions, 'accessToken' | 'disableRelay'>;
  /** What the client says before the connection stands; left out where it has to wait. */
  readonly early?: EarlyBytes;
  /** A link that stands already; left out where none may. */
  readonly ahead?: LinkAhead;
}

/** A connection to a service, the link that it began with, and the path that it goes. */
interface Opened {
  readonly link: LinkStream;
  readonly stream: Carrier;
  readonly path: () => LinkPath;
}

export class WideCaller {
  readonly #deps: WideCallerDependencies;
  readonly #budget = new WindowBudget();
  readonly #resumer: Resumer;
  readonly #host: LastingHost;
  /** Agents on nodes that do not know a purpose, by both. */
  readonly #unknown: LruCache<string, true>;
  readonly #lossy: LossyNodes;
  #open = 0;

  constructor(dependencies: WideCallerDependencies) {
    const { clock } = dependencies;
    this.#deps = dependencies;
    this.#lossy = new LossyNodes(dependencies);
    this.#unknown = new LruCache({ maxEntries: MAX_NARROW, ttlMs: ASK_AGAIN_MS }, dependencies);
    const resumer = new Resumer(dependencies);
    this.#resumer = resumer;
    this.#host = {
      clock,
      kept: keptQuota(),
      acks: new AckTurns(dependencies),
      lost: (connection) => resumer.lost(connection),
      resumed: () => {},
      over: (connection) => resumer.delete(connection),
    };
  }

  /** Connections that would be resumed, and bytes that are kept for that. */
  get counts(): { readonly standing: number; readonly keptBytes: number } {
    return { standing: this.#resumer.size, keptBytes: this.#host.kept.used };
  }

  /** When the path of a carrier was lost that is held for another one, milliseconds; null if it has a path. */
  lostAt(carrier: Carrier): number | null {
    return isResumable(carrier) ? this.#resumer.lostAt(carrier) : null;
  }

  /** True if a carrier ended because it was held in vain. */
  isGivenUp(carrier: Carrier): boolean {
    return isResumable(carrier) && this.#resumer.isGivenUp(carrier);
  }

  /** Looks for better links no more. */
  stop(): void {
    this.#resumer.stop();
  }

  /**
   * Opens a connection to the service of an agent, a wide one where the path is long; one that outlives its link where
   * the other node knows that.
   * @param path to the agent, as last seen
   * @throws SvcError as `Links.open`
   */
  async open(local: Aid, remote: Aid, path: Pick<LinkPath, 'kind' | 'rttMs'>, options: Terms): Promise<Opened> {
    const ahead = options.ahead?.take() ?? null;
    if (ahead !== null) return this.#begin(ahead, { local, remote, terms: termsOf(options) }, options.early);
    const first = new FirstWords(options.early ?? null, wideFrame);
    const wide = path.rttMs >= LONG_PATH_MS ? await this.#openWide(local, remote, { ...options, first }) : null;
    if (wide !== null) return wide;
    // What goes through no network is never lost.
    const asked = { ...options, first: first.reframe(framedData) };
    const lasting = path.kind === 'local' ? null : await this.#openKnown(local, remote, 'tcp-lasting', asked);
    if (lasting !== null) return this.#last(lasting, first, { local, remote, terms: termsOf(options) });
    const link = await this.#deps.links.open(local, remote, 'tcp', options);
    for (const chunk of first.said) link.write(chunk);
    return { link, stream: link, path: () => link.path() };
  }

  async #openWide(local: Aid, remote: Aid, options: Terms & { readonly first: FirstWords }): Promise<Opened | null> {
    // protocol-tunnels.md, step 12
    const share = new WindowShare(this.#budget, { node: remote, source: null, named: true });
    if (this.#open >= MAX_WIDE || !share.begin()) return null;
    this.#open++;
    const over = (): void => {
      this.#open--;
      share.giveAll();
    };
    try {
      const link = await this.#openKnown(local, remote, 'tcp-wide', options);
      if (link === null) over();
      if (link === null) return null;
      return this.#widen(link, share, options.first, { local, remote, terms: termsOf(options) }, over);
    } catch (error) {
      over();
      throw error;
    }
  }

  /** Opens a link of a purpose; null where the other node does not know it, or has no room. */
  async #openKnown(local: Aid, remote: Aid, purpose: Purpose, options: OpenOptions): Promise<LinkStream | null> {
    const name = `${purpose} ${remote}`;
    if (this.#unknown.get(name) !== undefined) return null;
    try {
      return await this.#deps.links.open(local, remote, purpose, options);
    } catch (error) {
      if (!(error instanceof Refusal) || error.refusal !== STATUS.unknownPurpose) throw error;
      this.#unknown.set(name, true);
      return null;
    }
  }

  /** A link for a connection that is still to come, to be given back to `open` as `ahead`. @throws SvcError as `Links.open` */
  openAhead(local: Aid, remote: Aid, options: OpenOptions): Promise<LinkStream> {
    return this.#deps.links.open(local, remote, 'tcp-lasting', options);
  }

  /** Begins a connection on a link that stands. */
  #begin(link: LinkStream, to: Omit<Anchor, 'ticket'>, early: EarlyBytes | undefined): Opened {
    const first = new FirstWords(early ?? null, framedData);
    link.write(first.bytes({ instance: '', isFresh: true }));
    return this.#last(link, first, to);
  }

  #last(link: LinkStream, { ticket, said, isEarly }: FirstWords, to: Omit<Anchor, 'ticket'>): Opened {
    const connection = new LastingConnection(link, pairHolder(link, true), this.#host, isEarly ? said : []);
    if (!isEarly) for (const chunk of said) connection.write(chunk);
    this.#resumer.add(connection, { ...to, ticket });
    return { link, stream: connection, path: () => connection.path() };
  }

  /** Agrees with the called side on a lane for a connection, over a link of its own. */
  async #bulkLane(ticket: Uint8Array, { local, remote, terms }: Omit<Anchor, 'ticket'>, signal: AbortSignal) {
    const { clock, links, lanes } = this.#deps;
    using limit = awakeTimeout(clock, LANE_MS, signal);
    const link = await links.open(local, remote, 'tcp-lane', { ...terms(), signal: limit.signal });
    link.on('error', () => {});
    try {
      link.write(ticket);
      return await askForBulkLink(link, lanes, limit.signal);
    } finally {
      link.end();
      drainAndDestroy(link, clock);
    }
  }

  #widen(
    link: LinkStream,
    share: WindowShare,
    { ticket, said, isEarly }: FirstWords,
    to: Omit<Anchor, 'ticket'>,
    over: () => void,
  ): Opened {
    const gone = new AbortController();
    let carrier = link;
    const openLane = async (): Promise<void> => {
      const under = carrier;
      const lane = await this.#bulkLane(ticket, to, gone.signal);
      // The connection has gone over to another path meanwhile, or the lane has ended.
      if (under !== carrier || lane.destroyed) return void lane.destroy();
      const { promise: isOver, resolve } = Promise.withResolvers<void>();
      lane.once('close', resolve);
      stream.add(lane, { isBulk: true });
      await isOver;
    };
    const newWidening = (): Widening => {
      const options = { counts: () => countsOf(carrier), node: peerOf(carrier.nodeKey), lossy: this.#lossy };
      return new Widening({ watch: new LossWatch(options, this.#deps), openLane }, this.#deps);
    };
    let widening = newWidening();
    const stream: WideStream = new WideStream(link, {
      clock: this.#deps.clock,
      said: isEarly ? said : [],
      widen: (bytes) => share.grow(bytes),
      onProgress: () => widening.progress(stream.moved, stream.waits),
      onWider: () => widening.ask(),
      onLost: () => this.#resumer.lost(stream),
      onAttach: (other) => {
        carrier = other;
        widening = newWidening();
      },
    });
    if (!isEarly) for (const piece of said) stream.write(piece);
    this.#resumer.add(stream, { ...to, ticket });
    stream.once('close', () => {
      gone.abort();
      this.#resumer.delete(stream);
      over();
    });
    return { link, stream, path: () => stream.path() };
  }
}

function isResumable(carrier: Carrier): carrier is LastingConnection | WideStream {
  return carrier instanceof LastingConnection || carrier instanceof WideStream;
}

function wideFrame(piece: Buffer, offset: number): Buffer {
  return dataFrame(offset, [piece], piece.length);
}

function termsOf(options: Terms): Anchor['terms'] {
  return options.later ?? (() => ({ accessToken: options.accessToken, disableRelay: options.disableRelay === true }));
}
