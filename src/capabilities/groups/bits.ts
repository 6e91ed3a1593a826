/**
 * Sets of small numbers, as bits: which of a group's control entries an entry has seen. Sets of
 * neighbours differ little, so they share their parts: a flood of control entries in a row, or in
 * some rows that are united again and again, costs little more than what is sent. That does not
 * hold for whoever writes many rows in turn and unites another choice of them each time: such an
 * entry costs up to an eighth of a byte for each control entry before it, and about as much again
 * for the objects. 120,000 of them take about 650 MB; see docs/threat-model.md.
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

  /**
   * Everything in some sets, and some numbers more.
   * @param shared what the set shares its parts by, beyond those that it has from `sets`
   */
  static union(sets: readonly Bits[], numbers: readonly number[], shared?: SharedParts): Bits {
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
    if (shared !== undefined)
      for (const i of own) {
        const part = parts[i];
        if (part !== undefined) parts[i] = shared.of(part);
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

/** One of all parts that hold the same. Keeps them until `clear`: for sets that are kept themselves. */
export class SharedParts {
  /** By hash: of parts with the same one, the last. */
  readonly #byHash = new Map<number, Uint32Array>();

  /** A part that holds what this one does. */
  of(part: Uint32Array): Uint32Array {
    const hash = hashOf(part);
    const known = this.#byHash.get(hash);
    if (known?.every((word, i) => word === part[i]) === true) return known;
    this.#byHash.set(hash, part);
    return part;
  }

  clear(): void {
    this.#byHash.clear();
  }
}

/** FNV-1a over the words. */
function hashOf(part: Uint32Array): number {
  let hash = 0x811c9dc5;
  for (const word of part) hash = Math.imul(hash ^ word, 0x01000193);
  return hash;
}
