/**
 * Bytes that come in chunks, put together. Long ones stand in memory of their own, which goes back to the system as soon
 * as it is freed: `malloc` would keep it for the next one, and the garbage collector leave it for long.
 */
import { freeMemory } from './bytes.ts';

/** Up to this length bytes stay in the chunks in which they came: memory of their own would cost more than it saves. */
const SHORT_BYTES: number = 128 * 1024;

/** Room for so many bytes in memory of its own, all of which goes back to the system when it is transferred. */
export function allocateTransferable(length: number): Buffer<ArrayBuffer> {
  return Buffer.from(new ArrayBuffer(length, { maxByteLength: length }));
}

/** A long text as UTF-8 in such memory. */
export function encodeLongText(text: string): Buffer<ArrayBuffer> {
  const bytes = allocateTransferable(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

export class CollectedBytes {
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  #memory: ArrayBuffer | null = null;
  #length = 0;

  /** @param maxBytes what is kept; the rest is dropped */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How many bytes are kept. */
  get length(): number {
    return this.#length;
  }

  /** Takes a chunk, which nobody may use afterwards; false where not all of it has room. */
  add(chunk: Uint8Array): boolean {
    const kept = chunk.subarray(0, this.#maxBytes - this.#length);
    this.#length += kept.length;
    if (this.#memory === null && this.#length <= SHORT_BYTES) this.#chunks.push(chunk);
    else this.#append(kept);
    return kept.length === chunk.length;
  }

  /** All of them, until `free`. */
  bytes(): Uint8Array {
    if (this.#memory !== null) return new Uint8Array(this.#memory, 0, this.#length);
    const [only, ...others] = this.#chunks;
    return only !== undefined && others.length === 0
      ? only.subarray(0, this.#length)
      : Buffer.concat(this.#chunks, this.#length);
  }

  /** Gives their memory back; what `bytes` has returned may not be looked at any more. */
  free(): void {
    this.#memory?.transfer(0);
    this.#memory = null;
    this.#chunks = [];
    this.#length = 0;
  }

  #append(kept: Uint8Array): void {
    this.#memory ??= new ArrayBuffer(0, { maxByteLength: this.#maxBytes });
    const before = this.#chunks;
    this.#chunks = [];
    let at = this.#memory.byteLength;
    this.#memory.resize(this.#length);
    const all = new Uint8Array(this.#memory);
    for (const chunk of [...before, kept]) {
      all.set(chunk, at);
      at += chunk.length;
      freeMemory(chunk);
    }
  }
}
