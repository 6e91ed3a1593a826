/**
 * Tombstones: notes that were removed, with what proves it: a copy of one that comes back from a node which did
 * not hear of it is not taken, and that node is told.
 */

import { blobOf } from '../../foundation/store/row.ts';
import type { Store } from '../../foundation/store/store.ts';

/** Removed notes that are remembered; those that would have expired soonest are forgotten first. */
const MAX_REMOVED = 100_000;

export class Tombstones {
  readonly #store: () => Store;

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** Remembers a removal as long as a copy of the note may live. @param until Unix seconds */
  add(digest: Uint8Array, token: Uint8Array, until: number): void {
    const sql = 'INSERT OR IGNORE INTO removed_notes (digest, token, until) VALUES (?, ?, ?)';
    this.#store().run(sql, digest, token, until);
  }

  /** What removed a note; null where it was not removed. */
  tokenOf(digest: Uint8Array): Uint8Array | null {
    const row = this.#store().one('SELECT token FROM removed_notes WHERE digest = ?', digest);
    return row === undefined ? null : blobOf(row, 'token');
  }

  /** Forgets those that no copy can outlive, and those above the limit. @param now Unix seconds */
  purge(now: number): void {
    const store = this.#store();
    store.run('DELETE FROM removed_notes WHERE until < ?', now);
    const above = 'SELECT digest FROM removed_notes ORDER BY until DESC LIMIT -1 OFFSET ?';
    store.run(`DELETE FROM removed_notes WHERE digest IN (${above})`, MAX_REMOVED);
  }
}
