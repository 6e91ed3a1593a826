/** A stream that says how many of its written bytes the other side has not taken, and that can be told to queue fewer. */
import { Duplex } from 'node:stream';

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
