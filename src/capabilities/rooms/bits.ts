/**
 * Sets of small numbers, as bits: which of a room's control entries an entry has seen. Sets of
 * neighbours differ little, so they share their parts: whoever floods a room with control entries
 * costs little more than what he sends.
 */

/** Numbers in one part. */
const PART_BITS = 2048;
const PART_SHIFT = 11;
const WORDS = PART_BITS / 32;

export class Bits {
  readonly #parts: readonly (Uint32Array | undefined)[];

  private constructor(parts: readonly (Uint32Array | undefined)[]) {
    this.#parts = parts;
  }

  /** Everything in some sets, and some numbers more. */
  static union(sets: readonly Bits[], numbers: readonly number[]): Bits {
    const parts: (Uint32Array | undefined)[] = [];
    const own = new Set<number>();
    const ownPart = (i: number): Uint32Array => {
      const known = parts[i];
      if (known !== undefined && own.has(i)) return known;
      const part = known === undefined ? new Uint32Array(WORDS) : Uint32Array.from(known);
      own.add(i);
      while (parts.length < i) parts.push(undefined);
      parts[i] = part;
      return part;
    };
    for (const set of sets)
      for (const [i, other] of set.#parts.entries()) {
        if (i === parts.length) parts.push(other);
        else if (other === undefined || other === parts[i]) continue;
        else if (parts[i] === undefined) parts[i] = other;
        else addAll(ownPart(i), other);
      }
    for (const n of numbers) {
      const part = ownPart(n >>> PART_SHIFT);
      const word = (n & (PART_BITS - 1)) >>> 5;
      part[word] = (part[word] ?? 0) | (1 << (n & 31));
    }
    return new Bits(parts);
  }

  has(n: number): boolean {
    const word = this.#parts[n >>> PART_SHIFT]?.[(n & (PART_BITS - 1)) >>> 5] ?? 0;
    return (word & (1 << (n & 31))) !== 0;
  }
}

function addAll(part: Uint32Array, other: Uint32Array): void {
  for (const [i, word] of other.entries()) part[i] = (part[i] ?? 0) | word;
}
