/**
 * One tunnel connection over a link, and over a lane for bulk where lost packets slow that down. To its user it is a
 * stream like any other: bytes in order with back-pressure, half-close, and a reset that passes to the other side.
 */
import { Duplex } from 'node:stream';
import { freeMemory } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { drainAndDestroy } from '../../../network/links/lingering.ts';
import type { LinkPath, LinkStream } from '../../../network/links/types.ts';
import { STREAM_OPTIONS, StreamError } from '../../../network/transport/stream.ts';
import { LastPath } from '../lasting/last-path.ts';
import type { Resumable } from '../lasting/resumable.ts';
import type { SpliceLink } from '../splice.ts';
import { dataFrame, endFrame, type LaneFrame, MAX_PAYLOAD_BYTES, widerFrame } from './frames.ts';
import { Lane } from './lane.ts';
import { MAX_FRAMES_AHEAD, Reassembly } from './reassembly.ts';

/** Most lanes of one connection: one for bulk beside the link, and the one that takes its place before it has gone. */
export const MAX_LANES = 4;
/** What the sender may have ahead of the reader at first, bytes … */
export const FIRST_WINDOW_BYTES = 256 * 1024;
/** … and at most, where the reader takes it quickly. */
export const MAX_WINDOW_BYTES = 8 * 1024 * 1024;

type Callback = (error?: Error | null) => void;

interface WideStreamOptions {
  readonly clock: Clock;
  /** What has gone out over the first lane already, a frame for each piece. */
  readonly said?: readonly Buffer[];
  /** Asks for room to keep so many bytes more, of either direction; false where there is none. */
  readonly widen: (bytes: number) => boolean;
  /** Called when bytes have moved, either way. */
  readonly onProgress?: () => void;
  /** The other side loses packets on its lanes. */
  readonly onWider?: () => void;
  /** The last lane was lost; false where the connection may not wait for another one. */
  readonly onLost?: () => boolean;
  /** It goes on over another link. */
  readonly onAttach?: (link: LinkStream) => void;
  /** The other side uses the lane that it was resumed on. */
  readonly onResumed?: () => void;
}

export class WideStream extends Duplex implements Resumable {
  readonly #options: WideStreamOptions;
  readonly #lanes = new Set<Lane>();
  readonly #arrived = new Reassembly();
  #window = FIRST_WINDOW_BYTES;
  /** Of `#arrived.handed`: at the last growth of the window, and as the other side knows it. */
  #grownAt = 0;
  #reported = 0;
  #framesReported = 0;
  #wantsData = false;
  #gaveEnd = false;
  /** What the user has written and no lane has taken. */
  #pending: Buffer[] = [];
  #written: Callback | null = null;
  /** Frames of lost lanes. */
  readonly #again: Buffer[] = [];
  #sent = 0;
  /** How much of it the other side's reader has taken. */
  #taken = 0;
  /** How far ahead of the other side's reader we may be, and the offset that this leads to. */
  #sendWindow = FIRST_WINDOW_BYTES;
  #limit = FIRST_WINDOW_BYTES;
  /** Ends of the frames that the other side's reader has not taken, in order. */
  #ahead: number[] = [];
  #ending: Callback | null = null;
  #endSent = false;
  #moved = 0;
  #settled = false;
  #path: LastPath;
  /** The lane that it was resumed on, until the other side uses it. */
  #resuming: Lane | null = null;
  /** Streams of the lanes before that one. */
  #retired: SpliceLink[] = [];

  constructor(first: SpliceLink & Pick<LinkStream, 'path'>, options: WideStreamOptions) {
    super(STREAM_OPTIONS);
    this.#options = options;
    this.#path = new LastPath(first);
    // A reset must not end the process where a consumer has no listener yet.
    this.on('error', () => {});
    this.add(first);
    const [lane] = this.#lanes;
    for (const piece of options.said ?? []) lane?.noteSent(this.#frameOf([piece], piece.length), options.clock.now());
  }

  /** Bytes that have reached the other side or the reader here. */
  get moved(): number {
    return this.#moved;
  }

  /** True where the user has written more than the lanes take for now. */
  get waits(): boolean {
    return this.#pending.length > 0;
  }

  /** Uses another stream to the same connection on the other side. */
  add(stream: SpliceLink, { isBulk = false }: { readonly isBulk?: boolean } = {}): void {
    if (this.destroyed || this.#settled || this.#lanes.size >= MAX_LANES) return void stream.destroy();
    const lane: Lane = new Lane(stream, isBulk, () => this.#drained(lane));
    this.#lanes.add(lane);
    let error: unknown;
    stream.on('error', (cause) => {
      error = cause;
    });
    stream.on('data', (chunk: Buffer) => {
      this.#received(lane, chunk);
      stream.release?.(chunk);
    });
    stream.on('end', () => this.#ended(lane));
    stream.on('close', () => this.#closed(lane, error));
    stream.resume();
    // What waits on a slow link would hold up all that comes behind it: whoever comes second is ignored.
    if (isBulk) for (const { underway } of this.#lanes) this.#again.push(...underway);
    this.#pump();
  }

  /** True while a lane is under it. */
  get isCarried(): boolean {
    return this.#lanes.size > 0;
  }

  /** Whether a better lane would be used. */
  get mayMove(): boolean {
    return this.#resuming === null && !this.#settled && !this.destroyed;
  }

  /** The path of the lane that it began with or was resumed on last. */
  path(): LinkPath {
    return this.#path.now();
  }

  /** Goes on over another link in the place of all lanes. */
  attach(link: LinkStream): void {
    if (this.destroyed || this.#settled) return void link.destroy();
    this.#path = new LastPath(link);
    for (const lane of this.#lanes) {
      this.#again.push(...lane.abandon());
      this.#retired.push(lane.stream);
    }
    this.#lanes.clear();
    this.#options.onAttach?.(link);
    this.add(link);
    for (const lane of this.#lanes) this.#resuming = lane;
    if (this.#resuming !== null) this.#acknowledge(this.#resuming);
  }

  /** Tells the other side, which opened the first lane, that one for bulk would help. */
  askWider(): void {
    for (const lane of this.#lanes) return lane.write(widerFrame());
  }

  /** Frees a chunk that was read from here and is not needed any more. */
  release(chunk: Buffer): void {
    freeMemory(chunk);
  }

  override _read(): void {
    this.#wantsData = true;
    this.#deliver();
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], callback: Callback): void {
    this.#pending.push(...chunks.map(({ chunk }) => chunk).filter(({ length }) => length > 0));
    this.#written = callback;
    this.#pump();
  }

  override _final(callback: Callback): void {
    this.#ending = callback;
    this.#pump();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    for (const { stream } of this.#lanes) stream.destroy();
    this.#lanes.clear();
    this.#endRetired();
    this.#pending = [];
    callback(error);
    const waiting = this.#written ?? this.#ending;
    this.#written = this.#ending = null;
    waiting?.(error ?? new StreamError('connection_lost'));
  }

  #drained(lane: Lane): void {
    if (this.destroyed || this.#settled) return;
    if (lane.ackWaits) this.#acknowledge(lane);
    this.#pump();
  }

  /** Hands to the lanes what they and the other side's window have room for. */
  #pump(): void {
    if (this.destroyed || this.#settled) return;
    for (let lane = this.#freeLane(); lane !== null; lane = this.#freeLane()) {
      const frame = this.#again.shift() ?? this.#nextFrame();
      if (frame === null) break;
      lane.send(frame, this.#options.clock.now());
    }
    if (this.#pending.length > 0) return;
    const written = this.#written;
    this.#written = null;
    written?.();
  }

  /** The other side uses the new lane: the old ones have no use any more. */
  #resumed(): void {
    this.#resuming = null;
    this.#endRetired();
    this.#options.onResumed?.();
  }

  #endRetired(): void {
    for (const stream of this.#retired.splice(0)) stream.destroy();
  }

  /** The lane with the least under way, where it may take more; one for bulk before all others, which would hold it up. */
  #freeLane(): Lane | null {
    let best: Lane | null = null;
    const hasBulk = this.#hasBulk;
    for (const lane of this.#lanes) {
      if (lane.isFull || (hasBulk && !lane.isBulk)) continue;
      if (best === null || lane.underwayBytes < best.underwayBytes) best = lane;
    }
    return best;
  }

  #nextFrame(): Buffer | null {
    // protocol-tunnels.md, step 13
    if (this.#pending.length === 0) {
      if (this.#ending === null || this.#endSent) return null;
      this.#endSent = true;
      return endFrame(this.#sent);
    }
    const room = Math.min(MAX_PAYLOAD_BYTES, this.#limit - this.#sent);
    if (room <= 0 || this.#ahead.length >= MAX_FRAMES_AHEAD) return null;
    const pieces: Buffer[] = [];
    let length = 0;
    for (let first = this.#pending[0]; first !== undefined && length < room; first = this.#pending[0]) {
      const piece = first.subarray(0, room - length);
      pieces.push(piece);
      length += piece.length;
      if (piece.length === first.length) this.#pending.shift();
      else this.#pending[0] = first.subarray(piece.length);
    }
    return this.#frameOf(pieces, length);
  }

  #frameOf(pieces: readonly Buffer[], length: number): Buffer {
    const frame = dataFrame(this.#sent, pieces, length);
    this.#sent += length;
    this.#ahead.push(this.#sent);
    return frame;
  }

  #received(lane: Lane, chunk: Buffer): void {
    if (this.#settled || !this.#lanes.has(lane)) return;
    if (lane === this.#resuming) this.#resumed();
    try {
      for (const frame of lane.parser.feed(chunk)) {
        if (this.destroyed) return;
        this.#handle(frame, lane);
      }
    } catch (error) {
      return void this.destroy(error instanceof Error ? error : undefined);
    }
    this.#deliver();
    if (!this.#settled && !this.destroyed && this.#allSaid && this.#allAcknowledged()) this.drainAndDestroy();
  }

  #handle(frame: LaneFrame, lane: Lane): void {
    if (frame.kind === 'data') {
      this.#arrived.take(frame.offset, frame.payload, this.#reported + this.#window);
      // Who has sent all waits for the last acknowledgement.
      if (lane.noteReceived(frame.payload.length) || this.#arrived.endKnown) this.#acknowledge(lane);
    } else if (frame.kind === 'end') {
      this.#arrived.finish(frame.offset);
      lane.noteReceived(0);
      for (const each of this.#lanes) if (each.owesAck) this.#acknowledge(each);
    } else if (frame.kind === 'ack') this.#acknowledged(frame, lane);
    else this.#options.onWider?.();
  }

  #acknowledged({ consumed, window, frames }: LaneFrame & { readonly kind: 'ack' }, lane: Lane): void {
    const freed = lane.acknowledge(frames, this.#options.clock.now());
    if (freed === null || consumed > this.#sent)
      return void this.destroy(new StreamError('stream_reset', new Error('an acknowledgement of what was not sent')));
    this.#taken = Math.max(this.#taken, consumed);
    const wanted = Math.min(window, MAX_WINDOW_BYTES);
    const more = wanted - this.#sendWindow;
    // What is under way is kept until it is acknowledged, so the other side's word is not enough.
    if (more > 0 && this.#options.widen(more)) this.#sendWindow = wanted;
    this.#limit = Math.max(this.#limit, consumed + Math.min(window, this.#sendWindow));
    const taken = this.#ahead.findIndex((end) => end > consumed);
    this.#ahead.splice(0, taken < 0 ? this.#ahead.length : taken);
    this.#moved += freed;
    this.#options.onProgress?.();
    this.#pump();
    if (this.#endSent && this.#allAcknowledged()) this.#finished();
  }

  #finished(): void {
    const ended = this.#ending;
    this.#ending = null;
    ended?.();
  }

  #allAcknowledged(): boolean {
    if (this.#again.length > 0) return false;
    const busy = this.#lanes.values().filter((lane) => !lane.isIdle);
    // What a link still has under way has come over the lane for bulk, too.
    return busy.every(({ isBulk }) => !isBulk && this.#hasBulk && this.#taken === this.#sent);
  }

  get #hasBulk(): boolean {
    return this.#lanes.values().some(({ isBulk }) => isBulk);
  }

  /** Gives the reader what stands in order. */
  #deliver(): void {
    while (this.#wantsData && !this.destroyed) {
      const payload = this.#arrived.next();
      if (payload === null) break;
      this.#moved += payload.length;
      this.#wantsData = this.push(payload);
    }
    if (this.#arrived.ended && !this.#gaveEnd) {
      this.#gaveEnd = true;
      this.push(null);
    }
    this.#report();
    this.#options.onProgress?.();
  }

  /** Opens the window further as the reader goes on. */
  #report(): void {
    const { handed, framesHanded } = this.#arrived;
    if (
      handed - this.#grownAt >= this.#window / 2 &&
      this.#window < MAX_WINDOW_BYTES &&
      this.#options.widen(this.#window)
    ) {
      this.#grownAt = handed;
      this.#window *= 2;
    } else if (handed - this.#reported < this.#window / 2 && framesHanded - this.#framesReported < MAX_FRAMES_AHEAD / 8)
      return;
    for (const lane of this.#lanes) return this.#acknowledge(lane);
  }

  /** Where the stream has no room, one acknowledgement for all waits: who sends and does not read fills no memory. */
  #acknowledge(lane: Lane): void {
    // protocol-tunnels.md, step 14
    lane.ackWaits = lane.isStalled;
    if (lane.ackWaits) return;
    this.#reported = this.#arrived.handed;
    this.#framesReported = this.#arrived.framesHanded;
    lane.sendAck(this.#reported, this.#window);
  }

  /** True where both ends have been said, and we have all of the other side's bytes. */
  get #allSaid(): boolean {
    return this.#endSent && this.#arrived.whole;
  }

  /** Ends the lanes, as nothing more will be said on them; the reader may still be behind. */
  drainAndDestroy(): void {
    this.#settled = true;
    this.#endRetired();
    for (const { stream } of this.#lanes) {
      stream.end();
      drainAndDestroy(stream, this.#options.clock);
    }
    this.#lanes.clear();
  }

  /** The other side ends its lanes where all has been said; one that does so before has broken off. */
  #ended(lane: Lane): void {
    lane.isEnded = true;
    if (this.#settled || !this.#lanes.has(lane) || !this.#lanes.values().every(({ isEnded }) => isEnded)) return;
    if (!this.#allSaid) return void this.destroy(new StreamError('stream_reset'));
    // It has all of ours; its last acknowledgement went down with a lane.
    this.drainAndDestroy();
    this.#finished();
  }

  /** A lane is gone: with its connection, which the others make good, or because the other side has broken off. */
  #closed(lane: Lane, error: unknown): void {
    // protocol-tunnels.md, step 15
    if (!this.#lanes.delete(lane) || this.destroyed) return;
    const isLost = error instanceof StreamError && error.code === 'connection_lost';
    const wasResuming = lane === this.#resuming;
    if (wasResuming) this.#resuming = null;
    const broken = error instanceof Error ? error : new StreamError('stream_reset');
    // Who gives a new lane up before both use it may come with another.
    if (!isLost && !wasResuming) return void this.destroy(broken);
    this.#again.push(...lane.abandon());
    if (this.#lanes.size === 0 && this.#options.onLost?.() !== true) return void this.destroy(broken);
    this.#pump();
  }
}
