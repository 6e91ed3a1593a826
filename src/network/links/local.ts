/** Two ends of a stream inside one process, with the manners of a QUIC stream. */
import { Duplex } from 'node:stream';
import { STREAM_OPTIONS, StreamError } from '../transport/stream.ts';

type Callback = (error?: Error | null) => void;

class LocalStream extends Duplex {
  #peer: LocalStream | null = null;
  /** The peer's write that waits until we are read. */
  #blocked: Callback | null = null;
  #readEnded = false;
  #finished = false;

  /** @param peer the other end, where that was made before */
  constructor(peer?: LocalStream) {
    super(STREAM_OPTIONS);
    if (peer === undefined) return;
    this.#peer = peer;
    peer.#peer = this;
  }

  override _read(): void {
    this.#unblock();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    if (this.#peer === null || this.#peer.destroyed) return callback(new StreamError('stream_reset'));
    if (this.#peer.push(chunk)) callback();
    else this.#peer.#blocked = callback;
  }

  override _final(callback: Callback): void {
    this.#finished = true;
    if (this.#peer !== null && !this.#peer.destroyed) {
      this.#peer.#readEnded = true;
      this.#peer.push(null);
    }
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    const peer = this.#peer;
    this.#peer = null;
    // What was cut off here breaks there; what had ended in both directions has nothing left to break.
    if (peer !== null && !peer.destroyed && !(this.#finished && this.#readEnded))
      process.nextTick(() => peer.destroy(new StreamError('stream_reset')));
    callback(error);
    this.#unblock();
  }

  #unblock(): void {
    const written = this.#blocked;
    this.#blocked = null;
    written?.();
  }
}

/** A pair of connected streams: what is written to one is read from the other. */
export function localPair(): readonly [Duplex, Duplex] {
  const near = new LocalStream();
  return [near, new LocalStream(near)];
}
