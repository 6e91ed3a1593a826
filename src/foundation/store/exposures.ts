/** Public addresses of local agents, and the tokens of their clients. Times are Unix milliseconds. */
import { EXPOSURE_MODES } from '../domain/exposures.ts';
import type { Store } from './store.ts';
import { aid, blob, flag, integer, nullable, type RowOf, Table, text, texts, word } from './table.ts';

const EXPOSURES = new Table('exposures', {
  id: text,
  aid,
  /** The DNS name of the address. */
  host: text,
  mode: word(EXPOSURE_MODES),
  /** Requests that need no token in mode `only`; see `ruleAllows`. */
  rules: texts,
  /** False after a restored backup, until the owner exposes the agent again. */
  isOn: flag,
  openedAt: integer,
});

const TOKENS = new Table('exposure_tokens', {
  id: text,
  exposure: text,
  label: text,
  /** SHA-256 of the token. */
  hash: blob,
  /** Requests that the token allows; empty: all. */
  rules: texts,
  /** Null: no end. */
  expiresAt: nullable(integer),
  createdAt: integer,
});

export type ExposureRow = RowOf<typeof EXPOSURES>;
export type ExposureTokenRow = RowOf<typeof TOKENS>;

export class ExposureStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  list(): ExposureRow[] {
    return EXPOSURES.all(this.#store)`ORDER BY opened_at, id`;
  }

  /** Stores an address, or changes the one with the same ID. */
  save(row: ExposureRow): void {
    EXPOSURES.insert(
      this.#store,
      row,
      'ON CONFLICT (id) DO UPDATE SET mode = excluded.mode, rules = excluded.rules, is_on = excluded.is_on',
    );
  }

  /** Deletes an address with its tokens. */
  delete(id: string): void {
    this.#store.run`DELETE FROM exposures WHERE id = ${id}`;
  }

  tokens(exposure: string): ExposureTokenRow[] {
    return TOKENS.all(this.#store)`WHERE exposure = ${exposure} ORDER BY created_at, id`;
  }

  addToken(row: ExposureTokenRow): void {
    TOKENS.insert(this.#store, row);
  }

  deleteToken(id: string): void {
    this.#store.run`DELETE FROM exposure_tokens WHERE id = ${id}`;
  }
}
