/**
 * One WebSocket of UDP over TLS, for both sides: batches datagrams, bounds the queueing delay, and detects a lost
 * connection (docs/protocol-tls.md, steps 5 and 6).
 *
 * The send buffer of the kernel holds megabytes, so a full buffer is noticed too late. Pings carry the count of bytes
 * written, and pongs acknowledge them. While the oldest ping is unanswered for longer than a round trip plus a margin,
 * bytes are queued somewhere, and datagrams are dropped. QUIC then slows down, as on any full path.
 */
import type { RawData } from 'ws';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import {
  type CarriedDatagram,
  decodeBatch,
  decodePing,
  encodeEntry,
  encodePing,
  MAX_TLS_MESSAGE_BYTES,
} from './wire.ts';

/** Options of `ws` for both sides. They bound what a remote side can make us keep. */
export const WEB_SOCKET_OPTIONS = {
  maxPayload: MAX_TLS_MESSAGE_BYTES,
  perMessageDeflate: false,
  maxFragments: 16,
  maxBufferedChunks: 1024,
  // Pacing sends a ping every few milliseconds, and stops when they remain unanswered.
  maxPendingAutoPongs: 256,
} as const;

/** Queueing delay beyond the minimum round trip from which datagrams are dropped, milliseconds. */
export const MAX_QUEUEING_MS = 100;
/** The round trip that is assumed until the first pong, milliseconds. */
const ASSUMED_RTT_MS = 250;
/** Largest number of bytes in the batch and in the memory of the socket. Further datagrams are dropped. */
export const MAX_UNSENT_BYTES: number = 256 * 1024;
/** While a ping is unanswered, the next one leaves after this many bytes … */
const PING_BYTES = 8 * 1024;
/** … and this time, milliseconds. */
const PING_MS = 5;
/** A ping leaves after this time without another one, milliseconds. */
export const KEEP_ALIVE_MS = 15_000;
/** The connection is lost if a ping is unanswered for this time, milliseconds. */
export const LOST_MS = 10_000;

/** The part of a WebSocket of `ws` that is used here. */
export interface DatagramWebSocket {
  readonly bufferedAmount: number;
  send(message: Uint8Array): void;
  ping(payload: Uint8Array): void;
  close(): void;
  terminate(): void;
  on(event: 'message', listener: (data: RawData, isBinary: boolean) => void): unknown;
  on(event: 'pong', listener: (payload: Buffer) => void): unknown;
  on(event: 'close' | 'error', listener: () => void): unknown;
  off(event: 'message', listener: (data: RawData, isBinary: boolean) => void): unknown;
  off(event: 'pong', listener: (payload: Buffer) => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

interface PacedSocketEvents {
  /** The entries of one message. Their datagrams are views of the message. */
  readonly onEntries: (entries: readonly CarriedDatagram[]) => void;
  /** Called once when the connection is closed, lost or broken by an invalid message. Not called after `close`. */
  readonly onEnd: () => void;
}

/** Datagrams since the start. */
export interface PacingUsage {
  readonly sent: number;
  /** Dropped because of the bounds on delay and memory. */
  readonly dropped: number;
  readonly received: number;
}

interface Ping {
  readonly written: number;
  readonly at: number;
  /** True if no other bytes of this side could delay it. */
  readonly isIdle: boolean;
}

export class PacedSocket {
  readonly #socket: DatagramWebSocket;
  readonly #events: PacedSocketEvents;
  readonly #clock: Clock;
  #batch: Buffer[] = [];
  #batchBytes = 0;
  #flush: NodeJS.Immediate | null = null;
  /** Bytes of messages written so far, and the count of the last ping. */
  #written = 0;
  #pinged = 0;
  #unanswered: Ping[] = [];
  #minRttMs: number | null = null;
  #pingedAt: number;
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #isEnded = false;
  readonly #usage = { sent: 0, dropped: 0, received: 0 };

  /**
   * Takes over an open WebSocket after the hellos.
   * @param socket created with `WEB_SOCKET_OPTIONS`
   */
  constructor(socket: DatagramWebSocket, events: PacedSocketEvents, { clock }: { readonly clock: Clock }) {
    this.#socket = socket;
    this.#events = events;
    this.#clock = clock;
    this.#pingedAt = clock.monotonic();
    socket.on('message', this.#onMessage);
    socket.on('pong', this.#onPong);
    socket.on('close', this.#onClose);
    socket.on('error', this.#onClose);
    // The first ping measures the round trip.
    this.#ping();
  }

  get usage(): PacingUsage {
    return this.#usage;
  }

  /** The shortest round trip of the connection, milliseconds; null before the first pong. */
  get minRttMs(): number | null {
    return this.#minRttMs;
  }

  /** True while the connection is open and within its bounds on delay and memory. */
  get maySend(): boolean {
    if (this.#isEnded || this.#batchBytes + this.#socket.bufferedAmount > MAX_UNSENT_BYTES) return false;
    const [oldest] = this.#unanswered;
    return (
      oldest === undefined ||
      this.#clock.monotonic() - oldest.at <= (this.#minRttMs ?? ASSUMED_RTT_MS) + MAX_QUEUEING_MS
    );
  }

  /**
   * Sends a datagram, together with all datagrams of this turn of the event loop. Returns false if it was dropped. Closing entries
   * are never dropped while the connection is open.
   * @throws as `encodeEntry`
   */
  send(entry: CarriedDatagram): boolean {
    if (this.#isEnded || (entry.remote !== null && !this.maySend)) {
      this.#usage.dropped++;
      return false;
    }
    const bytes = encodeEntry(entry);
    if (this.#batchBytes + bytes.length > MAX_TLS_MESSAGE_BYTES) this.#write();
    this.#batch.push(bytes);
    this.#batchBytes += bytes.length;
    this.#usage.sent++;
    this.#flush ??= setImmediate(() => this.#write());
    return true;
  }

  /** Sends what is batched, and closes the connection. A remote side that does not answer is cut off after a while. */
  close(): void {
    if (this.#isEnded) return;
    this.#write();
    this.#release();
    this.#socket.close();
  }

  /** Cuts the connection off. */
  terminate(): void {
    this.#release();
    this.#socket.terminate();
  }

  #write(): void {
    if (this.#flush !== null) clearImmediate(this.#flush);
    this.#flush = null;
    const [first] = this.#batch;
    if (first === undefined || this.#isEnded) return;
    const message = this.#batch.length === 1 ? first : Buffer.concat(this.#batch, this.#batchBytes);
    this.#batch = [];
    this.#batchBytes = 0;
    this.#socket.send(message);
    this.#written += message.length;
    const now = this.#clock.monotonic();
    const isLate = this.#written - this.#pinged >= PING_BYTES && now - this.#pingedAt >= PING_MS;
    if (this.#unanswered.length === 0 || isLate) this.#ping();
  }

  #ping(): void {
    const now = this.#clock.monotonic();
    const isIdle = this.#unanswered.length === 0 && this.#written - this.#pinged <= PING_BYTES;
    this.#pinged = this.#written;
    this.#pingedAt = now;
    this.#unanswered.push({ written: this.#written, at: now, isIdle });
    this.#socket.ping(encodePing(this.#written));
    this.#checkAt((this.#unanswered[0]?.at ?? now) + LOST_MS);
  }

  readonly #onPong = (payload: Buffer): void => {
    const written = decodePing(payload);
    // A pong that acknowledges what was never written is ignored, like an unsolicited one.
    if (written === null || !this.#unanswered.some((ping) => ping.written === written)) return;
    for (;;) {
      const [ping] = this.#unanswered;
      if (ping === undefined || ping.written > written) return;
      this.#unanswered.shift();
      if (ping.written === written) this.#measure(ping);
    }
  };

  #measure({ at, isIdle }: Ping): void {
    const rtt = Math.max(0, this.#clock.monotonic() - at);
    if (this.#minRttMs === null || rtt < this.#minRttMs) this.#minRttMs = rtt;
    // Follows a path that has become longer. Only a round trip without other bytes shows that.
    else if (isIdle) this.#minRttMs += (rtt - this.#minRttMs) / 2;
  }

  readonly #onMessage = (data: RawData, isBinary: boolean): void => {
    const entries = isBinary && Buffer.isBuffer(data) ? decodeBatch(data) : null;
    if (entries === null) {
      this.#end();
      return;
    }
    this.#usage.received += entries.length;
    this.#events.onEntries(entries);
  };

  readonly #onClose = (): void => this.#end();

  /** Plans the next check, unless an earlier one is planned. */
  #checkAt(time: number): void {
    if (time >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = time;
    this.#timer = this.#clock.after(Math.max(0, time - this.#clock.monotonic()), () => this.#check());
  }

  #check(): void {
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const [oldest] = this.#unanswered;
    const dueAt = oldest === undefined ? this.#pingedAt + KEEP_ALIVE_MS : oldest.at + LOST_MS;
    if (dueAt > this.#clock.monotonic()) this.#checkAt(dueAt);
    else if (oldest === undefined) this.#ping();
    else this.#end();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.terminate();
    this.#events.onEnd();
  }

  #release(): void {
    this.#isEnded = true;
    this.#timer?.cancel();
    if (this.#flush !== null) clearImmediate(this.#flush);
    this.#flush = null;
    this.#batch = [];
    this.#unanswered = [];
    this.#socket.off('message', this.#onMessage);
    this.#socket.off('pong', this.#onPong);
    this.#socket.off('close', this.#onClose);
    // The `error` listener stays: an error after the end has no consequence.
  }
}
