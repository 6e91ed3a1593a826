/**
 * Verifies a file while it arrives. A file consists of ranges of `RANGE_BYTES`, the last one may be shorter. Its prefix
 * hashes are the SHA-256 of its first range, of its first two ranges, and so on. The last one is the SHA-256 of the file.
 */
import { createHash, type Hash } from 'node:crypto';
import { OBJECT_ID_BYTES, RANGE_BYTES, rangeCount } from './domain/objects.ts';
import { SvcError } from './errors.ts';

/** Hash states that are kept, so that the last range can be removed without reading the file again. */
const MAX_STATES = 2;

interface State {
  /** Complete ranges. */
  readonly ranges: number;
  readonly hash: Hash;
}

/** SHA-256 of a growing file, with its prefix hashes. */
export class PrefixHash {
  #hash: Hash = createHash('sha256');
  #length = 0;
  /** Hashes at the ends of full ranges. */
  readonly #ends: Buffer[] = [];
  #states: State[] = [];
  #confirmed = 0;

  /** Hashed bytes. */
  get length(): number {
    return this.#length;
  }

  update(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + RANGE_BYTES - (this.#length % RANGE_BYTES));
      this.#hash.update(piece);
      this.#length += piece.length;
      at += piece.length;
      if (this.#length % RANGE_BYTES === 0) this.#endRange();
    }
  }

  #endRange(): void {
    const hash = this.#hash.copy();
    this.#ends.push(this.#digest());
    this.#states = [...this.#states, { ranges: this.#ends.length, hash }].slice(-MAX_STATES);
  }

  #digest(): Buffer {
    return this.#hash.copy().digest();
  }

  /** SHA-256 of all bytes, lower-case hex. */
  digest(): string {
    return this.#digest().toString('hex');
  }

  /** The hashes at the ends of full ranges. */
  ends(): readonly Buffer[] {
    return this.#ends;
  }

  /** The prefix hashes of a file that consists of these bytes. */
  list(): Buffer {
    const isCut = this.#ends.length < rangeCount(this.#length);
    return Buffer.concat(isCut ? [...this.#ends, this.#digest()] : this.#ends);
  }

  /**
   * Compares the complete ranges with the hashes of a sender.
   * @param size of the whole file, bytes
   * @returns null if they are right; otherwise the length of the part before the first wrong range, see `cut`
   * @throws SvcError the errors of the sender
   */
  async check(hashes: Pick<PrefixHashes, 'at'>, size: number): Promise<number | null> {
    for (;;) {
      const isLast = this.#confirmed === rangeCount(size) - 1;
      const end = this.#ends[this.#confirmed] ?? (isLast && this.#length === size ? this.#digest() : null);
      if (end === null) return null;
      if (!end.equals(await hashes.at(this.#confirmed))) return this.#confirmed * RANGE_BYTES;
      this.#confirmed++;
    }
  }

  /** Whether all ranges of the file were compared, so that these bytes are the file. */
  isConfirmed(size: number): boolean {
    return this.#confirmed >= rangeCount(size);
  }

  /**
   * Removes the bytes from a position on.
   * @param length a result of `check`
   * @returns null if the state there was dropped. The first bytes must be hashed again
   */
  cut(length: number): PrefixHash | null {
    const ranges = length / RANGE_BYTES;
    const state = this.#states.find((one) => one.ranges === ranges);
    if (length > 0 && state === undefined) return null;
    const cut = new PrefixHash();
    if (state === undefined) return cut;
    cut.#hash = state.hash.copy();
    cut.#length = length;
    cut.#ends.push(...this.#ends.slice(0, ranges));
    cut.#states = [state];
    cut.#confirmed = ranges;
    return cut;
  }
}

/** Requests hashes from an index on. The signal ends the request, also while its body is read. */
type OpenHashes = (from: number, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>;

/** The prefix hashes of a file, read from its sender while it may still be hashing the file. */
export class PrefixHashes {
  readonly #open: OpenHashes;
  readonly #count: number;
  readonly #known: Buffer[] = [];
  /** The request under way. It is read without backpressure, because the sender ends requests that are not read. */
  #reading: { readonly ended: Promise<never>; readonly stop: AbortController } | null = null;
  #grown = Promise.withResolvers<void>();

  /** @param size of the file, bytes */
  constructor(open: OpenHashes, size: number) {
    this.#open = open;
    this.#count = rangeCount(size);
  }

  /**
   * The hash at the end of a range.
   * @param index counted from 0, less than the number of ranges
   * @throws SvcError `connect_failed` if the response ends early, and the errors of the request. The next call asks again
   */
  async at(index: number): Promise<Buffer> {
    for (;;) {
      const hash = this.#known[index];
      if (hash !== undefined) return hash;
      this.#reading ??= this.#read();
      await Promise.race([this.#reading.ended, this.#grown.promise]);
    }
  }

  #read() {
    const stop = new AbortController();
    const ended = this.#readAll(stop.signal)
      .catch((cause: unknown) => {
        throw cause instanceof SvcError ? cause : interrupted(cause);
      })
      .finally(() => {
        this.#reading = null;
      });
    // The next caller of `at` asks again.
    ended.catch(() => {});
    return { ended, stop };
  }

  async #readAll(signal: AbortSignal): Promise<never> {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of await this.#open(this.#known.length, signal)) {
      rest = Buffer.concat([rest, chunk]);
      for (; rest.length >= OBJECT_ID_BYTES; rest = rest.subarray(OBJECT_ID_BYTES)) {
        if (this.#known.length === this.#count) throw interrupted();
        this.#known.push(Buffer.from(rest.subarray(0, OBJECT_ID_BYTES)));
      }
      this.#grown.resolve();
      this.#grown = Promise.withResolvers();
    }
    throw interrupted();
  }

  /** SHA-256 of the whole file, lower-case hex. See `at`. */
  async whole(): Promise<string> {
    return (await this.at(this.#count - 1)).toString('hex');
  }

  /** Ends the request. */
  close(): void {
    this.#reading?.stop.abort(interrupted());
  }
}

function interrupted(cause?: unknown): SvcError {
  return new SvcError('connect_failed', { message: 'The transfer was interrupted.', cause });
}
