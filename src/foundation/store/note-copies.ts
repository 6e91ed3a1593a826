/** Copies of notes that are pending for the record network. Times are Unix milliseconds. */
import { blobOf, integerOf, orNull, orZero } from './row.ts';
import type { Store } from './store.ts';

/** A pending copy. */
export interface NoteCopy {
  readonly id: number;
  /** The encoded record. */
  readonly record: Uint8Array;
  readonly until: number;
  /** Attempts so far. */
  readonly attempts: number;
}

export class NoteCopyStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Stores a copy. Returns its ID when it is on disk. */
  async add(mailbox: Uint8Array, record: Uint8Array, until: number, dueAt: number): Promise<number> {
    const row = await this.#store.commit(
      () => this.#store.one`
        INSERT INTO note_copies (mailbox, record, until, due_at) VALUES (${mailbox}, ${record}, ${until}, ${dueAt})
        RETURNING id`,
      'now',
    );
    return integerOf(row, 'id');
  }

  /** The number of copies and their bytes. */
  load(): { count: number; bytes: number } {
    const row = this.#store.one('SELECT count(*) AS n, sum(length(record)) AS bytes FROM note_copies');
    return { count: orZero(row, 'n'), bytes: orZero(row, 'bytes') };
  }

  /** The time of the next due copy; null if there is none. */
  nextDue(): number | null {
    return orNull(integerOf, this.#store.one('SELECT min(due_at) AS at FROM note_copies'), 'at');
  }

  /** The due copies of the mailbox that is due longest, oldest first; null if none is due. */
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
   * Deletes finished copies and schedules retries.
   * @returns the number and bytes of the deleted copies; copies that were deleted before do not count
   */
  settle(
    done: readonly number[],
    again: readonly { readonly id: number; readonly at: number }[],
  ): { count: number; bytes: number } {
    const deleted = { count: 0, bytes: 0 };
    this.#store.commit(() => {
      for (const id of done) {
        const row = this.#store.one`DELETE FROM note_copies WHERE id = ${id} RETURNING length(record) AS bytes`;
        if (row === undefined) continue;
        deleted.count++;
        deleted.bytes += integerOf(row, 'bytes');
      }
      for (const { id, at } of again)
        this.#store.run`UPDATE note_copies SET due_at = ${at}, attempts = attempts + 1 WHERE id = ${id}`;
    }, 'soon');
    return deleted;
  }

  /** Makes all copies due now, because the network is available again. */
  makeAllDue(now: number): void {
    this.#store.commit(() => this.#store.run`UPDATE note_copies SET due_at = ${now} WHERE due_at > ${now}`, 'soon');
  }
}
