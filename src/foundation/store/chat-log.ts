/** The logs of chats, and the queues of undelivered entries. Times are Unix milliseconds. */
import { ENTRY_STATUSES } from '../domain/chat.ts';
import { MAX_UNIX_MS } from '../domain/time.ts';
import type { PairRow, ReadState } from './chat.ts';
import { blobOf, integerOf, orZero, takeWithin } from './row.ts';
import { rowSum } from './row-sum.ts';
import type { Store } from './store.ts';
import { blob, flag, integer, nullable, ordinal, type RowOf, Table, text } from './table.ts';

const QUEUED = ENTRY_STATUSES.indexOf('queued');
const SENT = ENTRY_STATUSES.indexOf('sent');
const DROPPED = ENTRY_STATUSES.indexOf('dropped');

/** A file in an entry: an object of the sender. */
export interface ChatFile {
  /** SHA-256 in lower-case hex. */
  readonly objectId: string;
  readonly name: string;
  /** Bytes. */
  readonly size: number;
}

/** The content of an entry: a text, a file, or a file with a text. */
export interface ChatContent {
  /** Equal on both sides; 16 bytes. */
  readonly id: Uint8Array;
  readonly at: number;
  readonly text: string | null;
  readonly file: ChatFile | null;
}

const ENTRY = new Table('chat_entries', {
  /** Position in this log. Increases without gaps. */
  seq: integer,
  id: blob,
  incoming: flag,
  status: ordinal(ENTRY_STATUSES, 'dropped'),
  at: integer,
  text: nullable(text),
  objectId: nullable(text),
  name: nullable(text),
  size: nullable(integer),
  pair: integer,
  bytes: integer,
  /** The checksum of the content; null if it was stored without one. */
  sum: nullable(integer),
});

type EntryRow = RowOf<typeof ENTRY>;

export type ChatEntry = ChatContent & Pick<EntryRow, 'seq' | 'incoming' | 'status'>;

/** Sent instead of an entry that the disk damaged. Without it, later entries would not be sent. */
export const DAMAGED_TEXT = "[This message was damaged on the sender's disk before it was sent.]";

/** Bytes that a stored entry uses in addition to its texts. */
const ROW_OVERHEAD_BYTES = 128;

function entryOf({ seq, id, incoming, status, at, text, objectId, name, size }: EntryRow): ChatEntry {
  const file = objectId === null ? null : { objectId, name: name ?? '', size: size ?? 0 };
  return { seq, id, incoming, status, at, text, file };
}

/** The checksum over the content of an entry. */
function sumOf({ id, at, text, file }: ChatContent): number {
  return rowSum(id, at, text, file?.objectId ?? null, file?.name ?? null, file?.size ?? null);
}

/** Bytes of a queue or a log that an entry uses. */
export function entryBytes({ text, file }: ChatContent): number {
  return ROW_OVERHEAD_BYTES + Buffer.byteLength(text ?? '') + Buffer.byteLength(file?.name ?? '');
}

export class ChatLog {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Queues an entry for sending. Returns its position in the log. The pair must exist. Call in a transaction. */
  queue(pair: number, content: ChatContent): number {
    const bytes = entryBytes(content);
    const row = this.#store.one`
      UPDATE chat_pairs SET last_seq = last_seq + 1, last_at = ${content.at}, queued = queued + 1,
        queued_bytes = queued_bytes + ${bytes} WHERE id = ${pair} RETURNING last_seq`;
    const seq = integerOf(row, 'last_seq');
    this.#insert(pair, seq, content, 'queued');
    return seq;
  }

  /**
   * Adds entries from the peer, except for known ones. `receivedId` names the last accepted entry. Returns the positions
   * of the new entries. Call in a transaction.
   */
  receive(pair: PairRow, contents: readonly ChatContent[], receivedId: Uint8Array | null, now: number): number[] {
    let { lastSeq, unreadBytes } = pair;
    const added: number[] = [];
    for (const content of contents) {
      if (!this.#insert(pair.id, lastSeq + 1, content, 'received')) continue;
      lastSeq++;
      unreadBytes += entryBytes(content);
      added.push(lastSeq);
    }
    const lastAt = added.length > 0 ? now : pair.lastAt;
    this.#store.run`
      UPDATE chat_pairs SET last_seq = ${lastSeq}, last_at = ${lastAt}, received_id = ${receivedId},
        unread = unread + ${added.length}, unread_bytes = ${unreadBytes} WHERE id = ${pair.id}`;
    return added;
  }

  /** The newest entries, newest first. */
  newest(pair: number, limit: number): ChatEntry[] {
    return this.#intact(ENTRY.all(this.#store)`WHERE pair = ${pair} ORDER BY seq DESC LIMIT ${limit}`);
  }

  /** Fills the empty log of an imported chat and sets its positions. Call in a transaction. */
  restore(
    pair: number,
    entries: readonly ChatEntry[],
    { lastSeq, lastAt, receivedId }: Pick<PairRow, 'lastSeq' | 'lastAt' | 'receivedId'>,
  ): void {
    for (const entry of entries) this.#insert(pair, entry.seq, entry, entry.incoming ? 'received' : entry.status);
    this.#store.run`
      UPDATE chat_pairs SET last_seq = ${lastSeq}, last_at = ${lastAt}, received_id = ${receivedId}, (unread, unread_bytes) =
        (SELECT count(*), coalesce(sum(bytes), 0) FROM chat_entries WHERE pair = chat_pairs.id AND incoming = 1)
      WHERE id = ${pair}`;
    this.#recountQueue(pair);
  }

  #recountQueue(pair: number): void {
    this.#store.run`
      UPDATE chat_pairs SET (queued, queued_bytes) =
        (SELECT count(*), coalesce(sum(bytes), 0) FROM chat_entries WHERE pair = chat_pairs.id AND status = 1)
      WHERE id = ${pair}`;
  }

  /** False if the log has an entry with this ID. `status` is `received` for entries from the peer. */
  #insert(pair: number, seq: number, content: ChatContent, status: EntryRow['status']): boolean {
    const { id, at, text, file } = content;
    const measures = { bytes: entryBytes(content), sum: sumOf(content) };
    const row = { pair, seq, id, incoming: status === 'received', status, at, text, ...file, ...measures };
    return ENTRY.insert(this.#store, row, 'ON CONFLICT (pair, id) DO NOTHING') > 0;
  }

  /** Undelivered entries after a position, up to `maxBytes` in total but at least one. */
  queued(pair: number, afterSeq: number, limit: number, maxBytes: number): ChatEntry[] {
    const rows = ENTRY.all(this.#store)`
      WHERE pair = ${pair} AND status = 1 AND seq > ${afterSeq} ORDER BY seq LIMIT ${limit}`;
    return takeWithin(rows, 'bytes', maxBytes).map((row) => {
      const entry = entryOf(row);
      return this.#isIntact(row, entry)
        ? entry
        : { ...entry, at: Math.min(Math.max(0, entry.at), MAX_UNIX_MS), text: DAMAGED_TEXT, file: null };
    });
  }

  /**
   * Marks the queued entries up to a position as delivered. Returns the position of the last one; 0 if there was none.
   * Call in a transaction.
   */
  markSent(pair: number, upTo: number): number {
    const rows = this.#store.all`
      SELECT seq, id, bytes FROM chat_entries WHERE pair = ${pair} AND status = 1 AND seq <= ${upTo} ORDER BY seq`;
    const last = rows.at(-1);
    if (last === undefined) return 0;
    const bytes = rows.reduce((sum, row) => sum + integerOf(row, 'bytes'), 0);
    this.#store.run`UPDATE chat_entries SET status = ${SENT} WHERE pair = ${pair} AND status = 1 AND seq <= ${upTo}`;
    this.#store.run`
      UPDATE chat_pairs SET acked = acked + ${rows.length}, acked_id = ${blobOf(last, 'id')},
        queued = queued - ${rows.length}, queued_bytes = queued_bytes - ${bytes} WHERE id = ${pair}`;
    return integerOf(last, 'seq');
  }

  /**
   * Queues the delivered entries after a position again, at most the last `limit`, because the peer lost them. The entry
   * at `after`, if any, becomes the last acknowledged one. Call in a transaction.
   */
  requeue(pair: number, after: number, limit: number): void {
    const changed = this.#store.run`
      UPDATE chat_entries SET status = ${QUEUED} WHERE pair = ${pair} AND seq IN
        (SELECT seq FROM chat_entries WHERE pair = ${pair} AND status = ${SENT} AND seq > ${after}
         ORDER BY seq DESC LIMIT ${limit})`;
    this.#store.run`
      UPDATE chat_pairs SET acked = acked - ${changed},
        acked_id = (SELECT id FROM chat_entries WHERE pair = ${pair} AND seq = ${after}) WHERE id = ${pair}`;
    this.#recountQueue(pair);
  }

  /** The position of an entry that this side sent or queued; 0 if there is none with this ID. */
  placeOfOwn(pair: number, id: Uint8Array): number {
    const row = this.#store.one`
      SELECT seq FROM chat_entries WHERE pair = ${pair} AND id = ${id} AND incoming = 0`;
    return orZero(row, 'seq');
  }

  /** Whether the log has an entry of the peer with this ID. */
  hasReceived(pair: number, id: Uint8Array): boolean {
    const row = this.#store.one`SELECT 1 FROM chat_entries WHERE pair = ${pair} AND id = ${id} AND incoming = 1`;
    return row !== undefined;
  }

  /** Drops undelivered entries, because the relationship ended. Call in a transaction. */
  dropQueued(pair: number): void {
    this.#store.run`UPDATE chat_entries SET status = ${DROPPED} WHERE pair = ${pair} AND status = 1`;
    this.#store.run`UPDATE chat_pairs SET queued = 0, queued_bytes = 0 WHERE id = ${pair}`;
  }

  /** Entries after a position, up to `maxBytes` in total but at least one. */
  page(pair: number, afterSeq: number, limit: number, maxBytes: number): { entries: ChatEntry[]; more: boolean } {
    const sizes = this.#store.all`
      SELECT bytes FROM chat_entries WHERE pair = ${pair} AND seq > ${afterSeq} ORDER BY seq LIMIT ${limit + 1}`;
    const shown = takeWithin(sizes.slice(0, limit), 'bytes', maxBytes).length;
    const rows = ENTRY.all(this.#store)`WHERE pair = ${pair} AND seq > ${afterSeq} ORDER BY seq LIMIT ${shown}`;
    return { entries: this.#intact(rows), more: sizes.length > shown };
  }

  /** The newest entries before a position, oldest first, up to `maxBytes` in total but at least one. */
  pageBefore(
    pair: number,
    beforeSeq: number,
    limit: number,
    maxBytes: number,
  ): { entries: ChatEntry[]; more: boolean } {
    const sizes = this.#store.all`
      SELECT bytes FROM chat_entries WHERE pair = ${pair} AND seq < ${beforeSeq} ORDER BY seq DESC LIMIT ${limit + 1}`;
    const shown = takeWithin(sizes.slice(0, limit), 'bytes', maxBytes).length;
    const rows = ENTRY.all(this.#store)`WHERE pair = ${pair} AND seq < ${beforeSeq} ORDER BY seq DESC LIMIT ${shown}`;
    return { entries: this.#intact(rows).reverse(), more: sizes.length > shown };
  }

  entry(pair: number, seq: number): ChatEntry | null {
    return this.#intact(ENTRY.all(this.#store)`WHERE pair = ${pair} AND seq = ${seq}`)[0] ?? null;
  }

  /** Filters out entries that fail their checksum. */
  #intact(rows: readonly EntryRow[]): ChatEntry[] {
    return rows.flatMap((row) => {
      const entry = entryOf(row);
      return this.#isIntact(row, entry) ? [entry] : [];
    });
  }

  /** False, and reported, if the disk changed the entry. */
  #isIntact({ pair, sum }: EntryRow, entry: ChatEntry): boolean {
    if (sum === null || sum === sumOf(entry)) return true;
    this.#store.reportDamage(`chat_entries ${pair} ${entry.seq}`);
    return false;
  }

  /** Moves the read cursor forward, never back. Entries up to it count as read. */
  markRead(pair: number, upTo: number): ReadState {
    return this.#store.transaction(() => {
      const row = this.#store.one`
        UPDATE chat_pairs SET read_cursor = max(read_cursor, min(${upTo}, last_seq)), (unread, unread_bytes) =
          (SELECT chat_pairs.unread - count(*), chat_pairs.unread_bytes - coalesce(sum(bytes), 0) FROM chat_entries
           WHERE pair = chat_pairs.id AND incoming = 1 AND seq > chat_pairs.read_cursor AND seq <= ${upTo})
        WHERE id = ${pair} RETURNING read_cursor, unread`;
      return { readCursor: orZero(row, 'read_cursor'), unread: orZero(row, 'unread') };
    });
  }
}
