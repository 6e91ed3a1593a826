/** Reads bytes from chunks of any size. */

/** A source of bytes: a file, a stream, another generator. */
export type ByteSource = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

const LINE_BREAK = 0x0a;

export class ByteReader {
  readonly #pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  /** Received bytes that were not read yet. */
  #here: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(source: ByteSource) {
    this.#pieces = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  }

  /** The next `count` bytes, or fewer at the end of the source. */
  async read(count: number): Promise<Buffer> {
    await this.#fill(count);
    return this.#cut(count);
  }

  /** Bytes that are already received: 1 to `count` of them. Empty at the end. */
  async readSome(count: number): Promise<Buffer> {
    await this.#fill(1);
    return this.#cut(count);
  }

  /** The bytes up to and including a line break. Null if there is none within `max` bytes. */
  async readLine(max: number): Promise<Buffer | null> {
    // Each chunk is searched and copied once, also for long lines.
    const pieces: Uint8Array[] = [this.#here];
    let size = this.#here.length;
    let end = this.#here.subarray(0, max).indexOf(LINE_BREAK);
    while (end < 0 && size < max && !this.#ended) {
      const piece = await this.#next();
      if (piece === null) continue;
      const at = piece.subarray(0, max - size).indexOf(LINE_BREAK);
      if (at >= 0) end = size + at;
      pieces.push(piece);
      size += piece.length;
    }
    if (pieces.length > 1) this.#here = Buffer.concat(pieces);
    return end < 0 ? null : this.#cut(end + 1);
  }

  /** True at the end of the source. */
  async atEnd(): Promise<boolean> {
    await this.#fill(1);
    return this.#here.length === 0;
  }

  /** Waits for this many bytes, or the end of the source. */
  async #fill(count: number): Promise<void> {
    const pieces: Uint8Array[] = [this.#here];
    for (let size = this.#here.length; size < count && !this.#ended; ) {
      const piece = await this.#next();
      if (piece === null) continue;
      pieces.push(piece);
      size += piece.length;
    }
    if (pieces.length > 1) this.#here = Buffer.concat(pieces);
  }

  /** The next chunk of the source; null at its end. */
  async #next(): Promise<Uint8Array | null> {
    const { done, value } = await this.#pieces.next();
    if (done === true) this.#ended = true;
    return done === true ? null : value;
  }

  #cut(count: number): Buffer {
    const head = this.#here.subarray(0, count);
    this.#here = this.#here.subarray(count);
    return head;
  }
}
