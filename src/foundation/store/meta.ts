/** Single values of the node itself that have no table of their own. */
import { textOf } from './row.ts';
import type { Store } from './store.ts';

/** What JSON can hold. */
type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue };

export class MetaStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The value under a key; undefined where none was set. The caller checks its shape: an older svcd may have written it. */
  get(key: string): unknown {
    const row = this.#store.one`SELECT value FROM meta WHERE key = ${key}`;
    return row === undefined ? undefined : JSON.parse(textOf(row, 'value'));
  }

  set(key: string, value: JsonValue): void {
    this.#store.run`INSERT OR REPLACE INTO meta (key, value) VALUES (${key}, ${JSON.stringify(value)})`;
  }
}
