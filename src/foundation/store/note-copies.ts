/** Copies of notes that are pending for the record network. Times are Unix milliseconds. */
import type { DueTable } from '../due-queue.ts';
import { dueRows } from './due-rows.ts';
import { blobOf, integerOf, orZero } from './row.ts';
import type { Store } from './store.ts';
import { blob, integer, type RowOf, Table } from './table.ts';

const COPY = new Table('note_copies', {
  id: integer,
  mailbox: blob,
  /** The encoded record. */
  record: blob,
  until: integer,
  dueAt: integer,
  /** Attempts so far. */
  attempts: integer,
});

/** A pending copy. */
export type NoteCopy = RowOf<typeof COPY>;

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
    const copy = await this.#store.commit(() => COPY.add(this.#store, { mailbox, record, until, dueAt }), 'now');
    return copy.id;
  }

  /** The number of copies and their bytes. */
  load(): { count: number; bytes: number } {
    const row = this.#store.one('SELECT count(*) AS n, sum(length(record)) AS bytes FROM note_copies');
    return { count: orZero(row, 'n'), bytes: orZero(row, 'bytes') };
  }

  /** Copies for a mailbox that are due until a time, oldest first. */
  dueFor(mailbox: Uint8Array, until: number, limit: number): NoteCopy[] {
    return COPY.all(this.#store)`WHERE mailbox = ${mailbox} AND due_at <= ${until} ORDER BY id LIMIT ${limit}`;
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
