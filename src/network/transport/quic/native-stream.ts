/** A stream of the engine as a Node Duplex with back-pressure in both directions. */

import { freeMemory } from '../../../foundation/bytes.ts';
import type { EngineStream } from '../engine-connection.ts';
import { STREAM_OPTIONS, StreamError, WatchedStream } from '../stream.ts';
import type { BulkStream, Connection, Stream, WritePace } from '../types.ts';

/**
 * Size of the first read of the engine. The engine allocates the full size for each read, and a short result wastes the
 * rest until garbage collection: large reads of small messages would cost hundreds of megabytes.
 */
const MIN_READ_BYTES = 4 * 1024;

/** Largest read, after filled ones. */
const MAX_READ_BYTES = 256 * 1024;

/** A filled read grows by this factor. A read that got less than this part shrinks by the same factor. */
const READ_GROWTH = 4;

/** A chunk that fills less than this part of its memory is copied. */
const WELL_FILLED = 0.25;

/** Largest write to the engine. Smaller chunks are joined. */
const WRITE_BYTES = 256 * 1024;

/** The engine's errors for a reset and for "stop sending". All other errors mean that the connection was lost. */
const RESET_TEXT = /reset by peer|stopped by peer/;

/** Converts an error of a read or write of the engine. */
function streamError(cause: unknown): StreamError {
  const reset = cause instanceof Error && RESET_TEXT.test(cause.message);
  return new StreamError(reset ? 'stream_reset' : 'connection_lost', cause);
}

export class NativeStream extends WatchedStream implements Stream {
  readonly connection: Connection;
  readonly isUpgraded = false;
  readonly #native: EngineStream;
  /** Called once when the engine has released both halves. Until then the stream counts against the peer's limit. */
  readonly #released: () => void;
  #reading = false;
  /** The next read waits until the last chunk was processed. */
  #readIsDue = false;
  /** Reads of the engine, and their number at the last call of `hasStopped`. */
  #reads = 0;
  #readsSeen = -1;
  #readBytes = MIN_READ_BYTES;
  /** The end of the peer's half was read: there is nothing left to stop. */
  #readEnded = false;
  /** After the clean end of our half, a reset now could discard bytes that were sent. */
  #finished = false;
  #freed: Promise<void> = Promise.resolve();
  #pace: WritePace | null = null;
  /** It waits for the decision whether to continue on another stream. */
  #isMoving = false;
  /** The stream on which it continues. */
  #next: BulkStream | null = null;
  /** Our half on this stream ended early. The rest uses the next one. */
  #halfMoved = false;
  /** The reader has received the end. */
  #isAtEnd = false;

  constructor(native: EngineStream, connection: Connection, released: () => void) {
    super(STREAM_OPTIONS);
    this.#native = native;
    this.connection = connection;
    this.#released = released;
    // A reset by the peer must not end the process while there is no listener.
    this.on('error', () => {});
  }

  setPace(pace: WritePace): void {
    this.#pace = pace;
  }

  continueOn(next: Promise<BulkStream | null>): void {
    this.#isMoving = true;
    next.then(
      (stream) => this.#moved(stream),
      () => this.#moved(null),
    );
  }

  /** protocol-links.md, step 21 */
  #moved(next: BulkStream | null): void {
    this.#isMoving = false;
    if (next === null || this.destroyed) {
      next?.destroy();
      if (this.#readEnded) this.#endReading();
      return;
    }
    this.#next = next;
    // The peer may have used it already.
    if (next.destroyed) return void this.destroy(next.errored ?? new StreamError('connection_lost'));
    next.on('error', (error) => this.destroy(error));
    next.on('close', () => {
      if (!next.readableEnded || !next.writableFinished) this.destroy(new StreamError('connection_lost'));
    });
    next.on('end', () => this.#endReading());
    next.pause();
    if (this.#finished) next.end();
    if (this.#readEnded) this.#readNext(next);
  }

  #readNext(next: BulkStream): void {
    // The peer ended its half before the move, so nothing follows it.
    if (!this.#isAtEnd)
      next.on('data', (chunk: Buffer) => {
        if (!this.push(chunk)) next.pause();
      });
    next.resume();
  }

  #endReading(): void {
    if (this.#isAtEnd || this.destroyed) return;
    this.#isAtEnd = true;
    this.push(null);
  }

  override _read(): void {
    if (this.#next !== null && this.#readEnded) this.#next.resume();
    if (!this.#reading && !this.#readIsDue && !this.#readEnded) this.#readNative();
  }

  /** True if the reader is behind and has read nothing since the last call. */
  hasStopped(): boolean {
    const stopped = this.#readsSeen === this.#reads && !this.#reading && !this.#readIsDue && !this.#readEnded;
    this.#readsSeen = this.#reads;
    return stopped;
  }

  #readNative(): void {
    this.#reading = true;
    this.#reads++;
    this.#native.read(this.#readBytes).then(
      (chunk) => this.#received(chunk ?? null),
      (error: unknown) => this.destroy(streamError(error)),
    );
  }

  #received(chunk: Uint8Array | null): void {
    this.#reading = false;
    if (this.destroyed) return;
    if (chunk === null) {
      this.#readEnded = true;
      if (this.#next !== null) this.#readNext(this.#next);
      else if (!this.#isMoving) this.#endReading();
      return;
    }
    const { length } = chunk;
    const isFilled = length === this.#readBytes;
    const bytes = this.#fitted(chunk);
    if (isFilled) this.#readBytes = Math.min(length * READ_GROWTH, MAX_READ_BYTES);
    else if (length < this.#readBytes / READ_GROWTH && this.#readBytes > MIN_READ_BYTES) this.#readBytes /= READ_GROWTH;
    // While the consumer is behind, nothing is read, so the peer's flow-control window closes.
    const wantsMore = this.push(bytes);
    if (!wantsMore || this.#reading || this.destroyed) return;
    if (isFilled) return this.#readNative();
    // Reads again after the next poll of the sockets, or with the next write. A short chunk is usually all there is, and
    // another read of the engine takes longer than a local service needs to respond.
    this.#readIsDue = true;
    setImmediate(setImmediate, () => this.#readIfDue());
  }

  #readIfDue(): void {
    if (!this.#readIsDue) return;
    this.#readIsDue = false;
    if (!this.#reading && !this.destroyed) this.#readNative();
  }

  /** The chunk without unused memory: a peer that sends single bytes would otherwise cost 4 KiB for each. */
  #fitted(chunk: Uint8Array): Buffer {
    if (chunk.length >= WELL_FILLED * this.#readBytes)
      return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const copy = Buffer.from(chunk);
    freeMemory(chunk);
    return copy;
  }

  /** A single small chunk, the usual case, needs no batch. */
  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    // `node:http` ends each message with an empty write.
    if (chunk.length === 0) return callback();
    const sent = chunk.length > this.#writeBytes ? this.#send([{ chunk }]) : this.#sendOne(chunk);
    sent.then(() => callback(), callback);
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], callback: (error?: Error | null) => void): void {
    this.#send(chunks).then(() => callback(), callback);
  }

  /** Size of the largest write, bytes. */
  get #writeBytes(): number {
    return Math.min(this.#pace?.maxBytes ?? WRITE_BYTES, WRITE_BYTES);
  }

  /** Passes bytes on when the pace permits, and to the next stream once there is one. */
  async #sendOne(data: Buffer): Promise<void> {
    const turn = this.#next === null ? this.#pace?.before(data.length) : undefined;
    if (turn) await turn;
    if (this.#next === null) await this.#writeNative(data);
    else await this.#writeNext(this.#next, data);
  }

  async #writeNext(next: BulkStream, data: Buffer): Promise<void> {
    this.#moveHalf();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    next.write(data, (error) => (error ? reject(error) : resolve()));
    await promise;
  }

  /** Ends our half on this stream. */
  #moveHalf(): void {
    if (this.#halfMoved || this.#finished) return;
    this.#halfMoved = true;
    // Its failure ends the connection, and so this stream.
    this.#native.finishWrite().catch(() => {});
  }

  /** Sends buffers in order. Joins small ones and splits large ones, so that `destroy` takes effect soon. */
  async #send(chunks: readonly { readonly chunk: Buffer }[]): Promise<void> {
    let batch: Buffer[] = [];
    let size = 0;
    const flush = async (): Promise<void> => {
      const [first] = batch;
      const data = batch.length === 1 && first !== undefined ? first : Buffer.concat(batch, size);
      batch = [];
      size = 0;
      await this.#sendOne(data);
      if (data !== first) this.release(data);
    };
    for (const { chunk: buffer } of chunks) {
      for (let at = 0; at < buffer.length; ) {
        // The pace may change it between two pieces of one buffer.
        const most = this.#writeBytes;
        const piece = at === 0 && buffer.length <= most ? buffer : buffer.subarray(at, at + most);
        if (size > 0 && size + piece.length > most) await flush();
        batch.push(piece);
        size += piece.length;
        at += piece.length;
      }
    }
    if (size > 0) await flush();
  }

  async #writeNative(data: Buffer): Promise<void> {
    if (this.destroyed) return;
    const writing = this.#native.write(data);
    // The thread of the engine is awake for the write, so a read is cheap now.
    this.#readIfDue();
    try {
      await writing;
    } catch (error) {
      throw streamError(error);
    }
  }

  /** The engine allocates memory for each chunk that it reads, and has copied what it has written. */
  release(chunk: Buffer): void {
    freeMemory(chunk);
  }

  whenReleased(): Promise<void> {
    return this.#freed;
  }

  override _final(callback: (error?: Error | null) => void): void {
    if (this.#next !== null) {
      this.#moveHalf();
      this.#next.end(callback);
      return;
    }
    this.#finished = true;
    this.#native.finishWrite().then(
      () => callback(),
      (error: unknown) => callback(streamError(error)),
    );
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    // Both wait in the engine for the current call, so they are not awaited here.
    const halves: Promise<void>[] = [];
    const next = this.#next;
    if (next !== null && !(next.readableEnded && next.writableFinished)) next.destroy();
    if (!this.#finished && !this.#halfMoved) halves.push(this.#native.resetWrite());
    if (!this.#readEnded) halves.push(this.#native.stopRead());
    this.#freed = Promise.allSettled(halves).then(this.#released, this.#released);
    callback(error);
  }
}
