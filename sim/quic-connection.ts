/** A connection of the simulated QUIC engine: packets arrive once and in order, or the connection ends. */

import { base58 } from '@scure/base';
import type { Address } from '../src/foundation/address.ts';
import type { Clock, Timer } from '../src/foundation/clock.ts';
import type {
  EngineConnection,
  EngineConnectionStats,
  EngineStream,
} from '../src/network/transport/engine-connection.ts';
import { encodePacket, FRAME, type Frame, type FrameKind, type Packet } from './quic-wire.ts';

/** Multihash "identity" and protobuf of an Ed25519 key, as the engine writes them. */
const PEER_ID_HEADER = Uint8Array.of(0x00, 0x24, 0x08, 0x01, 0x12, 0x20);
/** Bytes of a stream in one packet. Larger than on the wire, which saves events. */
const SEGMENT_BYTES = 8 * 1024;
/** Packets that are sent before the first is acknowledged. */
const WINDOW_PACKETS = 64;
/** Packets that are sent again at a time. */
const RESENT_PACKETS = 16;
/** Milliseconds until a packet is acknowledged if no other one carries the acknowledgement. */
const ACK_DELAY_MS = 5;
const MIN_RESEND_MS = 100;
const MAX_RESEND_MS = 4000;
const FIRST_RTT_MS = 333;
const NO_BYTES = new Uint8Array();

export interface ConnectionConfig {
  readonly maxIdleTimeout: number;
  readonly keepAliveInterval: number;
  readonly maxConcurrentStreamLimit: number;
  readonly maxStreamData: number;
}

interface ConnectionParts {
  readonly id: string;
  readonly clock: Clock;
  readonly config: ConnectionConfig;
  readonly peer: Address;
  readonly peerKey: Uint8Array;
  /** Streams that the peer accepts at one time. */
  readonly peerStreams: number;
  /** True if this side dialed. */
  readonly isDialer: boolean;
  readonly send: (datagram: Uint8Array) => void;
  readonly onEnd: () => void;
}

type Settle<T> = { readonly resolve: (value: T) => void; readonly reject: (error: Error) => void };

export class SimulatedConnection implements EngineConnection {
  readonly #parts: ConnectionParts;
  readonly #closed = Promise.withResolvers<void>();
  readonly #streams = new Map<number, SimulatedStream>();
  readonly #incoming: SimulatedStream[] = [];
  readonly #accepts: Settle<EngineStream>[] = [];
  readonly #openers: Settle<EngineStream>[] = [];
  #opened = 0;
  #nextStream: number;
  #nextIncoming = 0;
  /** Frames without a packet, and packets that were not acknowledged, from number `#firstUnacknowledged`. */
  readonly #queue: Frame[] = [];
  readonly #unacknowledged: Frame[] = [];
  #firstUnacknowledged = 0;
  /** The number of the next packet from the peer, and later ones that have arrived. */
  #expected = 0;
  readonly #early = new Map<number, Frame>();
  #ackTimer: Timer | null = null;
  #resendTimer: Timer | null = null;
  #watch: Timer;
  #resends = 0;
  #heardAt: number;
  #sentAt = 0;
  #rttMs = FIRST_RTT_MS;
  #isEnded = false;
  readonly #stats = { sent: 0, sentBytes: 0, receivedBytes: 0, lost: 0 };

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#nextStream = parts.isDialer ? 0 : 1;
    this.#heardAt = parts.clock.now();
    this.#watch = this.#watchSilence();
    this.#closed.promise.catch(() => {});
  }

  get peer(): Address {
    return this.#parts.peer;
  }

  remoteMultiaddr(): string {
    const { peer, peerKey } = this.#parts;
    const id = base58.encode(Buffer.concat([PEER_ID_HEADER, peerKey]));
    return `/ip4/${peer.host}/udp/${peer.port}/quic-v1/p2p/${id}`;
  }

  rtt(): number {
    return this.#rttMs;
  }

  stats(): EngineConnectionStats {
    const { sent, sentBytes, receivedBytes, lost } = this.#stats;
    return {
      udpTxDatagrams: sent,
      udpTxBytes: sentBytes,
      udpRxBytes: receivedBytes,
      pathSentPackets: sent,
      pathLostPackets: lost,
    };
  }

  /** Tells the other side that its answer to the handshake has arrived. */
  confirm(): void {
    this.#enqueue({ kind: FRAME.ping, stream: 0, bytes: NO_BYTES, count: 0 });
  }

  closed(): Promise<void> {
    return this.#closed.promise;
  }

  abort(): void {
    if (this.#isEnded) return;
    this.#transmit({ type: 'close', id: this.#parts.id });
    this.#end();
  }

  inboundStream(): Promise<EngineStream> {
    const next = this.#incoming.shift();
    if (next !== undefined) return Promise.resolve(next);
    if (this.#isEnded) return Promise.reject(new Error('closed'));
    return new Promise((resolve, reject) => this.#accepts.push({ resolve, reject }));
  }

  outboundStream(): Promise<EngineStream> {
    if (this.#isEnded) return Promise.reject(new Error('closed'));
    if (this.#opened < this.#parts.peerStreams) return Promise.resolve(this.#open());
    return new Promise((resolve, reject) => this.#openers.push({ resolve, reject }));
  }

  #open(): SimulatedStream {
    this.#opened++;
    const number = this.#nextStream;
    this.#nextStream += 2;
    return this.#add(number, true);
  }

  #add(number: number, isOurs: boolean): SimulatedStream {
    const stream = new SimulatedStream({
      window: this.#parts.config.maxStreamData,
      send: (kind, bytes = NO_BYTES, count = 0) => this.#enqueue({ kind, stream: number, bytes, count }),
      onEnd: () => {
        this.#streams.delete(number);
        if (isOurs) this.#release();
      },
    });
    this.#streams.set(number, stream);
    return stream;
  }

  /** One more stream can be opened. */
  #release(): void {
    this.#opened--;
    if (!this.#isEnded) this.#openers.shift()?.resolve(this.#open());
  }

  #enqueue(frame: Frame): void {
    if (this.#isEnded) return;
    this.#queue.push(frame);
    this.#flush();
  }

  #flush(): void {
    while (this.#queue.length > 0 && this.#unacknowledged.length < WINDOW_PACKETS) {
      const frame = this.#queue.shift();
      if (frame === undefined) return;
      const nth = this.#firstUnacknowledged + this.#unacknowledged.push(frame) - 1;
      this.#sendFrame(nth, frame);
    }
  }

  #sendFrame(nth: number, frame: Frame): void {
    this.#ackTimer?.cancel();
    this.#ackTimer = null;
    this.#sentAt = this.#parts.clock.now();
    this.#transmit({ type: 'data', id: this.#parts.id, acknowledged: this.#expected, nth, frame });
    this.#resendTimer ??= this.#parts.clock.after(this.#resendMs(), () => this.#resend());
  }

  #resendMs(): number {
    const ms = Math.max(MIN_RESEND_MS, this.#rttMs * 2) * 2 ** this.#resends;
    return Math.min(MAX_RESEND_MS, ms);
  }

  #resend(): void {
    this.#resendTimer = null;
    if (this.#unacknowledged.length === 0) return;
    this.#resends++;
    this.#unacknowledged.slice(0, RESENT_PACKETS).forEach((frame, index) => {
      this.#stats.lost++;
      this.#sendFrame(this.#firstUnacknowledged + index, frame);
    });
  }

  #transmit(packet: Packet): void {
    const datagram = encodePacket(packet);
    this.#stats.sent++;
    this.#stats.sentBytes += datagram.length;
    this.#parts.send(datagram);
  }

  /** A packet of the peer has arrived. */
  receive(packet: Packet, bytes: number): void {
    if (this.#isEnded) return;
    this.#heardAt = this.#parts.clock.now();
    this.#stats.receivedBytes += bytes;
    if (packet.type === 'close') return this.#end();
    if (packet.type !== 'data' && packet.type !== 'ack') return;
    this.#acknowledge(packet.acknowledged);
    if (packet.type === 'data') this.#take(packet.nth, packet.frame);
  }

  #acknowledge(upTo: number): void {
    const count = upTo - this.#firstUnacknowledged;
    if (count <= 0 || count > this.#unacknowledged.length) return;
    if (this.#resends === 0) this.#rttMs += (this.#parts.clock.now() - this.#sentAt - this.#rttMs) / 8;
    this.#rttMs = Math.max(1, this.#rttMs);
    this.#resends = 0;
    this.#unacknowledged.splice(0, count);
    this.#firstUnacknowledged = upTo;
    this.#resendTimer?.cancel();
    this.#resendTimer = null;
    if (this.#unacknowledged.length > 0)
      this.#resendTimer = this.#parts.clock.after(this.#resendMs(), () => this.#resend());
    this.#flush();
  }

  #take(nth: number, frame: Frame): void {
    this.#ackTimer ??= this.#parts.clock.after(ACK_DELAY_MS, () => {
      this.#ackTimer = null;
      this.#transmit({ type: 'ack', id: this.#parts.id, acknowledged: this.#expected });
    });
    if (nth < this.#expected || nth >= this.#expected + 2 * WINDOW_PACKETS) return;
    this.#early.set(nth, frame);
    for (let next = this.#early.get(this.#expected); next !== undefined; next = this.#early.get(this.#expected)) {
      this.#early.delete(this.#expected);
      this.#expected++;
      this.#handle(next);
      if (this.#isEnded) return;
    }
  }

  #handle(frame: Frame): void {
    const isTheirs = frame.stream % 2 === (this.#parts.isDialer ? 1 : 0);
    if (frame.kind === FRAME.ping) return;
    let stream = this.#streams.get(frame.stream);
    const announces = frame.kind === FRAME.data || frame.kind === FRAME.end || frame.kind === FRAME.reset;
    if (stream === undefined && isTheirs && announces && frame.stream >= this.#nextIncoming) {
      this.#nextIncoming = frame.stream + 2;
      stream = this.#add(frame.stream, false);
      const accept = this.#accepts.shift();
      if (accept === undefined) this.#incoming.push(stream);
      else accept.resolve(stream);
    }
    stream?.receive(frame);
  }

  #watchSilence(): Timer {
    const { clock, config } = this.#parts;
    return clock.after(config.keepAliveInterval, () => {
      const silentMs = clock.now() - this.#heardAt;
      if (silentMs >= config.maxIdleTimeout) return this.#end();
      if (silentMs >= config.keepAliveInterval && this.#unacknowledged.length === 0)
        this.#enqueue({ kind: FRAME.ping, stream: 0, bytes: NO_BYTES, count: 0 });
      this.#watch = this.#watchSilence();
    });
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    for (const timer of [this.#ackTimer, this.#resendTimer, this.#watch]) timer?.cancel();
    const error = new Error('connection lost');
    for (const stream of this.#streams.values()) stream.lose(error);
    for (const { reject } of [...this.#accepts.splice(0), ...this.#openers.splice(0)]) reject(error);
    this.#closed.resolve();
    this.#parts.onEnd();
  }
}

interface StreamParts {
  /** Bytes that the writer may be ahead of the reader. */
  readonly window: number;
  readonly send: (kind: FrameKind, bytes?: Uint8Array, count?: number) => void;
  /** Called after the end of both directions. */
  readonly onEnd: () => void;
}

/** One call per direction at a time, as in the engine. */
class SimulatedStream implements EngineStream {
  readonly #parts: StreamParts;
  readonly #received: Uint8Array[] = [];
  #reader: (Settle<Uint8Array | null> & { readonly max: number }) | null = null;
  #reading: Promise<unknown> = Promise.resolve();
  #writing: Promise<unknown> = Promise.resolve();
  /** Called when the reader has read more, or will not. */
  #unblock: (() => void) | null = null;
  #ahead = 0;
  #readEnd: 'open' | 'ended' | 'over' = 'open';
  #readError: Error | null = null;
  #writeEnd: 'open' | 'over' = 'open';
  #writeError: Error | null = null;
  #isOver = false;

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  read(max: number): Promise<Uint8Array | null> {
    const result = new Promise<Uint8Array | null>((resolve, reject) => {
      this.#reader = { resolve, reject, max };
    });
    this.#reading = result.catch(() => {});
    this.#deliver();
    return result;
  }

  #deliver(): void {
    const reader = this.#reader;
    if (reader === null) return;
    const first = this.#received.shift();
    if (this.#readError !== null) {
      const error = this.#readError;
      this.#reader = null;
      // Reported once. Further reads look like a clean end.
      this.#readError = null;
      this.#readEnd = 'ended';
      this.#endRead();
      reader.reject(error);
    } else if (first !== undefined) {
      this.#reader = null;
      const chunk = first.subarray(0, reader.max);
      if (first.length > chunk.length) this.#received.unshift(first.subarray(reader.max));
      if (this.#readEnd === 'open') this.#parts.send(FRAME.read, undefined, chunk.length);
      reader.resolve(Uint8Array.from(chunk));
    } else if (this.#readEnd !== 'open') {
      this.#reader = null;
      this.#endRead();
      reader.resolve(null);
    }
  }

  write(data: Uint8Array): Promise<void> {
    const work = this.#write(data);
    this.#writing = work.catch(() => {});
    return work;
  }

  async #write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; ) {
      while (this.#writeError === null && this.#ahead >= this.#parts.window)
        await new Promise<void>((resume) => {
          this.#unblock = resume;
        });
      if (this.#writeError !== null) throw this.#writeError;
      const piece = Uint8Array.from(data.subarray(at, at + SEGMENT_BYTES));
      at += piece.length;
      this.#ahead += piece.length;
      this.#parts.send(FRAME.data, piece);
    }
    if (this.#writeError !== null) throw this.#writeError;
  }

  async finishWrite(): Promise<void> {
    if (this.#writeEnd === 'over') return;
    this.#parts.send(FRAME.end);
    this.#endWrite();
  }

  async resetWrite(): Promise<void> {
    await this.#writing;
    if (this.#writeEnd === 'over') return;
    this.#parts.send(FRAME.reset);
    this.#endWrite();
  }

  async stopRead(): Promise<void> {
    await this.#reading;
    if (this.#readEnd === 'over') return;
    this.#parts.send(FRAME.stop);
    this.#received.splice(0);
    this.#endRead();
  }

  receive({ kind, bytes, count }: Frame): void {
    if (kind === FRAME.data && this.#readEnd === 'open') this.#received.push(bytes);
    else if (kind === FRAME.end && this.#readEnd === 'open') this.#readEnd = 'ended';
    else if (kind === FRAME.reset && this.#readEnd === 'open') {
      this.#received.splice(0);
      this.#readError = new Error('reset by peer');
    } else if (kind === FRAME.stop) this.#stopWriting(new Error('stopped by peer'));
    else if (kind === FRAME.read) {
      this.#ahead -= count;
      this.#resume();
    }
    this.#deliver();
  }

  #stopWriting(error: Error): void {
    this.#writeError ??= error;
    this.#resume();
  }

  #resume(): void {
    const unblock = this.#unblock;
    this.#unblock = null;
    unblock?.();
  }

  lose(error: Error): void {
    this.#stopWriting(error);
    if (this.#readEnd === 'open') this.#readError = error;
    this.#deliver();
  }

  #endRead(): void {
    this.#readEnd = 'over';
    this.#endIfOver();
  }

  #endWrite(): void {
    this.#writeEnd = 'over';
    this.#endIfOver();
  }

  #endIfOver(): void {
    if (this.#isOver || this.#readEnd !== 'over' || this.#writeEnd !== 'over') return;
    this.#isOver = true;
    this.#parts.onEnd();
  }
}
