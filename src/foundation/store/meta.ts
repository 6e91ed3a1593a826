/** Single values of the node that need no separate table. */
import { textOf } from './row.ts';
import type { Store } from './store.ts';

/** A JSON value. */
type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue };

export class MetaStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * The value of a key; undefined if it was never set. The caller validates it, because an older svcd may have written
   * it.
   */
  get(key: string): unknown {
    const row = this.#store.one`SELECT value FROM meta WHERE key = ${key}`;
    return row === undefined ? undefined : JSON.parse(textOf(row, 'value'));
  }

  set(key: string, value: JsonValue): void {
    this.#store.run`INSERT OR REPLACE INTO meta (key, value) VALUES (${key}, ${JSON.stringify(value)})`;
  }
}
