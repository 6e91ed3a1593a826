/** One stream of a wide tunnel connection: what is under way on it, and what has come over it. */
import type { SpliceLink } from '../splice.ts';
import { ackFrame, FrameParser } from './frames.ts';

/** Payload that comes over a lane before it is acknowledged, bytes; well below what a lane may have under way. */
const ACK_BYTES = 32 * 1024;
/** The same in frames. */
const ACK_FRAMES = 8;

/** What a lane may have under way, bytes: at first, at least, at most. Well above what is acknowledged at a time. */
const FIRST_LIMIT_BYTES = 64 * 1024;
const MIN_LIMIT_BYTES = 64 * 1024;
const MAX_LIMIT_BYTES = 8 * 1024 * 1024;
/** More than these many quickest times from sending to acknowledgement, and milliseconds, are a short queue … */
const SHORT_TIMES = 3;
const SHORT_MS = 50;
/** … and a long one: what waits on a slow lane holds up all that comes behind it on others. */
const LONG_TIMES = 5;
const LONG_MS = 100;

/** A data or end frame on its way; kept until the other side has it, as the lane may be lost. */
interface Underway {
  readonly frame: Buffer;
  /** Milliseconds. */
  readonly at: number;
}

export class Lane {
  readonly stream: SpliceLink;
  readonly isBulk: boolean;
  readonly parser = new FrameParser();
  /** The other side has ended its half. */
  isEnded = false;
  /** The stream wants no more for now. */
  isStalled = false;
  /** An acknowledgement waits until the stream has room for it. */
  ackWaits = false;
  /** Sent and not yet acknowledged, in order. */
  #underway: Underway[] = [];
  #underwayBytes = 0;
  #limit = FIRST_LIMIT_BYTES;
  /** The quickest acknowledgement, milliseconds. */
  #quickest = Number.POSITIVE_INFINITY;
  /** Frames that the other side has acknowledged. */
  #acked = 0;
  /** Frames that have come, and what of them we have not acknowledged. */
  #received = 0;
  #unackedFrames = 0;
  #unackedBytes = 0;

  /** @param isBulk whether it takes all bytes while it stands */
  constructor(stream: SpliceLink, isBulk: boolean, onDrain: () => void) {
    this.stream = stream;
    this.isBulk = isBulk;
    stream.on('drain', () => {
      this.isStalled = false;
      onDrain();
    });
  }

  get underwayBytes(): number {
    return this.#underwayBytes;
  }

  get isIdle(): boolean {
    return this.#underway.length === 0;
  }

  get isFull(): boolean {
    return this.isStalled || (!this.isBulk && this.#underwayBytes >= this.#limit);
  }

  /** True where the other side waits for an acknowledgement. */
  get owesAck(): boolean {
    return this.#unackedFrames > 0;
  }

  /** @param now milliseconds */
  send(frame: Buffer, now: number): void {
    this.noteSent(frame, now);
    this.write(frame);
  }

  /** A frame has gone out already. @param now milliseconds */
  noteSent(frame: Buffer, now: number): void {
    this.#underway.push({ frame, at: now });
    this.#underwayBytes += frame.length;
  }

  /** Sends a frame that is not acknowledged. */
  write(bytes: Buffer): void {
    this.isStalled = !this.stream.write(bytes);
  }

  /** The other side has so many frames of this lane now; gives how many bytes that frees, null where it cannot be. */
  acknowledge(frames: number, now: number): number | null {
    const count = frames - this.#acked;
    if (count < 0 || count > this.#underway.length) return null;
    this.#acked = frames;
    const done = this.#underway.splice(0, count);
    const freed = done.reduce((sum, { frame }) => sum + frame.length, 0);
    this.#underwayBytes -= freed;
    const newest = done.at(-1);
    if (newest !== undefined) this.#adapt(now - newest.at, freed);
    return freed;
  }

  /** Keeps the lane busy and its queue short. */
  #adapt(tookMs: number, freed: number): void {
    this.#quickest = Math.min(this.#quickest, tookMs);
    if (tookMs <= SHORT_TIMES * this.#quickest + SHORT_MS) this.#limit = Math.min(this.#limit + freed, MAX_LIMIT_BYTES);
    else if (tookMs > LONG_TIMES * this.#quickest + LONG_MS)
      this.#limit = Math.max(this.#limit - freed / 2, MIN_LIMIT_BYTES);
  }

  /** Counts a frame that has come; true where it is time to say so. */
  noteReceived(bytes: number): boolean {
    this.#received++;
    this.#unackedFrames++;
    this.#unackedBytes += bytes;
    return this.#unackedFrames >= ACK_FRAMES || this.#unackedBytes >= ACK_BYTES;
  }

  /** Acknowledges what has come, and says what the reader has taken and how much may come beyond that. */
  sendAck(consumed: number, window: number): void {
    this.#unackedFrames = this.#unackedBytes = 0;
    this.write(ackFrame(consumed, window, this.#received));
  }

  /** What is under way, in order. */
  get underway(): readonly Buffer[] {
    return this.#underway.map(({ frame }) => frame);
  }

  /** Takes what was under way off a lane that is lost. */
  abandon(): readonly Buffer[] {
    return this.#underway.splice(0).map(({ frame }) => frame);
  }
}
