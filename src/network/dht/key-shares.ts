/**
 * Who has how many of the records that many publishers store under one key, in memory: each record that comes asks for
 * it, and to count up to a thousand rows each time would let a burst of records take the event loop.
 */
import { toHex } from '../../foundation/bytes.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import { integerOf, textOf } from '../../foundation/store/row.ts';
import type { Store } from '../../foundation/store/store.ts';
import { Tally } from '../../foundation/tally.ts';

/** Keys whose shares are kept in memory. */
const MAX_CACHED_KEYS = 64;

function nameOf(key: Uint8Array, type: RecordType): string {
  return `${type} ${toHex(key)}`;
}

export class KeyShares {
  readonly #store: () => Store;
  readonly #cached = new LruCache<string, Tally>({ maxEntries: MAX_CACHED_KEYS });

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** Records of one type under a key, by their publishers. */
  of(key: Uint8Array, type: RecordType): Tally {
    const name = nameOf(key, type);
    const known = this.#cached.get(name);
    if (known !== undefined) return known;
    const tally = new Tally();
    const rows = this.#store().all(
      'SELECT publisher, COUNT(*) AS n FROM records WHERE key = ? AND +type = ? GROUP BY publisher',
      key,
      type,
    );
    for (const row of rows) tally.add(textOf(row, 'publisher'), integerOf(row, 'n'));
    this.#cached.set(name, tally);
    return tally;
  }

  /** To be called for each record that comes or, with -1, goes. */
  add(key: Uint8Array, type: RecordType, publisher: string, change: 1 | -1): void {
    this.#cached.peek(nameOf(key, type))?.add(publisher, change);
  }

  /** To be called where what was added did not happen after all. */
  clear(): void {
    this.#cached.clear();
  }
}

/** Who has most, and how many; null where nobody has any. */
export function largestShare(tally: Tally): { readonly publisher: string; readonly count: number } | null {
  let largest: { readonly publisher: string; readonly count: number } | null = null;
  for (const [publisher, count] of tally) if (count > (largest?.count ?? 0)) largest = { publisher, count };
  return largest;
}
