/** Copies of notes that the record network is still to get. Times are Unix milliseconds. */
import { blobOf, integerOf, orNull, orZero } from './row.ts';
import type { Store, WrittenSoon } from './store.ts';

/** A copy that is to go out. */
export interface NoteCopy {
  readonly id: number;
  /** The encoded record. */
  readonly record: Uint8Array;
  readonly until: number;
  /** How often it has been tried. */
  readonly attempts: number;
}

export class NoteCopyStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Keeps a copy; its id, and when that is on disk. See `Store.transactionSoon`. */
  add(mailbox: Uint8Array, record: Uint8Array, until: number, dueAt: number): WrittenSoon<number> {
    const { result, sure } = this.#store.transactionSoon(
      () => this.#store.one`
        INSERT INTO note_copies (mailbox, record, until, due_at) VALUES (${mailbox}, ${record}, ${until}, ${dueAt})
        RETURNING id`,
    );
    return { result: integerOf(result, 'id'), sure };
  }

  /** How many there are, and their bytes. */
  load(): { count: number; bytes: number } {
    const row = this.#store.one('SELECT count(*) AS n, sum(length(record)) AS bytes FROM note_copies');
    return { count: orZero(row, 'n'), bytes: orZero(row, 'bytes') };
  }

  /** These are due at a time. Nobody waits until that is on disk. */
  release(ids: readonly number[], at: number): void {
    this.#store.transaction(() => {
      for (const id of ids) this.#store.run`UPDATE note_copies SET due_at = ${at} WHERE id = ${id}`;
    }, 'normal');
  }

  /** When the next one is due; null where there is none. */
  nextDue(): number | null {
    return orNull(integerOf, this.#store.one('SELECT min(due_at) AS at FROM note_copies'), 'at');
  }

  /** Those that are due of the mailbox that has waited longest, oldest first; null where none is due. */
  due(now: number, limit: number): { mailbox: Uint8Array; copies: NoteCopy[] } | null {
    const first = this.#store.one`SELECT mailbox FROM note_copies WHERE due_at <= ${now} ORDER BY due_at LIMIT 1`;
    if (first === undefined) return null;
    const mailbox = blobOf(first, 'mailbox');
    const rows = this.#store.all`
      SELECT id, record, until, attempts FROM note_copies WHERE mailbox = ${mailbox} AND due_at <= ${now}
      ORDER BY id LIMIT ${limit}`;
    const copies = rows.map((row) => ({
      id: integerOf(row, 'id'),
      record: blobOf(row, 'record'),
      until: integerOf(row, 'until'),
      attempts: integerOf(row, 'attempts'),
    }));
    return { mailbox, copies };
  }

  /**
   * Some need no more work, others are tried again at a time. Nobody waits until that is on disk.
   * @returns how many went, and their bytes: what went before does not go again
   */
  settle(
    done: readonly number[],
    again: readonly { readonly id: number; readonly at: number }[],
  ): { count: number; bytes: number } {
    const gone = { count: 0, bytes: 0 };
    this.#store.transaction(() => {
      for (const id of done) {
        const row = this.#store.one`DELETE FROM note_copies WHERE id = ${id} RETURNING length(record) AS bytes`;
        if (row === undefined) continue;
        gone.count++;
        gone.bytes += integerOf(row, 'bytes');
      }
      for (const { id, at } of again)
        this.#store.run`UPDATE note_copies SET due_at = ${at}, attempts = attempts + 1 WHERE id = ${id}`;
    }, 'normal');
    this.#store.syncSoon();
    return gone;
  }

  /** All are due at once: the network is there again. */
  hurry(now: number): void {
    this.#store.transaction(
      () => this.#store.run`UPDATE note_copies SET due_at = ${now} WHERE due_at > ${now}`,
      'normal',
    );
  }
}
