/** One link between a local agent and a peer, whoever opened it: frames in, frames out. */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { letGo, sourceOfLink } from '../../network/links/source.ts';
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
  unacknowledged: { readonly seq: number; readonly bytes: number }[];
}

interface SessionEvents {
  /** Frames that came together. Synchronous; where it throws, the link is cut and nothing is answered. */
  onFrames(session: ChatSession, frames: readonly Frame[]): void;
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
  /** The network that the peer comes from; null on this machine. */
  readonly source: string | null;

  constructor(link: LinkStream, outbound: boolean, clock: Clock, events: SessionEvents) {
    this.link = link;
    this.outbound = outbound;
    this.local = outbound ? link.caller : link.called;
    this.peer = outbound ? link.called : link.caller;
    this.#clock = clock;
    this.lastActivity = clock.now();
    this.source = sourceOfLink(link);
    link.on('error', () => {});
    link.on('data', (chunk: Uint8Array) => this.#read(chunk, events));
    link.on('drain', () => events.onDrain(this));
    // The other side is done: so are we.
    link.on('end', () => link.end());
    link.once('close', () => events.onClose(this));
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
    letGo(this.link, this.#clock);
  }

  /** Ends the link at once. */
  cut(): void {
    this.link.destroy();
  }

  #read(chunk: Uint8Array, events: SessionEvents): void {
    this.lastActivity = this.#clock.now();
    try {
      const frames = this.#reader.take(chunk);
      if (frames.length > 0 && !this.link.destroyed) events.onFrames(this, frames);
    } catch (error) {
      this.cut();
      events.onFailure(this, error);
    }
  }
}
