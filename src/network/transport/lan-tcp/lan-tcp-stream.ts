/** One stream on a channel between neighbours: what `Stream` promises, over a TCP connection. */
import type { Duplex } from 'node:stream';
import { freeMemory } from '../../../foundation/bytes.ts';
import { StreamError } from '../stream-error.ts';
import { STREAM_OPTIONS } from '../stream-options.ts';
import type { Connection, Stream } from '../types.ts';
import { WatchedStream } from '../watched-stream.ts';

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
