/** One link between a local agent and a peer, whoever opened it: frames in, frames out. */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { QuotaShare } from '../../foundation/quota.ts';
import { drainAndDestroy } from '../../network/links/lingering.ts';
import type { LinkStream } from '../../network/links/types.ts';
import type { Told } from './relationship.ts';
import { CHAT_VERSION, ChatFrameReader, encodeFrame, type Frame } from './wire.ts';

/** Bytes that may wait to be sent; a peer that asks and does not read is cut off. */
const MAX_UNSENT_BYTES: number = 4 * 1024 * 1024;

/** What the peer was told and has not yet heard. */
export interface Unheard {
  readonly n: number;
  readonly about: Told;
}

/** Where the sending of a queue stands on one link. */
export interface SendCursor {
  readonly stream: Uint8Array;
  /** Number in the stream of the next entry. */
  nextSeq: number;
  /** Place in the log of the last entry sent. */
  lastEntry: number;
  /** Bytes that were sent and have not been acknowledged. */
  unacknowledged: Unacknowledged[];
}

interface Unacknowledged {
  /** Number in the stream. */
  readonly seq: number;
  /** Place in the log. */
  readonly place: number;
  readonly bytes: number;
}

interface SessionEvents {
  /** Frames that came together. Synchronous; where it throws, the link is cut and nothing is answered. */
  onFrames(session: ChatSession, frames: readonly Frame[]): void;
  /** Entries up to a place in our log have arrived; the frames that say so follow. */
  onArrival(session: ChatSession, upTo: number): void;
  /** The link was cut: the peer broke the protocol, or what it sent could not be kept. */
  onFailure(session: ChatSession, error: unknown): void;
  /** More can be written. */
  onDrain(session: ChatSession): void;
  onClose(session: ChatSession): void;
}

export class ChatSession {
  readonly local: Aid;
  readonly peer: Aid;
  /** True where we opened the link. */
  readonly outbound: boolean;
  readonly link: LinkStream;
  readonly #clock: Clock;
  readonly #reader = new ChatFrameReader();
  #lastNumber = 0;
  /** Unix milliseconds of the last frame in either direction. */
  lastActivity: number;
  /** Since when an answer is awaited, Unix milliseconds; null where none is. */
  waitingSince: number | null = null;
  told: Unheard | null = null;
  cursor: SendCursor | null = null;
  /** Something of ours has arrived over this link. */
  madeProgress = false;
  /** The peer was a friend when this was last looked at. */
  isFriend = false;
  /** Its place among the links of strangers; null if it has none. */
  place: QuotaShare | null = null;
  /** Frames that are taken in the next turn of the event loop, and those that came behind them. */
  #behind: Frame[] = [];

  constructor(link: LinkStream, outbound: boolean, clock: Clock, events: SessionEvents) {
    this.link = link;
    this.outbound = outbound;
    this.local = outbound ? link.caller : link.called;
    this.peer = outbound ? link.called : link.caller;
    this.#clock = clock;
    this.lastActivity = clock.now();
    link.on('error', () => {});
    link.on('data', (chunk: Uint8Array) => this.#read(chunk, events));
    link.on('drain', () => events.onDrain(this));
    // The other side is done: so are we, once it is answered.
    link.on('end', () => setImmediate(() => link.end()));
    link.once('close', () => {
      this.#catchUp(events);
      events.onClose(this);
    });
    link.write(Uint8Array.of(CHAT_VERSION));
  }

  get closed(): boolean {
    return this.link.destroyed || this.link.writableEnded;
  }

  /** True where what is written waits already. */
  get isFull(): boolean {
    return this.link.writableNeedDrain;
  }

  nextNumber(): number {
    return ++this.#lastNumber;
  }

  send(...frames: readonly Frame[]): void {
    if (this.closed || frames.length === 0) return;
    this.lastActivity = this.#clock.now();
    this.link.write(Buffer.concat(frames.map(encodeFrame)));
    if (this.link.writableLength > MAX_UNSENT_BYTES) this.cut();
  }

  /** Something of ours is answered: where more is awaited, it is awaited from now on. */
  answered(): void {
    this.madeProgress = true;
    const waits = this.told !== null || (this.cursor?.unacknowledged.length ?? 0) > 0;
    this.waitingSince = waits ? this.#clock.now() : null;
  }

  /** Something was sent that wants an answer. */
  awaits(): void {
    this.waitingSince ??= this.#clock.now();
  }

  /** Ends the link after what was written. */
  end(): void {
    if (this.closed) return;
    this.link.end();
    drainAndDestroy(this.link, this.#clock);
  }

  /** Ends the link at once. */
  cut(): void {
    this.link.destroy();
  }

  #read(chunk: Uint8Array, events: SessionEvents): void {
    this.lastActivity = this.#clock.now();
    this.#guard(events, () => {
      const frames = this.#reader.take(chunk);
      if (frames.length === 0 || this.link.destroyed) return;
      const arrived = this.#behind.length > 0 ? 0 : this.#arrivedBy(frames);
      if (arrived === 0 && this.#behind.length === 0) return events.onFrames(this, frames);
      if (this.#behind.length === 0) setImmediate(() => this.#catchUp(events));
      this.#behind.push(...frames);
      if (arrived > 0) events.onArrival(this, arrived);
    });
  }

  /** Place in our log of the last entry that has arrived, where frames say that and nothing else; 0 where they do not. */
  #arrivedBy(frames: readonly Frame[]): number {
    const { cursor } = this;
    let upTo = 0;
    for (const frame of frames) {
      if (cursor === null || frame.kind !== 'receipt' || frame.answer !== 'ok') return 0;
      if (!equalBytes(cursor.stream, frame.stream)) return 0;
      upTo = Math.max(upTo, frame.seq);
    }
    return cursor?.unacknowledged.findLast(({ seq }) => seq <= upTo)?.place ?? 0;
  }

  #catchUp(events: SessionEvents): void {
    const frames = this.#behind;
    this.#behind = [];
    if (frames.length > 0) this.#guard(events, () => events.onFrames(this, frames));
  }

  #guard(events: SessionEvents, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.cut();
      events.onFailure(this, error);
    }
  }
}
