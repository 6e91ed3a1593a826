/**
 * Collects chunks of bytes. Large amounts use a separate buffer that is returned to the system as soon as it is
 * freed: `malloc` would keep it for reuse, and the garbage collector would free it late.
 */
import { freeMemory } from './bytes.ts';

/** Up to this size bytes stay in their original chunks, because a separate buffer costs more than it saves. */
const SHORT_BYTES: number = 128 * 1024;

/** Allocates a buffer that is returned to the system when it is transferred. */
export function allocateTransferable(length: number): Buffer<ArrayBuffer> {
  return Buffer.from(new ArrayBuffer(length, { maxByteLength: length }));
}

/** Encodes a long text as UTF-8 in such a buffer. */
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

  /** @param maxBytes maximum to store; the rest is dropped */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Number of stored bytes. */
  get length(): number {
    return this.#length;
  }

  /** Adds a chunk, which must not be used afterwards. Returns false if it was dropped or truncated. */
  add(chunk: Uint8Array): boolean {
    const kept = chunk.subarray(0, this.#maxBytes - this.#length);
    this.#length += kept.length;
    if (this.#memory === null && this.#length <= SHORT_BYTES) this.#chunks.push(chunk);
    else this.#append(kept);
    return kept.length === chunk.length;
  }

  /** All stored bytes, valid until `free`. */
  bytes(): Uint8Array {
    if (this.#memory !== null) return new Uint8Array(this.#memory, 0, this.#length);
    const [only, ...others] = this.#chunks;
    return only !== undefined && others.length === 0
      ? only.subarray(0, this.#length)
      : Buffer.concat(this.#chunks, this.#length);
  }

  /** Frees the memory. The result of `bytes` must not be used afterwards. */
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
