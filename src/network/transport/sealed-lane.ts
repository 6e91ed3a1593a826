/**
 * Sealed bytes over another stream: of udx, whose congestion control does not slow down for each lost packet (BBR), or
 * over TLS.
 */
import type { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import type { Stream } from 'udx-native';
import { freeMemory } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Quota, QuotaHolder, QuotaShare } from '../../foundation/quota.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import {
  type LaneKeys,
  type LaneRecord,
  MAX_RECORD_PAYLOAD_BYTES,
  READ_COUNT_BYTES,
  RecordOpener,
  RecordSealer,
} from './sealed-records.ts';
import { STREAM_OPTIONS, StreamError } from './stream.ts';
import type { BulkOptions, BulkStream, BulkStreams } from './types.ts';

/** A lane with data in transit and without any response for this time is lost, milliseconds. */
export const LANE_SILENCE_MS = 5_000;
/** How often that is checked, milliseconds. */
const LANE_LOOK_MS = 1_000;
/** Keepalive interval of an idle lane, so that routers keep its mapping, milliseconds. */
const KEEPALIVE_MS = 15_000;
/** A lane without any packet from the peer for this time is lost, milliseconds. */
export const LANE_IDLE_MS: number = 3 * KEEPALIVE_MS;
/** Interval of the hellos on a carrier that cannot keep itself alive, milliseconds. */
const LANE_PULSE_MS = 4_000;
/** Such a carrier is lost without any byte for this time, milliseconds. */
export const PULSED_IDLE_MS = 12_000;
/** Bytes that a lane with back-pressure may have sent before its peer has read them … */
export const MAX_LANE_AHEAD_BYTES: number = 2 * 1024 * 1024;
/** … which the peer reports after this many, bytes. */
const READ_STEP_BYTES: number = 256 * 1024;
type Callback = (error?: Error | null) => void;

/** The stream below a lane. */
export interface LaneCarrier
  extends Pick<EventEmitter, 'on'>,
    Pick<
      Stream,
      'inflight' | 'rtt' | 'bytesTransmitted' | 'bytesReceived' | 'packetsReceived' | 'write' | 'end' | 'destroy'
    > {
  /** Largest payload of a record, bytes. Default: `MAX_RECORD_PAYLOAD_BYTES`. */
  readonly maxPayloadBytes?: number;
  /** Missing if the lane must keep it alive, and notice its loss. */
  setKeepalive?(timeoutMs: number): void;
}

export type LaneRole = 'offered' | 'took';

/** Room for one lane. */
export interface LanePlace {
  readonly lane: (stream: LaneCarrier, keys: LaneKeys) => SealedLane;
  /** For a place without a lane. */
  readonly leave: () => void;
}

/** Opens lanes, and counts those of all kinds. */
export interface LaneRoom extends BulkStreams {
  /** Room for one lane, with any carrier. Null if there is none. */
  reserve(source: string, role: LaneRole, options: BulkOptions): LanePlace | null;
  /** Open lanes, and the bytes of all lanes so far. */
  stats(): { readonly lanes: number; readonly sent: number; readonly received: number };
}

interface BulkLaneOptions {
  readonly clock: Clock;
  readonly stream: LaneCarrier;
  readonly keys: LaneKeys;
  /** Counts received bytes that were not read. */
  readonly unread: Quota;
  /** The holder of the lane's share. */
  readonly holder: QuotaHolder;
  /** True if each side reports what it has read, so a slow reader slows the writer down. */
  readonly hasBackPressure: boolean;
}

export class SealedLane extends Duplex implements BulkStream {
  readonly #stream: LaneCarrier;
  readonly #sealer: RecordSealer;
  readonly #opener: RecordOpener;
  readonly #clock: Clock;
  readonly #unread: QuotaShare;
  readonly #hasBackPressure: boolean;
  /** Bytes of data in both directions, and the parts of them that the peer and we have reported as read. */
  #written = 0;
  #peerRead = 0;
  #got = 0;
  #reported = 0;
  /** The stream below has no room. */
  #isFull = false;
  readonly #met = Promise.withResolvers<void>();
  #looks: RepeatingTask | null = null;
  #pulses: RepeatingTask | null = null;
  #silence: SilenceWatch | null = null;
  #idle: SilenceWatch | null = null;
  #heard = 0;
  /** Each side has sent its end. */
  #weEnded = false;
  #theyEnded = false;
  #drained: Callback | null = null;
  #isClosed = false;
  #onClosed: (() => void) | null = null;

  constructor({ clock, stream, keys, unread, holder, hasBackPressure }: BulkLaneOptions) {
    super(STREAM_OPTIONS);
    this.#clock = clock;
    this.#stream = stream;
    this.#hasBackPressure = hasBackPressure;
    this.#unread = unread.share(holder, () => this.#lose());
    this.#sealer = new RecordSealer(keys.seal);
    this.#opener = new RecordOpener(keys.open);
    this.#met.promise.catch(() => {});
    // A lost lane must not end the process while there is no listener.
    this.on('error', () => {});
    stream.on('data', (chunk: Uint8Array) => this.#feed(chunk));
    stream.on('drain', () => {
      this.#isFull = false;
      this.#goOn();
    });
    stream.on('end', () => (this.#theyEnded ? undefined : this.#lose()));
    stream.on('error', (cause: unknown) => this.#lose(cause));
    stream.on('close', () => this.#closed());
  }

  /** Settles when a packet of the peer has arrived. Rejects if the lane is lost before. */
  get met(): Promise<void> {
    return this.#met.promise;
  }

  /** Bytes of packets in both directions since the lane was created. */
  get traffic(): { readonly sent: number; readonly received: number } {
    return { sent: this.#stream.bytesTransmitted, received: this.#stream.bytesReceived };
  }

  rtt(): number {
    return this.#stream.rtt;
  }

  received(): number {
    return this.#stream.bytesReceived;
  }

  /** Sends the hello. Call it when the stream is connected, before writing. */
  greet(): void {
    const isPulsed = this.#stream.setKeepalive === undefined;
    this.#stream.setKeepalive?.(KEEPALIVE_MS);
    this.#stream.write(this.#sealer.seal('hello'));
    this.#looks = every(this.#clock, { periodMs: LANE_LOOK_MS, onError: () => this.#lose() }, () => this.#look());
    if (isPulsed)
      this.#pulses = every(this.#clock, { periodMs: LANE_PULSE_MS, onError: () => this.#lose() }, () => this.#pulse());
    this.#idle = new SilenceWatch(this.#clock, isPulsed ? PULSED_IDLE_MS : LANE_IDLE_MS, () => this.#lose());
  }

  /** Frees a chunk that was read from this lane and is not needed. */
  release(chunk: Buffer): void {
    freeMemory(chunk);
  }

  /**
   * Without back-pressure the reader must read immediately. In both cases a quota limits the bytes that arrive before
   * it does.
   */
  override _read(): void {
    const read = this.#got - this.readableLength;
    if (!this.#hasBackPressure || read - this.#reported < READ_STEP_BYTES || this.destroyed || this.#theyEnded) return;
    this.#reported = read;
    const count = Buffer.alloc(READ_COUNT_BYTES);
    count.writeUIntBE(read, 0, READ_COUNT_BYTES);
    this.#isFull = !this.#stream.write(this.#sealer.seal('read', count));
  }

  /** Joins small chunks: each record costs more than its bytes. */
  override _writev(chunks: readonly { readonly chunk: Buffer }[], callback: Callback): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), callback);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    this.#send(chunk, callback);
  }

  #send(chunk: Buffer, callback: Callback): void {
    const { maxPayloadBytes = MAX_RECORD_PAYLOAD_BYTES } = this.#stream;
    for (let at = 0; at < chunk.length; at += maxPayloadBytes) {
      const record = this.#sealer.seal('data', chunk.subarray(at, at + maxPayloadBytes));
      this.#isFull = !this.#stream.write(record);
    }
    this.#written += chunk.length;
    this.#drained = callback;
    this.#goOn();
  }

  override _final(callback: Callback): void {
    this.#weEnded = true;
    this.#stream.write(this.#sealer.seal('end'));
    // A reset may still have to be sent before the peer's end.
    if (this.#theyEnded) this.#stream.end();
    callback();
  }

  /**
   * After both ends, data in transit still arrives before the lane closes. A lane that is destroyed before that sends a
   * reset, which a lost lane does not. After our own end, the reset says only that we stopped reading.
   */
  override _destroy(error: Error | null, callback: Callback): void {
    this.#met.reject(error ?? new StreamError('connection_lost'));
    this.#unread.set(0);
    const isWhole = this.writableFinished && this.#theyEnded;
    if (error === null && this.#idle !== null && !isWhole) {
      this.#stream.write(this.#sealer.seal('reset'));
      this.#stream.end();
    } else if (!isWhole) this.#stream.destroy();
    this.#settleWrite();
    if (this.#isClosed) callback(error);
    else this.#onClosed = () => callback(error);
  }

  /** Closes the lane immediately. Its user sees a lost lane. */
  abort(): void {
    this.#stream.destroy();
    this.#lose();
  }

  #closed(): void {
    this.#isClosed = true;
    this.#looks?.stop();
    this.#pulses?.stop();
    this.#silence?.stop();
    this.#idle?.stop();
    if (this.destroyed) this.#onClosed?.();
    else if (!this.writableFinished || !this.#theyEnded) this.#lose();
  }

  /** Accepts the next write if the stream and the peer's reader have room for it. */
  #goOn(): void {
    const isAhead = this.#hasBackPressure && this.#written - this.#peerRead >= MAX_LANE_AHEAD_BYTES;
    if (!this.#isFull && !isAhead) this.#settleWrite();
  }

  #settleWrite(): void {
    const drained = this.#drained;
    this.#drained = null;
    drained?.();
  }

  #lose(cause?: unknown): void {
    // The stream may wait until the peer receives its last records.
    if (this.destroyed) this.#stream.destroy();
    else this.destroy(new StreamError('connection_lost', cause));
  }

  #feed(chunk: Uint8Array): void {
    try {
      for (const record of this.#opener.feed(chunk)) this.#take(record);
    } catch (error) {
      this.#lose(error);
    }
  }

  #take({ kind, payload }: LaneRecord): void {
    if (this.destroyed) return;
    if (kind === 'reset') return this.#reset();
    if (kind === 'read') return this.#peerHasRead(payload);
    if (this.#theyEnded) return;
    this.#met.resolve();
    if (kind === 'end') {
      this.#theyEnded = true;
      if (this.#weEnded) this.#stream.end();
      this.push(null);
    } else if (kind === 'data' && payload.length > 0) {
      this.#got += payload.length;
      this.push(payload);
    }
    this.#countUnread();
  }

  #peerHasRead(payload: Buffer): void {
    const read = payload.length === READ_COUNT_BYTES ? payload.readUIntBE(0, READ_COUNT_BYTES) : -1;
    if (!this.#hasBackPressure || read < this.#peerRead || read > this.#written) return this.#lose();
    this.#peerRead = read;
    this.#goOn();
  }

  /** Bytes before a clean end are read first. */
  #reset(): void {
    const reset = (): void => void this.destroy(new StreamError('stream_reset'));
    if (!this.#theyEnded || this.readableEnded) reset();
    else if (!this.#weEnded) this.once('end', reset);
  }

  /** A lane is lost if its unread bytes exceed the quota. The connection continues over its link. */
  #countUnread(): void {
    if (!this.destroyed && !this.#unread.set(this.readableLength)) this.#lose();
  }

  #pulse(): void {
    if (!this.destroyed && !(this.#weEnded && this.#theyEnded)) this.#stream.write(this.#sealer.seal('hello'));
  }

  /** The peer acknowledges packets: without any response to packets in transit, the path is broken. */
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
