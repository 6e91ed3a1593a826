/** The table of notes that no other node stores yet. Times are Unix milliseconds. */
import type { DueTable } from '../due-queue.ts';
import type { Aid } from '../identity/aid.ts';
import { dueRows } from './due-rows.ts';
import { noteSize } from './notes.ts';
import { aidFromRow, blobOf, integerOf, orZero } from './row.ts';
import type { Row, Store } from './store.ts';

/** A note that is queued for sending. */
export interface NewQueuedNote {
  readonly aid: Aid;
  /** 32 bytes. */
  readonly messageId: Uint8Array;
  readonly recipient: Aid;
  readonly msgType: number;
  readonly body: Uint8Array;
  readonly nonce: Uint8Array;
  readonly sentAt: number;
  /** When it expires. */
  readonly until: number;
  /** The time of the next attempt. */
  readonly dueAt: number;
  /** Attempts so far, without the first one. */
  readonly attempts: number;
}

export type QueuedNote = Readonly<ReturnType<typeof noteOf>>;

function noteOf(row: Row) {
  return {
    id: integerOf(row, 'id'),
    aid: aidFromRow(row, 'aid'),
    messageId: blobOf(row, 'message_id'),
    recipient: aidFromRow(row, 'recipient'),
    msgType: integerOf(row, 'msg_type'),
    body: blobOf(row, 'body'),
    nonce: blobOf(row, 'nonce'),
    sentAt: integerOf(row, 'sent_at'),
    until: integerOf(row, 'until'),
    dueAt: integerOf(row, 'due_at'),
    attempts: integerOf(row, 'attempts'),
  };
}

export class NoteOutboxStore {
  readonly #store: Store;
  /** The queued notes, by recipient. */
  readonly notes: DueTable<QueuedNote>;

  constructor(store: Store) {
    this.#store = store;
    this.notes = dueRows(
      store,
      { table: 'note_outbox', dueAt: 'due_at', id: 'CAST(id AS TEXT)', key: 'recipient' },
      noteOf,
      ({ id }, at) =>
        store.run`UPDATE note_outbox SET due_at = min(${at}, until), attempts = attempts + 1 WHERE id = ${id}`,
    );
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** Stores a note, which is on disk when this returns. A note that is already queued does not change. */
  add(note: NewQueuedNote): void {
    const { aid, messageId, recipient, msgType, body, nonce, sentAt, until, dueAt, attempts } = note;
    this.#store.run`
      INSERT INTO note_outbox (aid, message_id, recipient, msg_type, body, nonce, sent_at, until, due_at, attempts)
      SELECT aid, ${messageId}, ${recipient}, ${msgType}, ${body}, ${nonce}, ${sentAt}, ${until}, ${dueAt}, ${attempts}
      FROM agents WHERE aid = ${aid} ON CONFLICT DO NOTHING`;
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
    return this.#store.all`
      SELECT * FROM note_outbox WHERE aid = ${aid} AND id > ${afterId} ORDER BY id LIMIT ${limit}`.map(noteOf);
  }

  /** Removes one note of an agent; false if there is none. */
  remove(aid: Aid, messageId: Uint8Array): boolean {
    return this.#store.run`DELETE FROM note_outbox WHERE aid = ${aid} AND message_id = ${messageId}` > 0;
  }
}
