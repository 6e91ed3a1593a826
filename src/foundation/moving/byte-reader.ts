/** Reads bytes that come in pieces of any size. */

/** Bytes in order: a file, a stream, another generator. */
export type ByteSource = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

const LINE_BREAK = 0x0a;

export class ByteReader {
  readonly #pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  #waiting: Buffer[] = [];
  #size = 0;
  #ended = false;

  constructor(source: ByteSource) {
    this.#pieces = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  }

  /** The next `count` bytes; fewer where the source ends before. */
  async take(count: number): Promise<Buffer> {
    while (this.#size < count && (await this.#more()));
    return this.#cut(Math.min(count, this.#size));
  }

  /** What has come already, at most `count` bytes but at least one; empty at the end. */
  async some(count: number): Promise<Buffer> {
    while (this.#size === 0 && (await this.#more()));
    return this.#cut(Math.min(count, this.#waiting[0]?.length ?? 0));
  }

  /** The bytes up to a line break, with it; null where none comes within `max` bytes. */
  async line(max: number): Promise<Buffer | null> {
    for (;;) {
      const here = this.#join();
      const end = here.subarray(0, max).indexOf(LINE_BREAK);
      if (end >= 0) return this.#cut(end + 1);
      if (here.length >= max || !(await this.#more())) return null;
    }
  }

  /** True where nothing follows. */
  async atEnd(): Promise<boolean> {
    while (this.#size === 0 && (await this.#more()));
    return this.#size === 0;
  }

  async #more(): Promise<boolean> {
    if (this.#ended) return false;
    const { done, value } = await this.#pieces.next();
    if (done === true) {
      this.#ended = true;
      return false;
    }
    if (value.length > 0) this.#waiting.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    this.#size += value.length;
    return true;
  }

  #join(): Buffer {
    const [only, ...others] = this.#waiting;
    const whole = only !== undefined && others.length === 0 ? only : Buffer.concat(this.#waiting);
    this.#waiting = whole.length === 0 ? [] : [whole];
    return whole;
  }

  #cut(count: number): Buffer {
    const first = this.#waiting[0];
    if (first !== undefined && first.length === count) {
      this.#waiting.shift();
      this.#size -= count;
      return first;
    }
    const whole = first !== undefined && first.length > count ? first : this.#join();
    const head = whole.subarray(0, count);
    this.#waiting[0] = whole.subarray(count);
    if (this.#waiting[0].length === 0) this.#waiting.shift();
    this.#size -= count;
    return head;
  }
}
