/** One link between a local agent and a peer, opened by either side. Reads and writes frames. */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { QuotaShare } from '../../foundation/quota.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import type { SentControl } from './relationship.ts';
import { CHAT_VERSION, ChatFrameReader, encodeFrame, type Frame } from './wire.ts';

/** Limit of unsent bytes. A peer that sends requests without reading is disconnected. */
const MAX_UNSENT_BYTES: number = 4 * 1024 * 1024;

/** A control message that the peer has not acknowledged. */
export interface PendingControl {
  readonly n: number;
  readonly about: SentControl;
}

/** The progress of one link through the queue. */
export interface SendCursor {
  readonly stream: Uint8Array;
  /** ID of the last sent or acknowledged entry; null before the first one. */
  lastId: Uint8Array | null;
  /** Position in the log of the last sent entry. */
  lastEntry: number;
  /** Sent entries without an acknowledgment. */
  unacknowledged: Unacknowledged[];
}

interface Unacknowledged {
  readonly id: Uint8Array;
  /** Position in the log. */
  readonly place: number;
  readonly bytes: number;
}

/** The position in the log of a sent entry without an acknowledgment, or 0 if there is no such entry. */
export function placeOf({ unacknowledged }: SendCursor, id: Uint8Array | null): number {
  return id === null ? 0 : (unacknowledged.findLast((sent) => equalBytes(sent.id, id))?.place ?? 0);
}

export interface SessionEvents {
  /** Frames that arrived together. Synchronous. If it throws, the link is closed without a reply. */
  onFrames(session: ChatSession, frames: readonly Frame[]): void;
  /** The peer has all entries up to a position in the log. The same frames follow in `onFrames`. */
  onArrival(session: ChatSession, upTo: number): void;
  /** The link was closed because the peer violated the protocol or its frames could not be stored. */
  onFailure(session: ChatSession, error: unknown): void;
  /** The link can be written again. */
  onDrain(session: ChatSession): void;
  onClose(session: ChatSession): void;
}

export class ChatSession {
  readonly local: Aid;
  readonly peer: Aid;
  /** Whether this node opened the link. */
  readonly outbound: boolean;
  readonly link: LinkStream;
  readonly #clock: Clock;
  readonly #reader = new ChatFrameReader();
  #lastNumber = 0;
  /** Time of the last frame in either direction, Unix milliseconds. */
  lastActivity: number;
  /** Since when an acknowledgment is pending, Unix milliseconds, or null. */
  waitingSince: number | null = null;
  pendingControl: PendingControl | null = null;
  cursor: SendCursor | null = null;
  /** An entry was delivered over this link. */
  madeProgress = false;
  /** Whether the peer was a friend at the last check. */
  isFriend = false;
  /** Its share of the quota for strangers, or null. */
  place: QuotaShare | null = null;
  /** Frames that are processed in the next turn of the event loop, and frames that arrived after them. */
  #behind: Frame[] = [];

  /** @param first the control message that was sent with the header of the link; null without one, and inbound */
  constructor(
    link: LinkStream,
    outbound: boolean,
    clock: Clock,
    events: SessionEvents,
    first: PendingControl | null = null,
  ) {
    this.link = link;
    this.outbound = outbound;
    this.local = outbound ? link.caller : link.called;
    this.peer = outbound ? link.called : link.caller;
    this.#clock = clock;
    this.lastActivity = clock.monotonic();
    link.on('error', () => {});
    link.on('data', (chunk: Uint8Array) => this.#read(chunk, events));
    link.on('drain', () => events.onDrain(this));
    // The peer has finished. Finish after the pending replies.
    link.on('end', () => setImmediate(() => link.end()));
    link.once('close', () => {
      this.#catchUp(events);
      events.onClose(this);
    });
    if (!outbound) link.write(Uint8Array.of(CHAT_VERSION));
    if (first === null) return;
    this.pendingControl = first;
    this.#lastNumber = first.n;
    this.awaits();
  }

  get closed(): boolean {
    return this.link.destroyed || this.link.writableEnded;
  }

  /** Whether the write buffer is full. */
  get isFull(): boolean {
    return this.link.writableNeedDrain;
  }

  nextNumber(): number {
    return ++this.#lastNumber;
  }

  send(...frames: readonly Frame[]): void {
    if (this.closed || frames.length === 0) return;
    this.lastActivity = this.#clock.monotonic();
    this.link.write(Buffer.concat(frames.map(encodeFrame)));
    if (this.link.writableLength > MAX_UNSENT_BYTES) this.cut();
  }

  /** An acknowledgment arrived. If more are pending, the wait starts again. */
  answered(): void {
    this.madeProgress = true;
    const waits = this.pendingControl !== null || (this.cursor?.unacknowledged.length ?? 0) > 0;
    this.waitingSince = waits ? this.#clock.monotonic() : null;
  }

  /** A frame was sent that needs an acknowledgment. */
  awaits(): void {
    this.waitingSince ??= this.#clock.monotonic();
  }

  /** Closes the link after pending writes. */
  end(): void {
    if (this.closed) return;
    this.link.end();
    drainAndDestroy(this.link, this.#clock);
  }

  /** Closes the link immediately. */
  cut(): void {
    this.link.destroy();
  }

  #read(chunk: Uint8Array, events: SessionEvents): void {
    this.lastActivity = this.#clock.monotonic();
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

  /**
   * If the frames are only acknowledgments of entries, returns the position of the last delivered entry. Otherwise
   * returns 0.
   */
  #arrivedBy(frames: readonly Frame[]): number {
    const { cursor } = this;
    let upTo = 0;
    for (const frame of frames) {
      if (cursor === null || frame.kind !== 'receipt' || frame.answer !== 'ok') return 0;
      if (!equalBytes(cursor.stream, frame.stream)) return 0;
      upTo = Math.max(upTo, placeOf(cursor, frame.last));
    }
    return upTo;
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
