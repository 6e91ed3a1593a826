import { Duplex } from 'node:stream';

/** Options that the streams of all adapters share. */

/** Bytes that each half of a stream buffers in JavaScript before back-pressure. */
export const STREAM_BUFFER_BYTES: number = 256 * 1024;

/** Node stream options. The two halves end separately. */
export const STREAM_OPTIONS = {
  allowHalfOpen: true,
  readableHighWaterMark: STREAM_BUFFER_BYTES,
  writableHighWaterMark: STREAM_BUFFER_BYTES,
} as const;

/** Why a stream broke: the other side reset it, or the whole connection went away. */
const MESSAGES = {
  stream_reset: 'The other side reset the stream.',
  connection_lost: 'The connection under the stream has ended.',
} as const;
type StreamErrorCode = keyof typeof MESSAGES;

/** The error that a broken stream is destroyed with. A clean end never carries one. */
export class StreamError extends Error {
  readonly code: StreamErrorCode;

  constructor(code: StreamErrorCode, cause?: unknown) {
    super(MESSAGES[code], cause === undefined ? undefined : { cause });
    this.name = 'StreamError';
    this.code = code;
  }
}

/** The engine's texts for a reset and for "stop sending"; every other failure is the connection's. */
const RESET_TEXT = /reset by peer|stopped by peer/;

/** Translates a failed read or write of the engine. */
export function streamError(cause: unknown): StreamError {
  const reset = cause instanceof Error && RESET_TEXT.test(cause.message);
  return new StreamError(reset ? 'stream_reset' : 'connection_lost', cause);
}

/* A stream that says how many of its written bytes the other side has not taken, and that can be told to queue fewer. */

type Callback = (error?: Error | null) => void;

/** Hears of the bytes that are queued in a stream. */
export interface QueueWatch {
  /** Bytes from which on the stream holds its writer back; asked before each write. */
  buffer(): number;
  /** Bytes were written. */
  added(): void;
  /** Bytes were taken. */
  taken(): void;
}

export abstract class WatchedStream extends Duplex {
  #watch: QueueWatch | null = null;
  /** The writer was held back before Node would have done it, so it waits for a `drain` of ours. */
  #owesDrain = false;

  static {
    // The types call it a field, which no getter may override; it is a getter of Node's.
    Object.defineProperty(this.prototype, 'writableNeedDrain', {
      configurable: true,
      get(this: WatchedStream): boolean {
        const ofNode: unknown = Reflect.get(Duplex.prototype, 'writableNeedDrain', this);
        return this.#owesDrain || ofNode === true;
      },
    });
  }

  /** Names who hears of what is queued from now on. */
  watchQueue(watch: QueueWatch): void {
    this.#watch = watch;
  }

  override write(chunk: unknown, encoding?: BufferEncoding | Callback | null, callback?: Callback): boolean {
    const [coding, done] = typeof encoding === 'function' ? [undefined, encoding] : [encoding ?? undefined, callback];
    const watch = this.#watch;
    if (watch === null) return super.write(chunk, coding ?? 'utf8', done);
    const buffer = watch.buffer();
    const wantsMore = super.write(chunk, coding ?? 'utf8', (error) => {
      done?.(error);
      watch.taken();
      this.#drain();
    });
    watch.added();
    this.#owesDrain = wantsMore && this.writableLength >= buffer;
    return wantsMore && !this.#owesDrain;
  }

  #drain(): void {
    if (!this.#owesDrain || this.writableLength > 0 || this.destroyed || this.writableEnded) return;
    this.#owesDrain = false;
    this.emit('drain');
  }
}
