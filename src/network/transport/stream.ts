/** The base class, options and errors of the streams of all adapters. */
import { Duplex } from 'node:stream';

/** Bytes that each half of a stream buffers in JavaScript before back-pressure. */
export const STREAM_BUFFER_BYTES: number = 256 * 1024;

/** Options of Node streams whose halves end separately. */
export const STREAM_OPTIONS = {
  allowHalfOpen: true,
  readableHighWaterMark: STREAM_BUFFER_BYTES,
  writableHighWaterMark: STREAM_BUFFER_BYTES,
} as const;

const MESSAGES = {
  stream_reset: 'The other side reset the stream.',
  connection_lost: 'The connection of the stream was lost.',
} as const;
type StreamErrorCode = keyof typeof MESSAGES;

/** The error of a stream that did not end cleanly: the peer reset it, or the connection was lost. */
export class StreamError extends Error {
  readonly code: StreamErrorCode;

  constructor(code: StreamErrorCode, cause?: unknown) {
    super(MESSAGES[code], cause === undefined ? undefined : { cause });
    this.name = 'StreamError';
    this.code = code;
  }
}

type Callback = (error?: Error | null) => void;

/** Receives changes of the bytes queued in a stream, and can limit them. */
export interface QueueWatch {
  /** The queue length at which the writer must wait, bytes. Called before each write. */
  buffer(): number;
  /** Bytes were written. */
  added(): void;
  /** Written bytes were sent. */
  taken(): void;
}

/** A stream that reports its queued bytes and can limit them below Node's high-water mark. */
export abstract class WatchedStream extends Duplex {
  #watch: QueueWatch | null = null;
  /** The writer waits for `drain`, though Node's own limit is not reached. */
  #owesDrain = false;

  static {
    // In Node it is a getter. The type declarations call it a field, so TypeScript does not allow an override.
    Object.defineProperty(this.prototype, 'writableNeedDrain', {
      configurable: true,
      get(this: WatchedStream): boolean {
        const ofNode: unknown = Reflect.get(Duplex.prototype, 'writableNeedDrain', this);
        return this.#owesDrain || ofNode === true;
      },
    });
  }

  /** Sets the watch of the queue. */
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
