/** Copies of notes that are pending for the record network. Times are Unix milliseconds. */
import type { DueTable } from '../due-queue.ts';
import { dueRows } from './due-rows.ts';
import { blobOf, integerOf, orZero } from './row.ts';
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
  /** The mailboxes with copies, once for each copy: a queue must work on one mailbox at a time. */
  readonly mailboxes: DueTable<Uint8Array>;

  constructor(store: Store) {
    this.#store = store;
    this.mailboxes = dueRows(
      store,
      { table: 'note_copies', dueAt: 'due_at', id: 'hex(mailbox)', key: 'hex(mailbox)' },
      (row) => blobOf(row, 'mailbox'),
      (mailbox, at) => store.run`UPDATE note_copies SET due_at = ${at} WHERE mailbox = ${mailbox} AND due_at < ${at}`,
    );
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

  /** Copies for a mailbox that are due until a time, oldest first. */
  dueFor(mailbox: Uint8Array, until: number, limit: number): NoteCopy[] {
    return this.#store.all`
      SELECT id, record, until, attempts FROM note_copies WHERE mailbox = ${mailbox} AND due_at <= ${until}
      ORDER BY id LIMIT ${limit}`.map((row) => ({
      id: integerOf(row, 'id'),
      record: blobOf(row, 'record'),
      until: integerOf(row, 'until'),
      attempts: integerOf(row, 'attempts'),
    }));
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
}
