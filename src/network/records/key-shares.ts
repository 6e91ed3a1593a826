/**
 * Who has how many of the records that many publishers store under one key, in memory: each record that comes asks for
 * it, and to count up to a thousand rows each time would let a burst of records take the event loop.
 */
import { toHex } from '../../foundation/bytes.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import { SourceTally } from '../../foundation/source-tally.ts';
import { integerOf, textOf } from '../../foundation/store/row.ts';
import type { Store } from '../../foundation/store/store.ts';

/** Keys whose shares are kept in memory. */
const MAX_CACHED_KEYS = 64;

function nameOf(key: Uint8Array, type: RecordType): string {
  return `${type} ${toHex(key)}`;
}

export class KeyShares {
  readonly #store: () => Store;
  readonly #cached = new LruCache<string, SourceTally>({ maxEntries: MAX_CACHED_KEYS });

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** Records of one type under a key, by their publishers. */
  of(key: Uint8Array, type: RecordType): SourceTally {
    const name = nameOf(key, type);
    const known = this.#cached.get(name);
    if (known !== undefined) return known;
    const tally = new SourceTally();
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
