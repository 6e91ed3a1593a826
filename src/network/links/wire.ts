/** Reading and writing the binary formats of streams: lengths are checked before anything is kept. */
import type { Duplex, Readable, Writable } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { ProtocolBreach, type ReplyStatus } from './status.ts';

/** How long a stream may linger after our last word until the other side has read it, milliseconds. */
export const LINGER_MS = 2_000;
/** The length before a message, bytes. */
export const LENGTH_BYTES = 4;
/** How much is read and thrown away behind the last word on a stream, bytes. */
const REFUSAL_DISCARD_BYTES = 64 * 1024;

/** Two bytes, most significant first. */
export function u16(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value & 0xff);
}

/** Four bytes, most significant first. */
export function u32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff);
}

/** Takes fields off the front of a frame. Each method throws RangeError where too little is left. */
export class BinaryReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  bytes(length: number): Uint8Array {
    if (this.#at + length > this.#bytes.length) throw new RangeError('the frame is cut short');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  u8(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new RangeError('the frame is cut short');
    this.#at++;
    return byte;
  }

  u32(): number {
    return this.u16() * 0x1_0000 + this.u16();
  }

  u16(): number {
    return this.u8() * 0x100 + this.u8();
  }

  /** Fails where bytes are left over: one meaning has one encoding. */
  end(): void {
    if (this.#at !== this.#bytes.length) throw new RangeError('the frame has bytes left over');
  }
}

/** What a broken stream means to who waited for its bytes. */
function broken(cause: unknown): SvcError {
  const reset = cause instanceof Error && 'code' in cause && cause.code === 'stream_reset';
  return reset
    ? new SvcError('protocol_error', { message: 'The other node reset the stream.', cause })
    : new SvcError('connect_failed', { message: 'The connection was lost.', cause });
}

/**
 * Reads exactly `length` bytes and leaves what follows in the stream, its end included.
 * @throws SvcError `protocol_error` where the stream ends or is reset before, `connect_failed`
 *   where the connection is lost, or the signal's reason
 */
export function readExactly(stream: Readable, length: number, signal: AbortSignal): Promise<Uint8Array> {
  if (length === 0) return Promise.resolve(new Uint8Array(0));
  if (signal.aborted) return Promise.reject(abortError(signal));
  if (stream.destroyed) return Promise.reject(broken(stream.errored ?? new Error('closed')));
  if (stream.readableEnded) return Promise.reject(endedEarly());
  const chunk: unknown = stream.readableLength >= length ? stream.read(length) : null;
  return chunk instanceof Uint8Array ? Promise.resolve(chunk) : awaitExactly(stream, length, signal);
}

function endedEarly(): ProtocolBreach {
  return new ProtocolBreach('The other node ended the stream too early.');
}

/** As `readExactly`, of a stream that does not hold as many bytes yet. */
function awaitExactly(stream: Readable, length: number, signal: AbortSignal): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const settle = (bytes: Uint8Array | null, error?: SvcError): void => {
      stop();
      signal.removeEventListener('abort', aborted);
      if (bytes === null) reject(error);
      else resolve(bytes);
    };
    const ended = (): void => settle(null, endedEarly());
    const failed = (error: Error): void => settle(null, broken(error));
    const closed = (): void => failed(stream.errored ?? new Error('closed'));
    const aborted = (): void => settle(null, abortError(signal));
    const attempt = (): void => {
      const chunk: unknown = stream.read(length);
      if (!(chunk instanceof Uint8Array)) return;
      // At its end a stream gives what it has, however little.
      if (chunk.length === length) settle(chunk);
      else ended();
    };
    const stop = listen(stream, { readable: attempt, end: ended, error: failed, close: closed });
    signal.addEventListener('abort', aborted, { once: true });
  });
}

/**
 * Reads a frame: its length in two bytes, then as many bytes.
 * @throws SvcError `protocol_error` where it is longer than `maxBytes`, and as `readExactly`
 */
export async function readFrame(stream: Readable, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const length = new BinaryReader(await readExactly(stream, 2, signal)).u16();
  if (length > maxBytes) throw new ProtocolBreach(`A header of ${length} bytes is too long.`);
  return readExactly(stream, length, signal);
}

/**
 * Waits until the other side has taken enough of what was written: whoever asks again and again and reads nothing
 * is answered no further.
 * @throws SvcError `connect_failed` where the stream closes before, or the signal's reason
 */
export async function drained(stream: Writable, signal: AbortSignal): Promise<void> {
  if (!stream.writableNeedDrain) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const closed = (): void => reject(broken(stream.errored));
  const stop = listen(stream, { drain: resolve, close: closed });
  try {
    await abortable(promise, signal);
  } finally {
    stop();
  }
}

/** Ends a stream once what was written has had time to arrive; what still comes is thrown away. */
export function lingerThenDestroy(stream: Duplex, clock: Clock): void {
  const timer = clock.after(LINGER_MS, () => stream.destroy());
  stream.once('close', () => timer.cancel());
}

/**
 * Says the last word on a stream that the other side opened, such as why it is refused, then lets go of it: at once
 * where the other side never stops talking.
 */
export function endWith(stream: Duplex, status: ReplyStatus, clock: Clock): void {
  if (stream.destroyed) return;
  let discarded = 0;
  lingerThenDestroy(stream, clock);
  stream.on('data', (chunk: Uint8Array) => {
    discarded += chunk.length;
    if (discarded > REFUSAL_DISCARD_BYTES) stream.destroy();
  });
  stream.end(Uint8Array.of(status));
}
