/**
 * Moves open links to lanes when packet loss slows them down: any link that was opened with `bulk`, in both directions
 * and in the middle of its bytes. The calling node requests the lane. The called node reports to it when its own packets
 * are lost. docs/protocol-links.md, steps 18 to 22.
 */
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import type { LruCache } from '../../foundation/lru-cache.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { type NodeSession, openStreamWithin } from '../peers/session.ts';
import { drainAndDestroy } from '../peers/stream-dispatcher.ts';
import { BinaryReader, endWith, KIND, ProtocolBreach, Refusal, readExactly, STATUS, u32 } from '../peers/wire.ts';
import { StreamError } from '../transport/stream.ts';
import type { BulkStream, BulkStreams, Stream } from '../transport/types.ts';
import { BulkPace } from './bulk-pace.ts';
import { lossyNodes } from './loss-watch.ts';
import { pathOf } from './stream.ts';

/** Size of a link's number, bytes. */
const NUMBER_BYTES = 4;
const MAX_NUMBER = 0xffff_ffff;
/** The message of a stream of kind "lane". */
const MESSAGE = { request: 1, lossy: 2 } as const;
/** The decision of each side about a lane. */
const DECISION = { stay: 0, move: 1 } as const;
/** Time to agree on a lane, milliseconds. */
const AGREE_MS = 15_000;
/** Time from one attempt to move a link to the next, milliseconds. */
const NEXT_MOVE_MS = 30_000;
/** Lanes of links need back-pressure, because a link has no acknowledgements. */
const OPTIONS = { hasBackPressure: true } as const;

/** Links of one connection that may move, by number. */
interface SessionLinks {
  next: number;
  readonly opened: Map<number, MovableLink>;
  readonly accepted: Map<number, MovableLink>;
}

export class BulkMoves {
  readonly #clock: Clock;
  readonly #streams: BulkStreams;
  readonly #lossy: LruCache<string, true>;
  readonly #sessions = new WeakMap<NodeSession, SessionLinks>();

  constructor(clock: Clock, streams: BulkStreams) {
    this.#clock = clock;
    this.#streams = streams;
    this.#lossy = lossyNodes(clock);
  }

  /** The number for a new link on a stream, or null if it cannot move. */
  numberFor(session: NodeSession, stream: Stream): number | null {
    if (!canMove(session, stream)) return null;
    const links = this.#linksOf(session);
    if (links.next > MAX_NUMBER) return null;
    return links.next++;
  }

  /** A link that this node opened under this number may move. */
  opened(session: NodeSession, stream: Stream, number: number): void {
    const link = new MovableLink(this.#clock, session, stream);
    link.pace(this.#lossy, () => {
      if (link.mayTry()) detach(this.#ask(link, number));
    });
    register(this.#linksOf(session).opened, number, link);
  }

  /** Reads the number of a link that the other node opens. */
  async readNumber(stream: Stream, signal: AbortSignal): Promise<number> {
    return new BinaryReader(await readExactly(stream, NUMBER_BYTES, signal)).u32();
  }

  /** A link that the other node opened under this number may move. @throws ProtocolBreach if the number is in use */
  accepted(session: NodeSession, stream: Stream, number: number): void {
    if (!canMove(session, stream)) return;
    const { accepted } = this.#linksOf(session);
    if (accepted.has(number)) throw new ProtocolBreach('The number of a link is in use.');
    const link = new MovableLink(this.#clock, session, stream);
    link.pace(this.#lossy, () => {
      // protocol-links.md, step 18
      if (link.mayTry()) detach(this.#report(link, number));
    });
    register(accepted, number, link);
  }

  /** Handles a stream of kind "lane". */
  async handle(control: Stream, session: NodeSession, signal: AbortSignal): Promise<void> {
    const frame = new BinaryReader(await readExactly(control, 1 + NUMBER_BYTES, signal));
    const message = frame.u8();
    const number = frame.u32();
    const links = this.#sessions.get(session);
    if (message === MESSAGE.lossy) {
      endWith(control, STATUS.ok, this.#clock);
      const link = links?.opened.get(number);
      if (link?.mayTry() === true) await this.#ask(link, number);
    } else if (message === MESSAGE.request) {
      const offer = await readExactly(control, this.#streams.offerBytes, signal);
      await this.#answer(control, links?.accepted.get(number), offer, signal);
    } else throw new ProtocolBreach('A message about a lane is malformed.');
  }

  #linksOf(session: NodeSession): SessionLinks {
    const known = this.#sessions.get(session);
    if (known !== undefined) return known;
    const links = { next: 0, opened: new Map(), accepted: new Map() };
    this.#sessions.set(session, links);
    return links;
  }

  /** Reports to the calling node that packet loss slows this side down. */
  async #report({ session, signal }: MovableLink, number: number): Promise<void> {
    try {
      const control = await openStreamWithin(session, signal);
      control.end(Buffer.concat([Uint8Array.of(KIND.lane, MESSAGE.lossy), u32(number)]));
      drainAndDestroy(control, this.#clock);
    } catch {
      // The link has closed with its connection.
    }
  }

  /** Requests a lane from the called node. Without one, the link continues unchanged. */
  async #ask(link: MovableLink, number: number): Promise<void> {
    // protocol-links.md, steps 19 to 21
    const offered = this.#streams.offer(link.session.connection.path, OPTIONS);
    if (offered === null) return;
    using limit = awakeTimeout(this.#clock, AGREE_MS, link.signal);
    let control: Stream | null = null;
    let lane: BulkStream | null = null;
    try {
      control = await openStreamWithin(link.session, limit.signal);
      control.write(Buffer.concat([Uint8Array.of(KIND.lane, MESSAGE.request), u32(number), offered.offer]));
      const [status = STATUS.failed] = await readExactly(control, 1, limit.signal);
      if (status !== STATUS.ok) throw new Refusal(status);
      const answer = await readExactly(control, this.#streams.answerBytes, limit.signal);
      lane = await offered.answered(answer, limit.signal);
    } catch {
      offered.cancel();
    }
    if (control !== null) await this.#decide(control, link, lane);
  }

  /** @param link undefined if it has closed */
  async #answer(control: Stream, link: MovableLink | undefined, offer: Uint8Array, signal: AbortSignal): Promise<void> {
    if (link === undefined) throw new Refusal(STATUS.notHere);
    const limit = AbortSignal.any([signal, link.signal]);
    const taken = link.mayMove ? this.#streams.take(offer, link.session.connection.path, limit, OPTIONS) : null;
    const answer = taken?.answer ?? new Uint8Array(this.#streams.answerBytes);
    control.write(Buffer.concat([Uint8Array.of(STATUS.ok), answer]));
    const lane = taken === null ? null : await taken.stream.catch(() => null);
    await this.#decide(control, link, lane);
  }

  /**
   * Exchanges the decisions of both sides, and moves the link if both agree. After its own decision to move, a side
   * treats an end of the other half as a move. Without the other decision it cannot tell an end from a move, so the link
   * is lost.
   * @param lane null if there is none
   */
  async #decide(control: Stream, link: MovableLink, lane: BulkStream | null): Promise<void> {
    // protocol-links.md, steps 20 and 21
    const { stream, signal } = link;
    if (lane === null || lane.destroyed || !link.mayMove) {
      lane?.destroy();
      control.end(Uint8Array.of(DECISION.stay));
      return drainAndDestroy(control, this.#clock);
    }
    link.mayMove = false;
    const decision = Promise.withResolvers<BulkStream | null>();
    stream.continueOn?.(decision.promise);
    control.end(Uint8Array.of(DECISION.move));
    try {
      const [theirs] = await readExactly(control, 1, signal);
      if (theirs === DECISION.move) {
        link.hasMoved = true;
        link.session.continuesOn(lane);
        decision.resolve(lane);
      } else {
        lane.destroy();
        decision.resolve(null);
        link.mayMove = true;
      }
    } catch (cause) {
      lane.destroy();
      stream.destroy(new StreamError('connection_lost', cause));
    } finally {
      drainAndDestroy(control, this.#clock);
    }
  }
}

/** A link that continues on a lane if packet loss slows it down. */
class MovableLink {
  readonly session: NodeSession;
  readonly stream: Stream;
  /** False while it moves, and afterwards. */
  mayMove = true;
  hasMoved = false;
  readonly #clock: Clock;
  /** Exists during an attempt to move: most links never need it. */
  #closed: AbortController | null = null;
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, session: NodeSession, stream: Stream) {
    this.#clock = clock;
    this.session = session;
    this.stream = stream;
  }

  /** Aborts when the link closes. */
  get signal(): AbortSignal {
    this.#closed ??= new AbortController();
    if (this.stream.destroyed) this.#closed.abort();
    return this.#closed.signal;
  }

  closed(): void {
    this.#closed?.abort();
  }

  /** True if another attempt may start now. */
  mayTry(): boolean {
    const now = this.#clock.monotonic();
    if (!this.mayMove || now < this.#nextAt || this.stream.destroyed) return false;
    this.#nextAt = now + NEXT_MOVE_MS;
    return true;
  }

  pace(lossy: LruCache<string, true>, slowed: () => void): void {
    const { connection } = this.stream;
    const link = {
      nodeKey: connection.remoteKey,
      path: () => pathOf(connection, false),
      packets: () => {
        const { packetsSent, packetsLost } = connection.stats();
        return { sent: packetsSent, lost: packetsLost };
      },
      sentBytes: () => connection.stats().bytesSent,
      isOver: () => this.hasMoved || this.stream.destroyed,
    };
    this.stream.setPace?.(new BulkPace(this.#clock, link, lossy, slowed));
  }
}

/** True if a stream can continue on a lane. A third node cannot carry one. */
function canMove({ connection }: NodeSession, stream: Stream): boolean {
  return stream.continueOn !== undefined && stream.setPace !== undefined && !isRelayed(connection.path.kind);
}

function register(links: Map<number, MovableLink>, number: number, link: MovableLink): void {
  links.set(number, link);
  link.stream.once('close', () => {
    links.delete(number);
    link.closed();
  });
}
