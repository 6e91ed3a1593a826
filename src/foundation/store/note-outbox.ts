/** The table of notes that no other node stores yet. Times are Unix milliseconds. */
import type { DueTable } from '../due-queue.ts';
import type { Aid } from '../identity/aid.ts';
import { dueRows } from './due-rows.ts';
import { noteSize } from './notes.ts';
import { orZero } from './row.ts';
import type { Store } from './store.ts';
import { aid, blob, integer, type RowOf, Table } from './table.ts';

const QUEUED_NOTE = new Table('note_outbox', {
  id: integer,
  aid,
  /** 32 bytes. */
  messageId: blob,
  recipient: aid,
  msgType: integer,
  body: blob,
  nonce: blob,
  sentAt: integer,
  /** When it expires. */
  until: integer,
  /** The time of the next attempt. */
  dueAt: integer,
  /** Attempts so far, without the first one. */
  attempts: integer,
});

/** A note that is queued for sending. */
export type QueuedNote = RowOf<typeof QUEUED_NOTE>;
export type NewQueuedNote = Omit<QueuedNote, 'id'>;

export class NoteOutboxStore {
  readonly #store: Store;
  /** The queued notes, by recipient. */
  readonly notes: DueTable<QueuedNote>;

  constructor(store: Store) {
    this.#store = store;
    this.notes = dueRows(
      store,
      { table: 'note_outbox', dueAt: 'due_at', id: 'CAST(id AS TEXT)', key: 'recipient' },
      QUEUED_NOTE.read,
      ({ id }, at) =>
        store.run`UPDATE note_outbox SET due_at = min(${at}, until), attempts = attempts + 1 WHERE id = ${id}`,
    );
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** Stores a note, which is on disk when this returns. A note that is already queued does not change. */
  add(note: NewQueuedNote): void {
    QUEUED_NOTE.insertForAgent(this.#store, note);
  }

  /** The number and size of the queued notes, of one agent or all. */
  load(aid: Aid | null = null): { count: number; bytes: number } {
    const row = this.#store.one`
      SELECT count(*) AS n, sum(length(body)) AS bytes FROM note_outbox WHERE ${aid} IS NULL OR aid = ${aid}`;
    const count = orZero(row, 'n');
    return { count, bytes: orZero(row, 'bytes') + count * noteSize(new Uint8Array()) };
  }

  /** Notes of an agent after `afterId`, oldest first. */
  page(aid: Aid, afterId: number, limit: number): QueuedNote[] {
    return QUEUED_NOTE.all(this.#store)`WHERE aid = ${aid} AND id > ${afterId} ORDER BY id LIMIT ${limit}`;
  }

  /** Removes one note of an agent; false if there is none. */
  remove(aid: Aid, messageId: Uint8Array): boolean {
    return this.#store.run`DELETE FROM note_outbox WHERE aid = ${aid} AND message_id = ${messageId}` > 0;
  }
}
