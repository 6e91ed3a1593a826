/**
 * Sets of small integers, as bits: the control entries of a group that an entry has among its ancestors. Similar sets
 * share their blocks, so a long chain of control entries, or some chains that are merged again and again, costs little
 * more than the entries themselves. An attacker can defeat this by writing many chains in turn and merging a different
 * selection each time. Such an entry costs up to an eighth of a byte for each control entry before it, and about as
 * much again for the objects. 120,000 of them take about 650 MB; see docs/threat-model.md.
 */

/** Integers in one block. */
const BLOCK_BITS = 2048;
const PART_SHIFT = 11;
const WORDS = BLOCK_BITS / 32;

export class BitSet {
  readonly #parts: readonly (Uint32Array | undefined)[];

  private constructor(parts: readonly (Uint32Array | undefined)[]) {
    this.#parts = parts;
  }

  /**
   * The union of some sets and some integers.
   * @param shared a pool of blocks to share, in addition to the blocks of `sets`
   */
  static union(sets: readonly BitSet[], numbers: readonly number[], shared?: BlockPool): BitSet {
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
      const word = (n & (BLOCK_BITS - 1)) >>> 5;
      part[word] = (part[word] ?? 0) | (1 << (n & 31));
    }
    if (shared !== undefined)
      for (const i of own) {
        const part = parts[i];
        if (part !== undefined) parts[i] = shared.of(part);
      }
    return new BitSet(parts);
  }

  has(n: number): boolean {
    const word = this.#parts[n >>> PART_SHIFT]?.[(n & (BLOCK_BITS - 1)) >>> 5] ?? 0;
    return (word & (1 << (n & 31))) !== 0;
  }
}

function addAll(part: Uint32Array, other: Uint32Array): void {
  for (const [i, word] of other.entries()) part[i] = (part[i] ?? 0) | word;
}

/**
 * Returns one shared block for all blocks with equal content. Stores the blocks until `clear`, so use it only for sets
 * that are stored themselves.
 */
export class BlockPool {
  /** By hash. Of blocks with the same hash, the latest. */
  readonly #byHash = new Map<number, Uint32Array>();

  /** A shared block with the same content. */
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
