/**
 * The records that replication must check. They outlive the renewal period of their publishers. A record is due
 * some time after it arrived or was last checked.
 */

import { blobOf, integerOf, textOf } from '../../foundation/store/row.ts';
import type { Store } from '../../foundation/store/store.ts';
import { STORED_COLUMNS, type StoredRecord, toStored } from './key-rows.ts';

/** A record that replication checks. */
export interface ReplicationRow extends StoredRecord {
  /** See `partOf`. */
  readonly part: number;
}

/** A key with a due record, and the publisher whose turn it is. */
interface DueKey {
  readonly key: Uint8Array;
  readonly publisher: string;
}

/** Publishers that are examined for a due record. */
const MAX_TRIED = 2000;
/** As in the index. Publishers renew records with a shorter life in time. */
const LONG_LIVED = 'expires_at - timestamp > 3600';

export class ReplicationQueue {
  readonly #store: () => Store;

  constructor(store: () => Store) {
    this.#store = store;
  }

  /**
   * The key that has waited longest, of the publisher after the last one. Publishers take turns, so a flood delays only
   * its own publisher.
   * @param heardBefore Unix seconds
   * @param until records that expire before it are ignored, Unix seconds
   */
  due(lastPublisher: string, heardBefore: number, until: number): DueKey | null {
    const isDue = 'heard_at < ? AND expires_at > ? ORDER BY heard_at LIMIT 1';
    const any = `SELECT 1 FROM records WHERE ${LONG_LIVED} AND ${isDue}`;
    if (this.#store().one(any, heardBefore, until) === undefined) return null;
    const first = `SELECT key FROM records WHERE ${LONG_LIVED} AND publisher = ? AND ${isDue}`;
    let publisher: string | null = lastPublisher;
    for (let tried = 0; tried < MAX_TRIED; tried++) {
      publisher = this.#publisherAfter(publisher) ?? this.#publisherAfter('');
      if (publisher === null) return null;
      const row = this.#store().one(first, publisher, heardBefore, until);
      if (row !== undefined) return { key: blobOf(row, 'key'), publisher };
    }
    return null;
  }

  #publisherAfter(publisher: string): string | null {
    const sql = `SELECT publisher FROM records WHERE ${LONG_LIVED} AND publisher > ? ORDER BY publisher LIMIT 1`;
    const row = this.#store().one(sql, publisher);
    return row === undefined ? null : textOf(row, 'publisher');
  }

  /** Long-lived records under a key that expire after `until` (Unix seconds), longest waiting first. */
  under(key: Uint8Array, until: number, limit: number): ReplicationRow[] {
    const sql = `SELECT ${STORED_COLUMNS}, part FROM records
      WHERE ${LONG_LIVED} AND key = ? AND expires_at > ? ORDER BY heard_at LIMIT ?`;
    const rows = this.#store().all(sql, key, until, limit);
    return rows.map((row) => ({ ...toStored(row), part: integerOf(row, 'part') }));
  }

  /** Keys with long-lived records, in order. @param after empty for the first ones */
  keys(after: Uint8Array, limit: number): Uint8Array[] {
    const sql = `SELECT DISTINCT key FROM records WHERE ${LONG_LIVED} AND key > ? ORDER BY key LIMIT ?`;
    const rows = this.#store().all(sql, after, limit);
    return rows.map((row) => blobOf(row, 'key'));
  }

  /**
   * Repairs times of a clock that was ahead, until which no record would be due.
   * @param now Unix seconds
   * @param latest the latest time that `heard` notes now, Unix seconds
   */
  repairTimes(now: number, latest: number): void {
    this.#store().run(`UPDATE records SET heard_at = ? WHERE ${LONG_LIVED} AND heard_at > ?`, now, latest);
  }

  /** Notes that these records were checked. @param at Unix seconds */
  heard(ids: readonly number[], at: number): void {
    const store = this.#store();
    store.transaction(() => {
      for (const id of ids) store.run('UPDATE records SET heard_at = max(heard_at, ?) WHERE id = ?', at, id);
    });
  }
}

/** Removed notes that are remembered. The first to expire are forgotten first. */
const MAX_REMOVED = 100_000;

/**
 * Removed notes and their tokens. A node that missed a removal may send a copy: it is refused, and the node
 * gets the token.
 */
export class Tombstones {
  readonly #store: () => Store;

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** Remembers a removal while a copy of the note could exist. @param until Unix seconds */
  add(digest: Uint8Array, token: Uint8Array, until: number): void {
    const sql = 'INSERT OR IGNORE INTO removed_notes (digest, token, until) VALUES (?, ?, ?)';
    this.#store().run(sql, digest, token, until);
  }

  /** The token that removed a note; null if it was not removed. */
  tokenOf(digest: Uint8Array): Uint8Array | null {
    const row = this.#store().one('SELECT token FROM removed_notes WHERE digest = ?', digest);
    return row === undefined ? null : blobOf(row, 'token');
  }

  /** Forgets removals that no copy can outlive, and those above the limit. @param now Unix seconds */
  purge(now: number): void {
    const store = this.#store();
    store.run('DELETE FROM removed_notes WHERE until < ?', now);
    const above = 'SELECT digest FROM removed_notes ORDER BY until DESC LIMIT -1 OFFSET ?';
    store.run(`DELETE FROM removed_notes WHERE digest IN (${above})`, MAX_REMOVED);
  }
}
