/**
 * A TCP connection between two neighbours that carries one stream after the other: each begins with its first bytes
 * and is over when both sides have ended it.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { freeMemory } from '../../../foundation/bytes.ts';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { MAX_RECORD_PAYLOAD_BYTES, type RecordKind } from '../sealed-records.ts';
import { STREAM_OPTIONS, StreamError, WatchedStream } from '../stream.ts';
import type { Connection, Stream, UpgradeState } from '../types.ts';
import type { ConnectionSeals } from './greeting.ts';

/* One stream on a channel between neighbours: what `Stream` promises, over a TCP connection. */

type Callback = (error?: Error | null) => void;

/** What a stream needs of the channel under it. */
export interface StreamCarrier {
  /** Sends bytes; false where the rest should wait until `LanTcpStream.drained`. */
  send(bytes: Buffer): boolean;
  /** Says that no byte follows. */
  sendEnd(): void;
  /** Gives what is under way up, both ways. */
  sendReset(): void;
  /** Has what `work` sends go out in one piece: each piece wakes the other side. */
  together(work: () => void): void;
  /** Lets what comes wait in the TCP connection, or no longer. */
  hold(isHeld: boolean): void;
  /** Nobody reads any more though the other side has not ended. */
  abandon(): void;
}

export class LanTcpStream extends WatchedStream implements Stream {
  readonly connection: Connection;
  readonly isUpgraded = true;
  readonly #carrying: StreamCarrier;
  #saidEnd = false;
  #gotEnd = false;
  #isHeld = false;
  /** The other side reads no more. */
  #isUnread = false;
  #waiting: Callback | null = null;

  constructor(connection: Connection, carrying: StreamCarrier) {
    super(STREAM_OPTIONS);
    this.connection = connection;
    this.#carrying = carrying;
    // The other side's reset must not end the process where a consumer has no listener yet.
    this.on('error', () => {});
  }

  /** Bytes have come. */
  received(bytes: Buffer): void {
    if (this.destroyed || this.push(bytes) || this.#isHeld) return;
    this.#isHeld = true;
    this.#carrying.hold(true);
  }

  /** The other side has ended its half. */
  ended(): void {
    this.#gotEnd = true;
    this.push(null);
  }

  /** The other side has given it up: at once, or when what it had ended before has been read. */
  wasReset(): void {
    this.#saidEnd = true;
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

  /** The connection is gone. */
  lost(cause?: unknown): void {
    this.#gotEnd = true;
    this.#saidEnd = true;
    this.destroy(new StreamError('connection_lost', cause));
  }

  /** There is room for more. */
  drained(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.();
  }

  /** Frees a chunk that was read from here, or written here to the end. */
  release(chunk: Buffer): void {
    freeMemory(chunk);
  }

  override _read(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#carrying.hold(false);
  }

  override end(...last: readonly unknown[]): this {
    // The last bytes and the end behind them.
    this.#carrying.together(() => super.end.apply(this, last as Parameters<Duplex['end']>));
    return this;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    if (this.#isUnread) callback(new StreamError('stream_reset'));
    else if (this.#carrying.send(chunk)) callback();
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
    this.#saidEnd = true;
    this.#carrying.sendEnd();
    callback();
  }

  override _destroy(error: Error | null, callback: Callback): void {
    if (!this.#saidEnd) this.#carrying.sendReset();
    else if (!this.#gotEnd) this.#carrying.abandon();
    if (this.#isHeld) this.#carrying.hold(false);
    this.drained();
    callback(error);
  }
}

/** How much of a stream that nobody reads any more is thrown away before it is given up, bytes … */
const DISCARD_BYTES: number = 64 * 1024;
/** … and for how long, milliseconds. */
const CLOSING_MS = 2_000;

/** A quiet TCP connection is kept up so often, milliseconds. */
const QUIET_MS = 20_000;

interface NearChannelOptions {
  readonly clock: Clock;
  /** The connection between the two nodes that the keys come from. */
  readonly connection: Connection;
  readonly socket: Socket;
  readonly seals: ConnectionSeals;
  readonly state: UpgradeState;
  /** A stream that the other side begins; null where only this side does. */
  readonly onStream: ((stream: LanTcpStream) => void) | null;
  /** The other side has given the sign of life that it was asked for; null where this side gives them. */
  readonly onPulse: (() => void) | null;
  /** No stream is under way any more. */
  readonly onIdle: () => void;
  readonly onClosed: () => void;
}

export class LanTcpConnection {
  readonly #options: NearChannelOptions;
  #stream: LanTcpStream | null = null;
  #saidEnd = false;
  #gotEnd = false;
  /** Null where what comes is for somebody. */
  #discarded: number | null = null;
  /** The present stream is not the first. */
  #isReused = false;
  /** Something has come on the present stream. */
  #hasHeard = false;
  #linger: Timer | null = null;
  #isClosed = false;
  #isClosing = false;

  constructor(options: NearChannelOptions) {
    this.#options = options;
    const { socket } = options;
    // What stands between two private networks may forget a connection that is quiet for minutes.
    socket.setKeepAlive(true, QUIET_MS);
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('drain', () => this.#stream?.drained());
    socket.on('end', () => this.#lose());
    socket.on('error', (error) => this.#lose(error));
    socket.on('close', () => this.#lose());
  }

  /** Begins a stream; only where none is under way. */
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
    this.#saidEnd = false;
    this.#gotEnd = false;
    this.#discarded = null;
    this.#hasHeard = false;
    return stream;
  }

  /** Asks the other side for a sign of life; only where no stream is under way. */
  pulse(): void {
    this.#write('hello');
  }

  /** Ends it at once, and what is under way is lost. */
  close(): void {
    this.#lose();
  }

  /** Ends it once what was sent has gone; only where no stream is under way. */
  retire(): void {
    if (this.#isClosed || this.#isClosing) return;
    this.#isClosing = true;
    this.#options.socket.end();
    this.#startLinger(() => this.#destroy());
  }

  /** Takes what came right behind the greeting. */
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
    this.#saidEnd = true;
    this.#write('end');
    this.#checkOver();
  }

  /** Both sides close a channel on which a stream was given up: what is under way on it is of no more use. */
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

  /** Bytes that were ended cleanly wait for their reader, however long it takes. */
  #destroy(): void {
    const { socket } = this.#options;
    if (this.#saidEnd && socket.writableLength > 0) this.#startLinger(() => this.#destroy());
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
    // Until the other side has read why: a TCP connection that is destroyed with bytes unread may take that back.
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
    // Who asks on and on and reads no answer is not answered.
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
      // Its first bytes are there when it is handed on.
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
    // It may be meant for the stream before, of which the other side had not read all: this one is as good as unheard of.
    if (this.#isReused && !this.#hasHeard && !this.#gotEnd) return this.#lose();
    const stream = this.#stream;
    this.#stream = null;
    this.#isClosing = true;
    stream?.wasReset();
    this.#options.socket.destroy();
  }

  #checkOver(): void {
    if (!this.#saidEnd || !this.#gotEnd) return;
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
