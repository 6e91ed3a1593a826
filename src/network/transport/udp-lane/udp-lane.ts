/** Sealed bytes over a stream whose congestion control does not take each lost packet for a crowd (BBR). */
import { Duplex } from 'node:stream';
import type { Stream } from 'udx-native';
import { freeMemory } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { Quota, QuotaHolder } from '../../../foundation/quota.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { ResizableShare } from '../../../foundation/resizable-share.ts';
import { SilenceWatch } from '../../../foundation/stall.ts';
import { type LaneRecord, MAX_RECORD_PAYLOAD_BYTES, RecordOpener, RecordSealer } from '../sealed-records.ts';
import { STREAM_OPTIONS, StreamError } from '../stream.ts';
import type { BulkStream } from '../types.ts';

/** A lane on which something is under way and nothing comes back for so long is lost: milliseconds. */
export const LANE_SILENCE_MS = 5_000;
/** How often that is looked at, milliseconds. */
const LANE_LOOK_MS = 1_000;
/** An idle lane is heard of so often, so that routers keep its way open: milliseconds. */
const KEEPALIVE_MS = 15_000;
/** A lane without any packet from the other side for so long is lost: milliseconds. */
export const LANE_IDLE_MS: number = 3 * KEEPALIVE_MS;
type Callback = (error?: Error | null) => void;

interface BulkLaneOptions {
  readonly clock: Clock;
  readonly stream: Stream;
  readonly keys: { readonly seal: Uint8Array; readonly open: Uint8Array };
  /** Counts the bytes that have arrived and were not read. */
  readonly unread: Quota;
  /** Whose share of them it uses. */
  readonly holder: QuotaHolder;
}

export class UdpLane extends Duplex implements BulkStream {
  readonly #stream: Stream;
  readonly #sealer: RecordSealer;
  readonly #opener: RecordOpener;
  readonly #clock: Clock;
  readonly #unread: ResizableShare;
  readonly #met = Promise.withResolvers<void>();
  #looks: RepeatingTask | null = null;
  #silence: SilenceWatch | null = null;
  #idle: SilenceWatch | null = null;
  #heard = 0;
  /** Each side has sent its end. */
  #weEnded = false;
  #theyEnded = false;
  #drained: Callback | null = null;
  #isClosed = false;
  #onClosed: (() => void) | null = null;

  constructor({ clock, stream, keys, unread, holder }: BulkLaneOptions) {
    super(STREAM_OPTIONS);
    this.#clock = clock;
    this.#stream = stream;
    this.#unread = new ResizableShare(unread, holder, () => this.#lose());
    this.#sealer = new RecordSealer(keys.seal);
    this.#opener = new RecordOpener(keys.open);
    this.#met.promise.catch(() => {});
    // A lost lane must not end the process where nobody listens yet.
    this.on('error', () => {});
    stream.on('data', (chunk: Uint8Array) => this.#received(chunk));
    stream.on('drain', () => this.#written());
    stream.on('end', () => (this.#theyEnded ? undefined : this.#lose()));
    stream.on('error', (cause: unknown) => this.#lose(cause));
    stream.on('close', () => this.#closed());
  }

  /** Settles when the other side has been heard; rejects where the lane is lost before. */
  get met(): Promise<void> {
    return this.#met.promise;
  }

  /** Bytes of packets, both ways, since the lane was made. */
  get traffic(): { readonly sent: number; readonly received: number } {
    return { sent: this.#stream.bytesTransmitted, received: this.#stream.bytesReceived };
  }

  rtt(): number {
    return this.#stream.rtt;
  }

  /** Says hello; to be called once the stream is connected, before anything is written. */
  greet(): void {
    this.#stream.setKeepalive(KEEPALIVE_MS);
    this.#stream.write(this.#sealer.seal('hello'));
    this.#looks = every(this.#clock, { periodMs: LANE_LOOK_MS, onError: () => this.#lose() }, () => this.#look());
    this.#idle = new SilenceWatch(this.#clock, LANE_IDLE_MS, () => this.#lose());
  }

  /** Frees a chunk that was read from here and is not needed any more. */
  release(chunk: Buffer): void {
    freeMemory(chunk);
  }

  /** The reader reads at once. A quota bounds how much may arrive before it does. */
  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    let hasRoom = true;
    for (let at = 0; at < chunk.length; at += MAX_RECORD_PAYLOAD_BYTES)
      hasRoom = this.#stream.write(this.#sealer.seal('data', chunk.subarray(at, at + MAX_RECORD_PAYLOAD_BYTES)));
    if (hasRoom) callback();
    else this.#drained = callback;
  }

  override _final(callback: Callback): void {
    this.#weEnded = true;
    this.#stream.write(this.#sealer.seal('end'));
    // Until the other side has ended too, a record may still have to say that we stopped reading.
    if (this.#theyEnded) this.#stream.end();
    callback();
  }

  /**
   * After both ends, data in transit still arrives before the lane closes. A lane that is destroyed before that sends a
   * reset, which tells it from a lost lane. After our own end, the reset says only that we stopped reading.
   */
  override _destroy(error: Error | null, callback: Callback): void {
    this.#met.reject(error ?? new StreamError('connection_lost'));
    this.#unread.set(0);
    const isWhole = this.writableFinished && this.#theyEnded;
    if (error === null && this.#idle !== null && !isWhole) {
      this.#stream.write(this.#sealer.seal('reset'));
      this.#stream.end();
    } else if (!isWhole) this.#stream.destroy();
    this.#written();
    if (this.#isClosed) callback(error);
    else this.#onClosed = () => callback(error);
  }

  /** Ends it at once, whatever is under way; who uses it takes it for lost. */
  abort(): void {
    this.#stream.destroy();
    this.#lose();
  }

  #closed(): void {
    this.#isClosed = true;
    this.#looks?.stop();
    this.#silence?.stop();
    this.#idle?.stop();
    if (this.destroyed) this.#onClosed?.();
    else if (!this.writableFinished || !this.#theyEnded) this.#lose();
  }

  #written(): void {
    const drained = this.#drained;
    this.#drained = null;
    drained?.();
  }

  #lose(cause?: unknown): void {
    // It may wait for the other side to take its last records.
    if (this.destroyed) this.#stream.destroy();
    else this.destroy(new StreamError('connection_lost', cause));
  }

  #received(chunk: Uint8Array): void {
    try {
      for (const record of this.#opener.feed(chunk)) this.#take(record);
    } catch (error) {
      this.#lose(error);
    }
  }

  #take({ kind, payload }: LaneRecord): void {
    if (this.destroyed) return;
    if (kind === 'reset') return this.#reset();
    if (this.#theyEnded) return;
    this.#met.resolve();
    if (kind === 'end') {
      this.#theyEnded = true;
      if (this.#weEnded) this.#stream.end();
      this.push(null);
    } else if (kind === 'data' && payload.length > 0) this.push(payload);
    this.#countUnread();
  }

  /** Bytes before a clean end are read first. */
  #reset(): void {
    const reset = (): void => void this.destroy(new StreamError('stream_reset'));
    if (!this.#theyEnded || this.readableEnded) reset();
    else if (!this.#weEnded) this.once('end', reset);
  }

  /** A lane without room for what has arrived is lost: the connection goes on over its link. */
  #countUnread(): void {
    if (!this.destroyed && !this.#unread.set(this.readableLength)) this.#lose();
  }

  /** Packets are acknowledged by packets: where none comes and some are under way, the way is gone. */
  #look(): void {
    this.#countUnread();
    const { packetsReceived, inflight } = this.#stream;
    const isHeard = packetsReceived !== this.#heard || inflight === 0;
    if (packetsReceived !== this.#heard) this.#idle?.heard();
    this.#heard = packetsReceived;
    if (isHeard) {
      this.#silence?.stop();
      this.#silence = null;
    } else this.#silence ??= new SilenceWatch(this.#clock, LANE_SILENCE_MS - LANE_LOOK_MS, () => this.#lose());
  }
}
