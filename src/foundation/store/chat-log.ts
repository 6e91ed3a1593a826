/** The logs of conversations, and the queues of what has not arrived yet. Times are Unix milliseconds. */
import { ENTRY_STATUSES } from '../domain/chat.ts';
import { MAX_UNIX_MS } from '../domain/time.ts';
import type { PairRow, ReadState } from './chat.ts';
import { blobOf, flagOf, integerOf, orNull, orZero, textOf, within } from './row.ts';
import { rowSum } from './row-sum.ts';
import type { Row, Store } from './store.ts';

const QUEUED = ENTRY_STATUSES.indexOf('queued');
const SENT = ENTRY_STATUSES.indexOf('sent');
const DROPPED = ENTRY_STATUSES.indexOf('dropped');

/** A file that an entry names: an object of its sender's. */
export interface ChatFile {
  /** SHA-256 in lower-case hex. */
  readonly objectId: string;
  readonly name: string;
  /** Bytes. */
  readonly size: number;
}

/** What an entry says: a text, a file, or a file with a text. */
export interface ChatContent {
  /** The same on both sides; 16 bytes. */
  readonly id: Uint8Array;
  readonly at: number;
  readonly text: string | null;
  readonly file: ChatFile | null;
}

export type ChatEntry = ChatContent & Readonly<ReturnType<typeof entryOf>>;

/** Sent in place of an entry that the disk has damaged: without one, those behind it would not be sent. */
export const DAMAGED_TEXT = '[This message was damaged on the disk of its sender before it was sent.]';

/** What keeping an entry costs beside its texts, bytes. */
const ROW_OVERHEAD_BYTES = 128;

function entryOf(row: Row) {
  const objectId = orNull(textOf, row, 'object_id');
  return {
    /** The order in this log; it grows without end and has no holes. */
    seq: integerOf(row, 'seq'),
    id: blobOf(row, 'id'),
    incoming: flagOf(row, 'incoming'),
    status: ENTRY_STATUSES[integerOf(row, 'status')] ?? 'dropped',
    at: integerOf(row, 'at'),
    text: orNull(textOf, row, 'text'),
    file: objectId === null ? null : { objectId, name: orNull(textOf, row, 'name') ?? '', size: orZero(row, 'size') },
  };
}

/** The sum over what an entry says. */
function sumOf({ id, at, text, file }: ChatContent): number {
  return rowSum(id, at, text, file?.objectId ?? null, file?.name ?? null, file?.size ?? null);
}

/** Bytes that an entry takes of a queue or of a log. */
export function entryBytes({ text, file }: ChatContent): number {
  return ROW_OVERHEAD_BYTES + Buffer.byteLength(text ?? '') + Buffer.byteLength(file?.name ?? '');
}

export class ChatLog {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Adds an entry that is to be sent; returns its place in the log. The pair exists. In a transaction. */
  queue(pair: number, content: ChatContent): number {
    const bytes = entryBytes(content);
    const row = this.#store.one`
      UPDATE chat_pairs SET last_seq = last_seq + 1, last_at = ${content.at}, queued = queued + 1,
        queued_bytes = queued_bytes + ${bytes} WHERE id = ${pair} RETURNING last_seq`;
    const seq = integerOf(row, 'last_seq');
    this.#insert(pair, seq, content, QUEUED, bytes);
    return seq;
  }

  /**
   * Adds entries that came from the peer, those that are there already left out; `received` is how
   * much of the peer's stream is here then. Returns the places of the new ones. In a transaction.
   */
  receive(pair: PairRow, contents: readonly ChatContent[], received: number, now: number): number[] {
    let { lastSeq, unreadBytes } = pair;
    const added: number[] = [];
    for (const content of contents) {
      const bytes = entryBytes(content);
      if (!this.#insert(pair.id, lastSeq + 1, content, null, bytes)) continue;
      lastSeq++;
      unreadBytes += bytes;
      added.push(lastSeq);
    }
    const lastAt = added.length > 0 ? now : pair.lastAt;
    this.#store.run`
      UPDATE chat_pairs SET last_seq = ${lastSeq}, last_at = ${lastAt}, received = ${received},
        unread = unread + ${added.length}, unread_bytes = ${unreadBytes} WHERE id = ${pair.id}`;
    return added;
  }

  /** The newest entries, the newest first. */
  newest(pair: number, limit: number): ChatEntry[] {
    const rows = this.#store.all`SELECT * FROM chat_entries WHERE pair = ${pair} ORDER BY seq DESC LIMIT ${limit}`;
    return this.#intact(pair, rows);
  }

  /** Fills the empty log of a conversation that moved here, with its marks. In a transaction. */
  restore(pair: number, entries: readonly ChatEntry[], { lastSeq, lastAt }: Pick<PairRow, 'lastSeq' | 'lastAt'>): void {
    for (const entry of entries) {
      const status = entry.incoming ? null : ENTRY_STATUSES.indexOf(entry.status);
      this.#insert(pair, entry.seq, entry, status, entryBytes(entry));
    }
    this.#store.run`
      UPDATE chat_pairs SET last_seq = ${lastSeq}, last_at = ${lastAt}, (unread, unread_bytes) =
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

  /** False where an entry of this id is in the log. `status` null: it came from the peer. */
  #insert(pair: number, seq: number, content: ChatContent, status: number | null, bytes: number): boolean {
    const { id, at, text, file } = content;
    const { objectId, name, size } = file ?? { objectId: null, name: null, size: null };
    const changes = this.#store.run`
      INSERT INTO chat_entries (pair, seq, id, incoming, status, at, text, object_id, name, size, bytes, sum)
      VALUES (${pair}, ${seq}, ${id}, ${status === null ? 1 : 0}, ${status ?? 0}, ${at}, ${text},
        ${objectId}, ${name}, ${size}, ${bytes}, ${sumOf(content)}) ON CONFLICT (pair, id) DO NOTHING`;
    return changes > 0;
  }

  /** Entries that have not arrived yet, behind a place in the log, of `maxBytes` together but at least one. */
  queued(pair: number, afterSeq: number, limit: number, maxBytes: number): ChatEntry[] {
    const rows = this.#store.all`
      SELECT * FROM chat_entries WHERE pair = ${pair} AND status = 1 AND seq > ${afterSeq} ORDER BY seq LIMIT ${limit}`;
    return within(rows, 'bytes', maxBytes).map((row) => {
      const entry = entryOf(row);
      return this.#isIntact(pair, row, entry)
        ? entry
        : { ...entry, at: Math.min(Math.max(0, entry.at), MAX_UNIX_MS), text: DAMAGED_TEXT, file: null };
    });
  }

  /**
   * Marks the first `count` entries of the queue as arrived: the peer has `acked` of the stream.
   * Returns the place of the last of them; 0 where there was none. In a transaction.
   */
  markSent(pair: PairRow, count: number, acked: number): number {
    const rows = this.#store.all`
      SELECT seq, bytes FROM chat_entries WHERE pair = ${pair.id} AND status = 1 ORDER BY seq LIMIT ${count}`;
    const last = orZero(rows.at(-1), 'seq');
    const bytes = rows.reduce((sum, row) => sum + integerOf(row, 'bytes'), 0);
    this.#store.run`UPDATE chat_entries SET status = ${SENT} WHERE pair = ${pair.id} AND status = 1 AND seq <= ${last}`;
    this.#store.run`
      UPDATE chat_pairs SET acked = ${acked}, queued = queued - ${rows.length}, queued_bytes = queued_bytes - ${bytes}
      WHERE id = ${pair.id}`;
    return last;
  }

  /** Puts the last `count` entries that had arrived back into the queue: the peer has them no more. In a transaction. */
  requeue(pair: number, count: number): void {
    this.#store.run`
      UPDATE chat_entries SET status = ${QUEUED} WHERE pair = ${pair} AND seq IN
        (SELECT seq FROM chat_entries WHERE pair = ${pair} AND status = ${SENT} ORDER BY seq DESC LIMIT ${count})`;
    this.#recountQueue(pair);
  }

  /** What has not arrived never will: the relationship is over. In a transaction. */
  drop(pair: number): void {
    this.#store.run`UPDATE chat_entries SET status = ${DROPPED} WHERE pair = ${pair} AND status = 1`;
    this.#store.run`UPDATE chat_pairs SET queued = 0, queued_bytes = 0 WHERE id = ${pair}`;
  }

  /** Entries behind a place in the log, of `maxBytes` together but at least one. */
  page(pair: number, afterSeq: number, limit: number, maxBytes: number): { entries: ChatEntry[]; more: boolean } {
    const sizes = this.#store.all`
      SELECT bytes FROM chat_entries WHERE pair = ${pair} AND seq > ${afterSeq} ORDER BY seq LIMIT ${limit + 1}`;
    const shown = within(sizes.slice(0, limit), 'bytes', maxBytes).length;
    const rows = this.#store.all`
      SELECT * FROM chat_entries WHERE pair = ${pair} AND seq > ${afterSeq} ORDER BY seq LIMIT ${shown}`;
    return { entries: this.#intact(pair, rows), more: sizes.length > shown };
  }

  /** The newest entries before a place in the log, oldest first, of `maxBytes` together but at least one. */
  pageBefore(
    pair: number,
    beforeSeq: number,
    limit: number,
    maxBytes: number,
  ): { entries: ChatEntry[]; more: boolean } {
    const sizes = this.#store.all`
      SELECT bytes FROM chat_entries WHERE pair = ${pair} AND seq < ${beforeSeq} ORDER BY seq DESC LIMIT ${limit + 1}`;
    const shown = within(sizes.slice(0, limit), 'bytes', maxBytes).length;
    const rows = this.#store.all`
      SELECT * FROM chat_entries WHERE pair = ${pair} AND seq < ${beforeSeq} ORDER BY seq DESC LIMIT ${shown}`;
    return { entries: this.#intact(pair, rows).reverse(), more: sizes.length > shown };
  }

  entry(pair: number, seq: number): ChatEntry | null {
    const row = this.#store.one`SELECT * FROM chat_entries WHERE pair = ${pair} AND seq = ${seq}`;
    return (row === undefined ? undefined : this.#intact(pair, [row])[0]) ?? null;
  }

  /** The entries whose content is what was written. */
  #intact(pair: number, rows: readonly Row[]): ChatEntry[] {
    return rows.flatMap((row) => {
      const entry = entryOf(row);
      return this.#isIntact(pair, row, entry) ? [entry] : [];
    });
  }

  /** False, and told of, if the disk has changed it. */
  #isIntact(pair: number, row: Row, entry: ChatEntry): boolean {
    const sum = orNull(integerOf, row, 'sum');
    if (sum === null || sum === sumOf(entry)) return true;
    this.#store.reportDamage(`chat_entries ${pair} ${entry.seq}`);
    return false;
  }

  /** Moves the reader's mark forward, never back; what is behind it counts as read. */
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
