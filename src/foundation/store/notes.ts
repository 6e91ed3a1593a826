/** The tables of the mailboxes. Times are Unix milliseconds. */
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, blobOf, integerOf, orZero, takeWithin } from './row.ts';
import { rowSum } from './row-sum.ts';
import type { Store } from './store.ts';
import { aid, blob, flag, integer, named, nullable, type RowOf, Table } from './table.ts';

const NOTE = new Table('notes', {
  /** Increases with every note: the order and the cursor of lists. */
  id: integer,
  aid,
  /** 32 bytes. */
  messageId: blob,
  sender: aid,
  msgType: integer,
  body: blob,
  sentAt: integer,
  receivedAt: integer,
  /** The digest of its record, and the token that removes its copies. */
  digest: blob,
  token: blob,
  size: integer,
  /** The checksum of its content; null if it was stored without one. */
  sum: nullable(integer),
});

type NoteRow = RowOf<typeof NOTE>;

/** A note for a local agent. */
export type NewNote = Omit<NoteRow, 'id' | 'size' | 'sum'>;
export type StoredNote = NewNote & Pick<NoteRow, 'id'>;

/** A message ID that is not shown again. */
const SEEN = new Table('notes_seen', { aid, messageId: blob, until: integer, isKnown: named('known', flag) });

/** The pending notes of a mailbox. */
export interface MailboxLoad {
  readonly count: number;
  readonly bytes: number;
}

/** Bytes that a stored note uses in addition to its body. */
const ROW_OVERHEAD_BYTES = 256;

/** The checksum over the content of a note. */
function sumOf({ messageId, sender, msgType, body, sentAt }: NewNote): number {
  return rowSum(messageId, sender, msgType, body, sentAt);
}

/** Bytes of the mailbox quota that a note uses. */
export function noteSize(body: Uint8Array): number {
  return body.length + ROW_OVERHEAD_BYTES;
}

/** Message IDs kept per agent. */
export const MAX_SEEN_NOTES = 100_000;
/** Excess message IDs that are deleted in one batch. */
const PURGE_BATCH = 10_000;

export class NoteStore {
  readonly #store: Store;
  /** Message IDs added since the last check, by agent. */
  readonly #addedSeen = new Map<Aid, number>();
  /** See `Store.commit`. */
  readonly commit: Store['commit'];

  constructor(store: Store) {
    this.#store = store;
    this.commit = store.commit.bind(store);
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /**
   * Stores a note. False, and nothing stored, if its message ID was seen before or its agent is not registered here.
   * @param isKnown see `markSeen`
   */
  add(note: NewNote, seenUntil: number, isKnown = false): boolean {
    const { aid: to, messageId, body } = note;
    return this.#store.transaction(() => {
      if (!SEEN.insertForAgent(this.#store, { aid: to, messageId, until: seenUntil, isKnown })) return false;
      this.#limitSeen(to);
      NOTE.insert(this.#store, { ...note, size: noteSize(body), sum: sumOf(note) });
      return true;
    });
  }

  seen(aid: Aid, messageId: Uint8Array): boolean {
    return this.#store.one`SELECT 1 FROM notes_seen WHERE aid = ${aid} AND message_id = ${messageId}` !== undefined;
  }

  /** True while a note is stored, delivered or not, but not read. */
  isStored(aid: Aid, messageId: Uint8Array): boolean {
    const row = this.#store.one`
      SELECT 1 FROM notes WHERE aid = ${aid} AND message_id = ${messageId} AND (taken_at IS NULL OR taken_at > 0)`;
    return row !== undefined;
  }

  /** The pending notes of an agent: all, or from one sender. */
  load(aid: Aid, sender: Aid | null = null): MailboxLoad {
    const row = this.#store.one`
      SELECT count(*) AS n, sum(size) AS bytes FROM notes
      WHERE aid = ${aid} AND taken_at IS NULL AND (${sender} IS NULL OR sender = ${sender})`;
    return { count: orZero(row, 'n'), bytes: orZero(row, 'bytes') };
  }

  /** The pending notes of an agent, by sender. */
  senders(aid: Aid): Map<Aid, MailboxLoad> {
    const rows = this.#store.all`
      SELECT sender, count(*) AS n, sum(size) AS bytes FROM notes WHERE aid = ${aid} AND taken_at IS NULL GROUP BY sender`;
    return new Map(
      rows.map((row) => [aidFromRow(row, 'sender'), { count: orZero(row, 'n'), bytes: orZero(row, 'bytes') }]),
    );
  }

  /** Pending notes of an agent after `afterId`, oldest first, up to `maxBytes` in total but at least one. */
  page(aid: Aid, afterId: number, limit: number, maxBytes: number): { notes: StoredNote[]; more: boolean } {
    const sizes = this.#store.all`
      SELECT size FROM notes WHERE aid = ${aid} AND taken_at IS NULL AND id > ${afterId} ORDER BY id LIMIT ${limit + 1}`;
    const shown = takeWithin(sizes.slice(0, limit), 'size', maxBytes).length;
    const rows = NOTE.all(this.#store)`
      WHERE aid = ${aid} AND taken_at IS NULL AND id > ${afterId} ORDER BY id LIMIT ${shown}`;
    return { notes: this.#intact(rows), more: sizes.length > shown };
  }

  /** Every unread note of an agent, oldest first, including delivered ones without an acknowledgment. */
  all(aid: Aid): StoredNote[] {
    return this.#intact(NOTE.all(this.#store)`WHERE aid = ${aid} AND (taken_at IS NULL OR taken_at > 0) ORDER BY id`);
  }

  /** The last notes that were marked as read, oldest first. */
  read(aid: Aid): StoredNote[] {
    return this.#intact(NOTE.all(this.#store)`WHERE aid = ${aid} AND taken_at < 0 ORDER BY id`);
  }

  /** Filters out notes that fail their checksum. */
  #intact(rows: readonly NoteRow[]): StoredNote[] {
    return rows.flatMap(({ size: _size, sum, ...note }) => {
      if (sum === null || sum === sumOf(note)) return [note];
      this.#store.reportDamage(`notes ${note.id}`);
      return [];
    });
  }

  /** Message IDs that are not shown again, with their expiry; the latest expiry first. */
  seenOf(aid: Aid, limit: number): RowOf<typeof SEEN>[] {
    return SEEN.all(this.#store)`WHERE aid = ${aid} ORDER BY until DESC LIMIT ${limit}`;
  }

  /**
   * Stores a message ID, so that its note is not shown again.
   * @param isKnown the owner knows the sender: IDs of strangers are evicted first
   */
  markSeen(aid: Aid, messageId: Uint8Array, until: number, isKnown = false): void {
    SEEN.insert(this.#store, { aid, messageId, until, isKnown }, 'ON CONFLICT DO NOTHING');
    this.#limitSeen(aid);
  }

  /** An evicted ID costs little: a copy of its note may be shown once more. */
  #limitSeen(aid: Aid): void {
    const added = (this.#addedSeen.get(aid) ?? 0) + 1;
    this.#addedSeen.set(aid, added % PURGE_BATCH);
    if (added < PURGE_BATCH) return;
    const above =
      orZero(this.#store.one`SELECT count(*) AS n FROM notes_seen WHERE aid = ${aid}`, 'n') - MAX_SEEN_NOTES;
    if (above > 0)
      this.#store.run`
        DELETE FROM notes_seen WHERE aid = ${aid} AND message_id IN
          (SELECT message_id FROM notes_seen WHERE aid = ${aid} ORDER BY known, until LIMIT ${above})`;
  }

  /** Marks the oldest pending notes as delivered and returns them, in one step. */
  take(aid: Aid, limit: number, maxBytes: number, now: number): { notes: StoredNote[]; more: boolean } {
    return this.#store.transaction(() => {
      const page = this.page(aid, 0, limit, maxBytes);
      for (const { id } of page.notes) this.#store.run`UPDATE notes SET taken_at = ${now} WHERE id = ${id}`;
      return page;
    });
  }

  /** A pending note; null if there is none. */
  find(aid: Aid, messageId: Uint8Array): StoredNote | null {
    const found = NOTE.all(this.#store)`WHERE aid = ${aid} AND message_id = ${messageId} AND taken_at IS NULL`;
    return this.#intact(found)[0] ?? null;
  }

  /** Marks one pending note as delivered and returns it; null if there is none. @param now negative: as read */
  takeOne(aid: Aid, messageId: Uint8Array, now: number): StoredNote | null {
    const taken = this.#store.all`
      UPDATE notes SET taken_at = ${now} WHERE aid = ${aid} AND message_id = ${messageId} AND taken_at IS NULL RETURNING *`;
    return this.#intact(taken.map(NOTE.read))[0] ?? null;
  }

  /**
   * Marks one pending note as read and returns it; null if there is none. The last `kept` read notes stay, because the
   * program that read them may have dropped them. `taken_at` is negative, so that no start makes them pending again.
   */
  markRead(aid: Aid, messageId: Uint8Array, now: number, kept: number): StoredNote | null {
    return this.#store.transaction(() => {
      const note = this.takeOne(aid, messageId, -now);
      this.#store.run`
        DELETE FROM notes WHERE aid = ${aid} AND taken_at < 0 AND id NOT IN
          (SELECT id FROM notes WHERE aid = ${aid} AND taken_at < 0 ORDER BY taken_at, id DESC LIMIT ${kept})`;
      return note;
    });
  }

  /** Deletes delivered notes. */
  discard(ids: readonly number[]): void {
    this.#store.transaction(() => {
      for (const id of ids) this.#store.run`DELETE FROM notes WHERE id = ${id} AND taken_at IS NOT NULL`;
    });
  }

  /** Makes delivered notes pending again, because they did not arrive. */
  requeue(ids: readonly number[]): void {
    this.#store.transaction(() => {
      for (const id of ids) this.#store.run`UPDATE notes SET taken_at = NULL WHERE id = ${id}`;
    });
  }

  /**
   * Makes all delivered notes pending after a start, because no acknowledgment can arrive now. Returns their number.
   */
  requeueAll(): number {
    return this.#store.run('UPDATE notes SET taken_at = NULL WHERE taken_at > 0');
  }

  /** The number of pending notes of each agent that has some. */
  pendingCounts(): Map<Aid, number> {
    const rows = this.#store.all('SELECT aid, count(*) AS n FROM notes WHERE taken_at IS NULL GROUP BY aid');
    return new Map(rows.map((row) => [aidFromRow(row, 'aid'), integerOf(row, 'n')]));
  }

  /** Deletes expired message IDs. True if more may remain. */
  purgeSeen(now: number, limit: number): boolean {
    const deleted = this.#store.run`
      DELETE FROM notes_seen WHERE (aid, message_id) IN
        (SELECT aid, message_id FROM notes_seen WHERE until < ${now} LIMIT ${limit})`;
    return deleted === limit;
  }

  /**
   * The current attempt to send some content: a stored one that is not older than `since`, or the given one. Resolves
   * when it is on disk.
   */
  attempt(aid: Aid, fingerprint: Uint8Array, fresh: { nonce: Uint8Array; sentAt: number }, since: number) {
    return this.#store.commit(() => {
      this.#store.run`DELETE FROM notes_unsent WHERE sent_at < ${since}`;
      this.#store.run`
        INSERT INTO notes_unsent (aid, fingerprint, nonce, sent_at)
        VALUES (${aid}, ${fingerprint}, ${fresh.nonce}, ${fresh.sentAt}) ON CONFLICT DO NOTHING`;
      const row = this.#store.one`
        SELECT nonce, sent_at FROM notes_unsent WHERE aid = ${aid} AND fingerprint = ${fingerprint}`;
      return { nonce: blobOf(row, 'nonce'), sentAt: integerOf(row, 'sent_at') };
    }, 'now');
  }

  /** Ends an attempt after a node stored the note. The same content is a new note after that. */
  endAttempt(aid: Aid, fingerprint: Uint8Array): void {
    this.#store.commit(
      () => this.#store.run`DELETE FROM notes_unsent WHERE aid = ${aid} AND fingerprint = ${fingerprint}`,
      'soon',
    );
  }
}
