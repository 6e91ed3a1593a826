/**
 * A TCP connection between two LAN peers that carries one stream at a time. A stream starts with its first bytes and finishes with the ends of both sides.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { freeMemory } from '../../../foundation/bytes.ts';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { MAX_RECORD_PAYLOAD_BYTES, type RecordKind } from '../sealed-records.ts';
import { STREAM_OPTIONS, StreamError, WatchedStream } from '../stream.ts';
import type { Connection, Stream, UpgradeState } from '../types.ts';
import type { ConnectionSeals } from './greeting.ts';

/* A stream over a TCP connection between LAN peers. */

type Callback = (error?: Error | null) => void;

/** The functions of the connection that a stream uses. */
export interface StreamCarrier {
  /** Sends bytes. False if the writer should wait for `LanTcpStream.drained`. */
  send(bytes: Buffer): boolean;
  /** Sends the end of the stream. */
  sendEnd(): void;
  /** Aborts both directions. */
  sendReset(): void;
  /** Sends everything that `work` writes in one piece: each piece wakes the peer. */
  together(work: () => void): void;
  /** Stops or continues reading from the TCP connection. */
  hold(isHeld: boolean): void;
  /** The reader has stopped before the peer's end. */
  abandon(): void;
}

export class LanTcpStream extends WatchedStream implements Stream {
  readonly connection: Connection;
  readonly isUpgraded = true;
  readonly #carrying: StreamCarrier;
  #endSent = false;
  #gotEnd = false;
  #isHeld = false;
  /** The peer has stopped reading. */
  #isUnread = false;
  #waiting: Callback | null = null;

  constructor(connection: Connection, carrying: StreamCarrier) {
    super(STREAM_OPTIONS);
    this.connection = connection;
    this.#carrying = carrying;
    // A reset by the peer must not end the process while there is no listener.
    this.on('error', () => {});
  }

  /** Bytes have arrived. */
  received(bytes: Buffer): void {
    if (this.destroyed || this.push(bytes) || this.#isHeld) return;
    this.#isHeld = true;
    this.#carrying.hold(true);
  }

  /** The end of the peer's half has arrived. */
  ended(): void {
    this.#gotEnd = true;
    this.push(null);
  }

  /** The peer has reset the stream. Bytes before a clean end are read first. */
  wasReset(): void {
    this.#endSent = true;
    if (!this.#gotEnd || this.readableEnded) {
      this.#gotEnd = true;
      this.destroy(new StreamError('stream_reset'));
      return;
    }
    this.#isUnread = true;
    this.once('end', () => {
      if (!this.writableFinished) this.destroy(new StreamError('stream_reset'));
    });
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.(new StreamError('stream_reset'));
  }

  /** The connection was lost. */
  lost(cause?: unknown): void {
    this.#gotEnd = true;
    this.#endSent = true;
    this.destroy(new StreamError('connection_lost', cause));
  }

  /** The writer can continue. */
  drained(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.();
  }

  /** Frees a chunk that was read from this stream or that it has finished writing. */
  release(chunk: Buffer): void {
    freeMemory(chunk);
  }

  override _read(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#carrying.hold(false);
  }

  override end(...last: readonly unknown[]): this {
    // The last bytes together with the end.
    this.#carrying.together(() => super.end.apply(this, last as Parameters<Duplex['end']>));
    return this;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    if (this.#isUnread) callback(new StreamError('stream_reset'));
    // `node:http` ends each message with an empty write.
    else if (chunk.length === 0 || this.#carrying.send(chunk)) callback();
    else this.#waiting = callback;
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], callback: Callback): void {
    if (this.#isUnread) return callback(new StreamError('stream_reset'));
    const whole = Buffer.concat(chunks.map(({ chunk }) => chunk));
    const hasRoom = this.#carrying.send(whole);
    freeMemory(whole);
    if (hasRoom) callback();
    else this.#waiting = callback;
  }

  override _final(callback: Callback): void {
    this.#endSent = true;
    this.#carrying.sendEnd();
    callback();
  }

  override _destroy(error: Error | null, callback: Callback): void {
    if (!this.#endSent) this.#carrying.sendReset();
    else if (!this.#gotEnd) this.#carrying.abandon();
    if (this.#isHeld) this.#carrying.hold(false);
    this.drained();
    callback(error);
  }
}

/** Bytes of a stream without a reader that are discarded before the connection is closed … */
const DISCARD_BYTES: number = 64 * 1024;
/** … and the time limit for that, milliseconds. */
const CLOSING_MS = 2_000;

/** Interval of TCP keepalives, milliseconds. */
const QUIET_MS = 20_000;

interface NearChannelOptions {
  readonly clock: Clock;
  /** The QUIC connection of the agreement. */
  readonly connection: Connection;
  readonly socket: Socket;
  readonly seals: ConnectionSeals;
  readonly state: UpgradeState;
  /** Receives streams that the peer opens. Null on the dialing side. */
  readonly onStream: ((stream: LanTcpStream) => void) | null;
  /** The peer has answered a pulse. Null on the accepting side. */
  readonly onPulse: (() => void) | null;
  /** No stream is open. */
  readonly onIdle: () => void;
  readonly onClosed: () => void;
}

export class LanTcpConnection {
  readonly #options: NearChannelOptions;
  #stream: LanTcpStream | null = null;
  #endSent = false;
  #gotEnd = false;
  /** Null while a stream receives the bytes. */
  #discarded: number | null = null;
  /** The current stream is not the first one. */
  #isReused = false;
  /** Bytes have arrived on the current stream. */
  #hasHeard = false;
  #linger: Timer | null = null;
  #isClosed = false;
  #isClosing = false;

  constructor(options: NearChannelOptions) {
    this.#options = options;
    const { socket } = options;
    // A middlebox between two private networks may drop a connection that is idle for minutes.
    socket.setKeepAlive(true, QUIET_MS);
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('drain', () => this.#stream?.drained());
    socket.on('end', () => this.#lose());
    socket.on('error', (error) => this.#lose(error));
    socket.on('close', () => this.#lose());
  }

  /** Opens a stream. Only while no stream is open. */
  begin(): LanTcpStream {
    // protocol-lan.md, step 7
    const stream = new LanTcpStream(this.#options.connection, {
      send: (bytes) => this.#send(stream, bytes),
      sendEnd: () => this.#end(stream),
      sendReset: () => this.#reset(stream),
      together: (work) => this.#together(work),
      hold: (isHeld) => this.#hold(stream, isHeld),
      abandon: () => this.#abandon(stream),
    });
    this.#stream = stream;
    this.#endSent = false;
    this.#gotEnd = false;
    this.#discarded = null;
    this.#hasHeard = false;
    return stream;
  }

  /** Requests a pulse from the peer. Only while no stream is open. */
  pulse(): void {
    this.#write('hello');
  }

  /** Closes the connection immediately. Data in transit is lost. */
  close(): void {
    this.#lose();
  }

  /** Closes the connection after everything was sent. Only while no stream is open. */
  retire(): void {
    if (this.#isClosed || this.#isClosing) return;
    this.#isClosing = true;
    this.#options.socket.end();
    this.#startLinger(() => this.#destroy());
  }

  /** Passes in the bytes that arrived with the greeting. */
  feed(chunk: Buffer): void {
    this.#take(chunk);
  }

  #send(stream: LanTcpStream, bytes: Buffer): boolean {
    if (this.#stream !== stream || this.#isClosing) return true;
    const { socket, seals, state } = this.#options;
    let hasRoom = true;
    for (let at = 0; at < bytes.length; at += MAX_RECORD_PAYLOAD_BYTES) {
      const piece =
        bytes.length <= MAX_RECORD_PAYLOAD_BYTES ? bytes : bytes.subarray(at, at + MAX_RECORD_PAYLOAD_BYTES);
      const record = seals.sealer.seal('data', piece);
      state.sent += record.length;
      hasRoom = socket.write(record);
    }
    return hasRoom;
  }

  #together(work: () => void): void {
    const { socket } = this.#options;
    socket.cork();
    try {
      work();
    } finally {
      socket.uncork();
    }
  }

  #end(stream: LanTcpStream): void {
    // protocol-lan.md, step 8
    if (this.#stream !== stream || this.#isClosing) return;
    this.#endSent = true;
    this.#write('end');
    this.#checkOver();
  }

  /** After a reset, both sides close the connection: its remaining bytes are useless. */
  #reset(stream: LanTcpStream): void {
    // protocol-lan.md, step 9
    if (this.#stream !== stream || this.#isClosing) return;
    this.#stream = null;
    this.#isClosing = true;
    this.#write('reset');
    this.#options.socket.end();
    this.#startLinger(() => this.#destroy());
    this.#options.socket.resume();
  }

  /** Cleanly ended bytes are kept for their reader without a time limit. */
  #destroy(): void {
    const { socket } = this.#options;
    if (this.#endSent && socket.writableLength > 0) this.#startLinger(() => this.#destroy());
    else socket.destroy();
  }

  #abandon(stream: LanTcpStream): void {
    // protocol-lan.md, step 10
    if (this.#stream !== stream || this.#isClosing) return;
    this.#discarded = 0;
    this.#startLinger(() => this.#reset(stream));
    this.#options.socket.resume();
  }

  #startLinger(late: () => void): void {
    this.#linger?.cancel();
    this.#linger = this.#options.clock.after(CLOSING_MS, late);
  }

  #hold(stream: LanTcpStream, isHeld: boolean): void {
    if (this.#stream !== stream) return;
    if (isHeld) this.#options.socket.pause();
    else this.#options.socket.resume();
  }

  #write(kind: RecordKind): void {
    const record = this.#options.seals.sealer.seal(kind);
    this.#options.state.sent += record.length;
    this.#options.socket.write(record);
  }

  #take(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#options.state.received += chunk.length;
    // Keep reading until the peer has read the reason: destroying a TCP connection with unread bytes can discard sent
    // ones.
    if (this.#isClosing) return freeMemory(chunk);
    try {
      for (const { kind, payload } of this.#options.seals.opener.feed(chunk)) {
        if (this.#isClosed || this.#isClosing) break;
        if (kind === 'data') this.#data(payload);
        else if (kind === 'end') this.#ended();
        else if (kind === 'hello') this.#pulsed();
        else return this.#wasReset();
      }
    } catch (error) {
      return this.#lose(error);
    }
    freeMemory(chunk);
  }

  #pulsed(): void {
    const { onPulse, socket } = this.#options;
    if (onPulse !== null) return onPulse();
    // A peer that sends pulses and does not read the answers loses the connection.
    if (this.#stream !== null || socket.writableNeedDrain) return this.#lose();
    this.#write('hello');
  }

  #data(payload: Buffer): void {
    const { onStream } = this.#options;
    if (payload.length === 0) return this.#lose();
    if (this.#stream === null) {
      if (onStream === null) return this.#lose();
      const stream = this.begin();
      this.#hasHeard = true;
      // The first bytes are readable when the handler receives the stream.
      stream.received(payload);
      return onStream(stream);
    }
    if (this.#gotEnd) return this.#lose();
    this.#hasHeard = true;
    if (this.#discarded === null) this.#stream.received(payload);
    else this.#discard(payload.length);
  }

  #discard(bytes: number): void {
    this.#discarded = (this.#discarded ?? 0) + bytes;
    if (this.#discarded > DISCARD_BYTES && this.#stream !== null) this.#reset(this.#stream);
  }

  #ended(): void {
    if (this.#stream === null || this.#gotEnd) return this.#lose();
    this.#gotEnd = true;
    if (this.#discarded === null) this.#stream.ended();
    this.#checkOver();
  }

  #wasReset(): void {
    // The reset may be for the previous stream, which the peer had not read completely. The current one has not been
    // seen by the peer.
    if (this.#isReused && !this.#hasHeard && !this.#gotEnd) return this.#lose();
    const stream = this.#stream;
    this.#stream = null;
    this.#isClosing = true;
    stream?.wasReset();
    this.#options.socket.destroy();
  }

  #checkOver(): void {
    if (!this.#endSent || !this.#gotEnd) return;
    this.#isReused = true;
    this.#stream = null;
    this.#linger?.cancel();
    this.#linger = null;
    this.#options.socket.resume();
    this.#options.onIdle();
  }

  #lose(cause?: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#linger?.cancel();
    const stream = this.#stream;
    this.#stream = null;
    this.#options.socket.destroy();
    this.#options.onClosed();
    stream?.lost(cause);
  }
}
