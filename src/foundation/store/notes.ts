/** The tables of the mailboxes. Times are Unix milliseconds. */
import type { Aid } from '../identity/aid.ts';
import { GroupCommit } from './group-commit.ts';
import { aidFromRow, blobOf, integerOf, orNull, orZero, within } from './row.ts';
import { rowSum } from './row-sum.ts';
import type { Row, Store } from './store.ts';

/** A note as it is kept for a local agent. */
export interface NewNote extends Omit<StoredNote, 'id'> {
  readonly aid: Aid;
}

export type StoredNote = Readonly<ReturnType<typeof noteOf>>;

/** How much waits in a mailbox. */
export interface MailboxLoad {
  readonly count: number;
  readonly bytes: number;
}

/** What keeping a note costs beside its body, bytes. */
const ROW_OVERHEAD_BYTES = 256;

function noteOf(row: Row) {
  return {
    /** Grows with every note: the order of lists, and their cursor. */
    id: integerOf(row, 'id'),
    /** 32 bytes. */
    messageId: blobOf(row, 'message_id'),
    sender: aidFromRow(row, 'sender'),
    msgType: integerOf(row, 'msg_type'),
    body: blobOf(row, 'body'),
    sentAt: integerOf(row, 'sent_at'),
    receivedAt: integerOf(row, 'received_at'),
    /** The digest of its record, and the token that removes the copies of it. */
    digest: blobOf(row, 'digest'),
    token: blobOf(row, 'token'),
  };
}

/** The sum over what a note says. */
function sumOf({ messageId, sender, msgType, body, sentAt }: Omit<StoredNote, 'id'>): number {
  return rowSum(messageId, sender, msgType, body, sentAt);
}

/** Bytes that a note takes of a mailbox. */
export function noteSize(body: Uint8Array): number {
  return body.length + ROW_OVERHEAD_BYTES;
}

/** Ids of notes that are remembered of each agent. */
export const MAX_SEEN_NOTES = 100_000;
/** Ids above it that are forgotten together. */
const FORGET_TOGETHER = 10_000;

export class NoteStore {
  readonly #store: Store;
  /** Ids that were added since there were last looked at, by agent. */
  readonly #seenSince = new Map<Aid, number>();
  readonly #commits: GroupCommit;

  /** @param commits what others write at the same time is made sure together with that of this one */
  constructor(store: Store, commits: GroupCommit = new GroupCommit((work) => store.transaction(work))) {
    this.#store = store;
    this.#commits = commits;
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** As `GroupCommit.run`. */
  together<T>(work: () => T): Promise<T> {
    return this.#commits.run(work);
  }

  /**
   * Keeps a note; false, and nothing kept, where its message id was seen before or its agent is not here.
   * @param isKnown as `markSeen`
   */
  add(note: NewNote, seenUntil: number, isKnown = false): boolean {
    const { aid, messageId, sender, msgType, body, sentAt, receivedAt, digest, token } = note;
    return this.#store.transaction(() => {
      const fresh = this.#store.run`
        INSERT INTO notes_seen (aid, message_id, until, known)
        SELECT aid, ${messageId}, ${seenUntil}, ${Number(isKnown)} FROM agents WHERE aid = ${aid} ON CONFLICT DO NOTHING`;
      if (fresh === 0) return false;
      this.#boundSeen(aid);
      this.#store.run`
        INSERT INTO notes (aid, message_id, sender, msg_type, body, sent_at, received_at, digest, token, size, sum)
        VALUES (${aid}, ${messageId}, ${sender}, ${msgType}, ${body}, ${sentAt}, ${receivedAt}, ${digest}, ${token},
          ${noteSize(body)}, ${sumOf(note)})`;
      return true;
    });
  }

  seen(aid: Aid, messageId: Uint8Array): boolean {
    return this.#store.one`SELECT 1 FROM notes_seen WHERE aid = ${aid} AND message_id = ${messageId}` !== undefined;
  }

  /** True while a note is kept, taken or not. */
  isKept(aid: Aid, messageId: Uint8Array): boolean {
    return this.#store.one`SELECT 1 FROM notes WHERE aid = ${aid} AND message_id = ${messageId}` !== undefined;
  }

  /** What waits for an agent: of everybody, or of one sender. */
  load(aid: Aid, sender: Aid | null = null): MailboxLoad {
    const row = this.#store.one`
      SELECT count(*) AS n, sum(size) AS bytes FROM notes
      WHERE aid = ${aid} AND taken_at IS NULL AND (${sender} IS NULL OR sender = ${sender})`;
    return { count: orZero(row, 'n'), bytes: orZero(row, 'bytes') };
  }

  /** What waits for an agent, by sender. */
  senders(aid: Aid): Map<Aid, MailboxLoad> {
    const rows = this.#store.all`
      SELECT sender, count(*) AS n, sum(size) AS bytes FROM notes WHERE aid = ${aid} AND taken_at IS NULL GROUP BY sender`;
    return new Map(
      rows.map((row) => [aidFromRow(row, 'sender'), { count: orZero(row, 'n'), bytes: orZero(row, 'bytes') }]),
    );
  }

  /** Notes that wait for an agent with an id above `afterId`, oldest first, of `maxBytes` together but at least one. */
  page(aid: Aid, afterId: number, limit: number, maxBytes: number): { notes: StoredNote[]; more: boolean } {
    const sizes = this.#store.all`
      SELECT size FROM notes WHERE aid = ${aid} AND taken_at IS NULL AND id > ${afterId} ORDER BY id LIMIT ${limit + 1}`;
    const shown = within(sizes.slice(0, limit), 'size', maxBytes).length;
    const rows = this.#store.all`
      SELECT * FROM notes WHERE aid = ${aid} AND taken_at IS NULL AND id > ${afterId} ORDER BY id LIMIT ${shown}`;
    return { notes: this.#intact(rows), more: sizes.length > shown };
  }

  /** Every note of an agent, oldest first: those that were handed out too, while it is not known whether they arrived. */
  all(aid: Aid): NewNote[] {
    const rows = this.#store.all`SELECT * FROM notes WHERE aid = ${aid} ORDER BY id`;
    return this.#intact(rows).map((one) => ({ ...one, aid }));
  }

  /** The notes whose content is what was written. */
  #intact(rows: readonly Row[]): StoredNote[] {
    return rows.map(noteOf).filter((note, i) => {
      const sum = orNull(integerOf, rows[i], 'sum');
      if (sum === null || sum === sumOf(note)) return true;
      this.#store.reportDamage(`notes ${note.id}`);
      return false;
    });
  }

  /** Message ids that are not shown again and until when, those that are remembered for longest first. */
  seenOf(aid: Aid, limit: number): { messageId: Uint8Array; until: number }[] {
    const rows = this.#store.all`
      SELECT message_id, until FROM notes_seen WHERE aid = ${aid} ORDER BY until DESC LIMIT ${limit}`;
    return rows.map((row) => ({ messageId: blobOf(row, 'message_id'), until: integerOf(row, 'until') }));
  }

  /**
   * Remembers a message id, so that its note is not shown.
   * @param isKnown the owner knows the sender: ids of strangers are forgotten first
   */
  markSeen(aid: Aid, messageId: Uint8Array, until: number, isKnown = false): void {
    this.#store.run`
      INSERT INTO notes_seen (aid, message_id, until, known) VALUES (${aid}, ${messageId}, ${until}, ${Number(isKnown)})
      ON CONFLICT DO NOTHING`;
    this.#boundSeen(aid);
  }

  /** An id that is forgotten early costs at most that a copy of its note is shown once more. */
  #boundSeen(aid: Aid): void {
    const added = (this.#seenSince.get(aid) ?? 0) + 1;
    this.#seenSince.set(aid, added % FORGET_TOGETHER);
    if (added < FORGET_TOGETHER) return;
    const above =
      orZero(this.#store.one`SELECT count(*) AS n FROM notes_seen WHERE aid = ${aid}`, 'n') - MAX_SEEN_NOTES;
    if (above > 0)
      this.#store.run`
        DELETE FROM notes_seen WHERE aid = ${aid} AND message_id IN
          (SELECT message_id FROM notes_seen WHERE aid = ${aid} ORDER BY known, until LIMIT ${above})`;
  }

  /** Marks the oldest waiting notes as handed out, and returns them, in one step. */
  take(aid: Aid, limit: number, maxBytes: number, now: number): { notes: StoredNote[]; more: boolean } {
    return this.#store.transaction(() => {
      const page = this.page(aid, 0, limit, maxBytes);
      for (const { id } of page.notes) this.#store.run`UPDATE notes SET taken_at = ${now} WHERE id = ${id}`;
      return page;
    });
  }

  /** Marks one waiting note as handed out, and returns it; null where there is none. */
  takeOne(aid: Aid, messageId: Uint8Array, now: number): StoredNote | null {
    const row = this.#store.one`
      UPDATE notes SET taken_at = ${now} WHERE aid = ${aid} AND message_id = ${messageId} AND taken_at IS NULL RETURNING *`;
    return (row === undefined ? undefined : this.#intact([row])[0]) ?? null;
  }

  /** Deletes notes that were handed out. */
  discard(ids: readonly number[]): void {
    this.#store.transaction(() => {
      for (const id of ids) this.#store.run`DELETE FROM notes WHERE id = ${id} AND taken_at IS NOT NULL`;
    });
  }

  /** Gives notes back that were handed out and did not arrive. */
  giveBack(ids: readonly number[]): void {
    this.#store.transaction(() => {
      for (const id of ids) this.#store.run`UPDATE notes SET taken_at = NULL WHERE id = ${id}`;
    });
  }

  /** After a start: nobody waits for an answer any more. Returns how many notes are back. */
  giveAllBack(): number {
    return this.#store.run('UPDATE notes SET taken_at = NULL WHERE taken_at IS NOT NULL');
  }

  /** How many notes wait, of those agents that have some. */
  waiting(): Map<Aid, number> {
    const rows = this.#store.all('SELECT aid, count(*) AS n FROM notes WHERE taken_at IS NULL GROUP BY aid');
    return new Map(rows.map((row) => [aidFromRow(row, 'aid'), integerOf(row, 'n')]));
  }

  /** Forgets message ids whose time is over; true where more may be left. */
  purgeSeen(now: number, limit: number): boolean {
    const gone = this.#store.run`
      DELETE FROM notes_seen WHERE (aid, message_id) IN
        (SELECT aid, message_id FROM notes_seen WHERE until < ${now} LIMIT ${limit})`;
    return gone === limit;
  }

  /** The attempt that is under way for a content: the one kept since `since`, or the given one. See `Store.transactionSoon`. */
  attempt(aid: Aid, fingerprint: Uint8Array, fresh: { nonce: Uint8Array; sentAt: number }, since: number) {
    return this.#store.transactionSoon(() => {
      this.#store.run`DELETE FROM notes_unsent WHERE sent_at < ${since}`;
      this.#store.run`
        INSERT INTO notes_unsent (aid, fingerprint, nonce, sent_at)
        VALUES (${aid}, ${fingerprint}, ${fresh.nonce}, ${fresh.sentAt}) ON CONFLICT DO NOTHING`;
      const row = this.#store.one`
        SELECT nonce, sent_at FROM notes_unsent WHERE aid = ${aid} AND fingerprint = ${fingerprint}`;
      return { nonce: blobOf(row, 'nonce'), sentAt: integerOf(row, 'sent_at') };
    });
  }

  /** Somebody keeps the note: the same content sent again is another note. Nobody waits until that is on disk. */
  settleAttempt(aid: Aid, fingerprint: Uint8Array): void {
    this.#store.transaction(
      () => this.#store.run`DELETE FROM notes_unsent WHERE aid = ${aid} AND fingerprint = ${fingerprint}`,
      'normal',
    );
    this.#store.syncSoon();
  }
}
