/**
 * The records that this node keeps for the network. They survive a restart, within a size limit that publishers share
 * fairly. The caller must verify records first.
 */

import { rmSync } from 'node:fs';
import type { Address } from '../../foundation/address.ts';
import { compareBytes, equalBytes, toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { replaceFile } from '../../foundation/files.ts';
import type { Log } from '../../foundation/log.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { decodeNotePayload, removalHash } from '../../foundation/records/notes.ts';
import { decodeRecord, expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { MAX_RECORDS_PER_KEY, RECORD, type RecordType } from '../../foundation/records/types.ts';
import { Journal } from '../../foundation/store/journal.ts';
import { blobOf, integerOf, orZero, textOf } from '../../foundation/store/row.ts';
import { type Row, Store } from '../../foundation/store/store.ts';
import { SourceTally } from '../../foundation/tally.ts';
import {
  isKept,
  isOfMany,
  type KeyRow,
  KeyRows,
  KeyShares,
  partOf,
  type RecordSummary,
  type Selection,
  type StoredRecord,
  sizeOf,
  slotOf,
} from './key-rows.ts';
import type { Page } from './messages.ts';
import { ReplicationQueue, Tombstones } from './replication-queue.ts';
import type { NoteRemoval, StoreUsage } from './types.ts';

/** The database of records of other agents, and of the nodes known last. */
export const RECORD_STORE_MIGRATIONS: readonly string[] = [
  `
    CREATE TABLE records (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      key BLOB NOT NULL,
      type INTEGER NOT NULL,
      aid TEXT NOT NULL,
      note INTEGER NOT NULL,
      part INTEGER NOT NULL,
      issued_at INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      timestamp INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      publisher TEXT NOT NULL,
      size INTEGER NOT NULL,
      digest BLOB NOT NULL,
      encoded BLOB NOT NULL,
      -- When replication last checked the record, Unix seconds. It ignores short-lived records, which their publishers
      -- renew.
      heard_at INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX records_slot ON records (key, type, aid, note);
    CREATE INDEX records_key ON records (key, part, type, expires_at, digest, publisher);
    CREATE INDEX records_expiry ON records (expires_at);
    CREATE INDEX records_publisher ON records (publisher, expires_at);
    CREATE INDEX records_upkeep ON records (publisher, heard_at) WHERE expires_at - timestamp > 3600;
    CREATE INDEX records_upkeep_heard ON records (heard_at) WHERE expires_at - timestamp > 3600;
    CREATE INDEX records_upkeep_keys ON records (key) WHERE expires_at - timestamp > 3600;
    CREATE TABLE nodes (
      host TEXT NOT NULL,
      port INTEGER NOT NULL,
      PRIMARY KEY (host, port)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE removed_notes (
      digest BLOB PRIMARY KEY,
      token BLOB NOT NULL,
      until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX removed_notes_until ON removed_notes (until);
  `,
];

export interface OpenedRecords {
  readonly store: Store;
  /** Size of the records of each publisher. */
  readonly shares: readonly Row[];
}

function open(file: string): OpenedRecords {
  const store = Store.open(file, RECORD_STORE_MIGRATIONS, 'normal');
  try {
    store.one('PRAGMA cache_size = -1024');
    const shares = store.all('SELECT publisher, SUM(size) AS bytes, COUNT(*) AS n FROM records GROUP BY publisher');
    return { store, shares };
  } catch (error) {
    store.close();
    throw error;
  }
}

/** True for a file that SQLite cannot read. The error for a file of a newer svcd has no cause. */
function isDamage(error: unknown): boolean {
  return error instanceof SvcError && error.code === 'store_corrupt' && error.cause !== undefined;
}

/**
 * Opens the records. A damaged database must not prevent the start, because other nodes have copies: it is renamed to
 * `.damaged`, replacing an earlier one.
 * @param onAnew called with the new name
 * @throws SvcError `store_corrupt` if it is newer than this version, `not_writable`
 */
export function openRecords(file: string, onAnew: (aside: string) => void): OpenedRecords {
  try {
    return open(file);
  } catch (error) {
    if (!isDamage(error)) throw error;
    const aside = `${file}.damaged`;
    replaceFile(file, aside);
    for (const beside of ['-wal', '-shm']) rmSync(`${file}${beside}`, { force: true });
    onAnew(aside);
    return open(file);
  }
}

/** Maximum number of records in one transaction, so that other work has its turn in between. */
export const RECORDS_PER_COMMIT = 4;
/** Maximum number of notes that one sending node may have waiting for one recipient. */
export const MAX_NOTES_PER_SENDER = 100;
/** Expired rows that one purge removes, so that a purge is short. */
const PURGE_BATCH = 500;
/** Maximum number of records in one page. */
const PAGE_ROWS = 256;
/** The last rows that `recent` searches. */
const RECENT_ROWS = 2000;
/** Maximum number of rows that one record may evict. */
const MAX_EVICTIONS = 256;
/** Columns needed to remove a row. */
const REMOVABLE = 'id, key, type, publisher, size';
/** Columns needed to read the encoding of a row. */
const READABLE = `${REMOVABLE}, digest, encoded`;
/** Columns needed to compare a record with its predecessor. */
const COMPARABLE = 'issued_at, seq, timestamp';

/**
 * The result of an offer. `newer` has the record that is kept instead, if it is of the same type; `removed` has the
 * token that removed the note.
 */
export type Offer =
  | { readonly code: 'kept' | 'full' }
  | NewerOffer
  | { readonly code: 'removed'; readonly token: Uint8Array };

export interface NewerOffer {
  readonly code: 'newer';
  readonly held: SignedRecord | null;
}

interface PageSelection extends Selection {
  /** Digests of records that the page omits, in hex. */
  readonly known?: ReadonlySet<string>;
}

interface RecordStoreOptions {
  /** The database file; `:memory:` keeps nothing over a restart. */
  readonly file: string;
  readonly maxBytes: number;
}

export class RecordStore {
  #open: Store | null;
  readonly #journal: Journal | null;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  /** Bytes of each publisher, and the number of records. */
  readonly #bytes = new SourceTally();
  #records = 0;
  readonly #removed: Tombstones;
  /** The records that replication checks. */
  readonly replicationQueue: ReplicationQueue;
  readonly #rows = new KeyRows(() => this.#store);
  readonly #shares = new KeyShares(() => this.#store);

  /** @throws SvcError as `openRecords` */
  constructor(options: RecordStoreOptions, { clock, log }: { readonly clock: Clock; readonly log: Log }) {
    const { store, shares } = openRecords(options.file, (aside) =>
      log.warn(
        { aside },
        'the stored records of other nodes were damaged: the file was renamed, and records are collected again',
      ),
    );
    this.#open = store;
    store.onDamage((row) =>
      log.warn({ row }, 'a stored record of another node is damaged and was removed: other nodes have copies of it'),
    );
    this.#journal = Journal.open(options.file, { reserves: false });
    this.#clock = clock;
    this.#maxBytes = options.maxBytes;
    this.#removed = new Tombstones(() => this.#store);
    this.replicationQueue = new ReplicationQueue(() => this.#store);
    for (const row of shares) {
      this.#bytes.add(textOf(row, 'publisher'), integerOf(row, 'bytes'));
      this.#records += integerOf(row, 'n');
    }
  }

  /** @throws SvcError `cancelled` after close, which ends running work */
  get #store(): Store {
    if (this.#open !== null) return this.#open;
    throw new SvcError('cancelled', { message: 'The record store is closed.' });
  }

  /** Applies all changes of `work`, or none. */
  #change<T>(work: () => T): T {
    try {
      return this.#store.transaction(work);
    } catch (error) {
      this.#shares.clear();
      throw error;
    }
  }

  /** Runs several of the methods below in one transaction. Calls may nest. */
  transaction<T>(work: () => T): T {
    return this.#change(work);
  }

  /** Settles when all records so far are on disk and survive a power failure. Rejects if the disk refuses. */
  async sure(): Promise<void> {
    await this.#journal?.flush();
  }

  /** Keeps a verified record that belongs under `key`, unless there is a newer one or no fair room. */
  offer(key: Uint8Array, record: SignedRecord, publisher: string): Offer {
    // protocol-dht.md, step 6
    return this.#change(() => {
      const held = this.#heldFor(key, record);
      const order = held === undefined ? -1 : freshnessOver(held, record);
      const newer = this.#newer(key, record, held, order);
      if (newer !== null) return newer;
      if (held !== undefined && order === 0) {
        this.replicationQueue.heard([integerOf(held, 'id')], unixSeconds(this.#clock));
        return { code: 'kept' };
      }
      const token = record.type === RECORD.note ? this.#removed.tokenOf(recordDigest(record.encoded)) : null;
      if (token !== null) return { code: 'removed', token };
      if (held === undefined && !this.#makeRoomUnderKey(key, record, publisher)) return { code: 'full' };
      const more = sizeOf(record) - (held === undefined ? 0 : integerOf(held, 'size'));
      if (!this.#makeRoom(more, publisher, expiresAt(record))) return { code: 'full' };
      if (held !== undefined) this.#remove(held);
      this.#insert(key, record, publisher);
      return { code: 'kept' };
    });
  }

  /** The refusal that `offer` would return because of something newer; null without one. */
  newer(key: Uint8Array, record: SignedRecord): NewerOffer | null {
    const held = this.#heldFor(key, record);
    return this.#newer(key, record, held, held === undefined ? -1 : freshnessOver(held, record));
  }

  #heldFor(key: Uint8Array, record: SignedRecord): Row | undefined {
    return this.#intact(
      this.#store.one(
        `SELECT ${READABLE}, ${COMPARABLE} FROM records WHERE key = ? AND type = ? AND aid = ? AND note = ?`,
        ...slotOf(key, record),
      ),
    );
  }

  /** The row, unless the disk has changed its encoding. Then it is removed, because other nodes have copies. */
  #intact(row: Row | undefined): Row | undefined {
    if (row === undefined || equalBytes(recordDigest(blobOf(row, 'encoded')), blobOf(row, 'digest'))) return row;
    this.#store.reportDamage(`records ${integerOf(row, 'id')}`);
    this.#change(() => this.#remove(row));
    return undefined;
  }

  #newer(key: Uint8Array, record: SignedRecord, held: Row | undefined, order: number): NewerOffer | null {
    if (held !== undefined && order > 0) return { code: 'newer', held: decodeRecord(blobOf(held, 'encoded')) };
    return order !== 0 && this.#isReplaced(key, record) ? { code: 'newer', held: null } : null;
  }

  /** True if the agent has replaced the delegation, so that the record may come from a thief of the old key. */
  #isReplaced(key: Uint8Array, { type, aid, delegation }: SignedRecord): boolean {
    if (isOfMany(type)) return false;
    const row = this.#store.one('SELECT MAX(issued_at) AS newest FROM records WHERE key = ? AND aid = ?', key, aid);
    return orZero(row, 'newest') > delegation.issuedAt;
  }

  #insert(key: Uint8Array, record: SignedRecord, publisher: string): void {
    const { delegation, seq, timestamp, encoded } = record;
    const size = sizeOf(record);
    const version = [delegation.issuedAt, seq, timestamp, expiresAt(record)];
    const held = [publisher, size, recordDigest(encoded), encoded, unixSeconds(this.#clock)];
    this.#store.run(
      `INSERT INTO records
         (key, type, aid, note, part, issued_at, seq, timestamp, expires_at, publisher, size, digest, encoded, heard_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...slotOf(key, record),
      partOf(record),
      ...version,
      ...held,
    );
    this.#bytes.add(publisher, size);
    this.#records++;
    this.#rows.forget(key);
    this.#shares.add(key, record.type, publisher, 1);
  }

  #remove(row: Row): void {
    if (this.#store.run('DELETE FROM records WHERE id = ?', integerOf(row, 'id')) === 0) return;
    const [key, publisher] = [blobOf(row, 'key'), textOf(row, 'publisher')];
    this.#bytes.add(publisher, -integerOf(row, 'size'));
    this.#records--;
    this.#rows.forget(key);
    this.#shares.add(key, integerOf(row, 'type'), publisher, -1);
  }

  /** Room among the publishers of one key: the largest publisher loses a record to a smaller one. */
  #makeRoomUnderKey(key: Uint8Array, record: SignedRecord, publisher: string): boolean {
    // protocol-dht.md, step 7
    const { type } = record;
    if (!isOfMany(type)) return true;
    const shares = this.#shares.of(key, type);
    const own = shares.of(publisher);
    if (type === RECORD.note && own >= MAX_NOTES_PER_SENDER) return false;
    if (shares.total < MAX_RECORDS_PER_KEY) return true;
    const largest = shares.largest(publisher, 1);
    if (largest === publisher) return false;
    const victim = this.#store.one(
      `SELECT ${REMOVABLE} FROM records WHERE key = ? AND type = ? AND publisher = ? ORDER BY expires_at LIMIT 1`,
      key,
      type,
      largest,
    );
    if (victim !== undefined) this.#remove(victim);
    return true;
  }

  /** Room in the store: the largest publisher loses the records that expire first. That may be the new record. */
  #makeRoom(size: number, publisher: string, expires: number): boolean {
    // protocol-dht.md, step 8
    if (size > this.#maxBytes) return false;
    for (let i = 0; this.#bytes.total + size > this.#maxBytes; i++) {
      if (i >= MAX_EVICTIONS) return false;
      const largest = this.#bytes.largest(publisher, size);
      const soonest = `SELECT ${REMOVABLE}, expires_at FROM records WHERE publisher = ? ORDER BY expires_at LIMIT 1`;
      const victim = this.#store.one(soonest, largest);
      if (victim === undefined) return false;
      if (largest === publisher && integerOf(victim, 'expires_at') >= expires) return false;
      this.#remove(victim);
    }
    return true;
  }

  /** True if a request for a key needs no database query. */
  isAtHand(key: Uint8Array): boolean {
    return this.#rows.has(key);
  }

  /** Reads the rows of a key into memory. Returns their number. */
  readAhead(key: Uint8Array): number {
    return this.#rows.read(key);
  }

  /** Records under a key that have not expired, at most `limit`, in a stable order. */
  find(key: Uint8Array, selection: Selection, limit: number): KeyRow[] {
    return this.#rows.select(key, selection, unixSeconds(this.#clock)).take(limit).toArray();
  }

  /** Records of a type, the last stored first. Only the last rows are searched, so that this is fast. */
  recent(type: RecordType, limit: number): SignedRecord[] {
    const rows = this.#store.all(
      `SELECT ${READABLE} FROM (SELECT ${READABLE}, expires_at FROM records ORDER BY id DESC LIMIT ?)
       WHERE type = ? AND expires_at > ? LIMIT ?`,
      RECENT_ROWS,
      type,
      unixSeconds(this.#clock),
      limit,
    );
    return rows.filter((row) => this.#intact(row) !== undefined).map((row) => decodeRecord(blobOf(row, 'encoded')));
  }

  /** The encoding of a record from `find`. Short encodings are cached with their rows. */
  encoded(found: StoredRecord & Pick<KeyRow, 'encoded'>): Uint8Array | null {
    if (found.encoded !== undefined) return found.encoded;
    const row = this.#intact(this.#store.one(`SELECT ${READABLE} FROM records WHERE id = ?`, found.id));
    if (row === undefined) return null;
    const encoded = blobOf(row, 'encoded');
    if (isKept(found)) found.encoded = encoded;
    return encoded;
  }

  /** Whole records under a key from position `from`, up to `maxBytes` in total but at least one. */
  page(key: Uint8Array, { known, ...selection }: PageSelection, from: number, maxBytes: number): Page {
    const records: Uint8Array[] = [];
    let bytes = 0;
    let part = from - 1;
    let seen = 0;
    for (const row of this.#rows.select(key, selection, unixSeconds(this.#clock))) {
      if (row.part < from) continue;
      if (seen >= PAGE_ROWS && row.part > part) return { records, next: part + 1 };
      const wanted = known?.has(toHex(row.digest)) !== true;
      if (wanted) bytes += row.bytes;
      if (bytes > maxBytes && row.part > part && records.length > 0) return { records, next: part + 1 };
      part = row.part;
      seen++;
      const encoded = wanted ? this.encoded(row) : null;
      if (encoded !== null) records.push(encoded);
    }
    return { records, next: 0 };
  }

  /** Number of records under a key, and the XOR of their digests. */
  summarize(key: Uint8Array, selection: Selection): RecordSummary {
    return this.#rows.summarize(key, selection, unixSeconds(this.#clock));
  }

  /** Removes notes under a mailbox key whose removal tokens are shown. Returns their number. */
  removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): number {
    return this.#change(() => removals.filter((removal) => this.#removeNote(key, removal)).length);
  }

  #removeNote(key: Uint8Array, { digest, token }: NoteRemoval): boolean {
    const row = this.#intact(
      this.#store.one(
        `SELECT ${READABLE}, expires_at FROM records WHERE key = ? AND type = ? AND digest = ?`,
        key,
        RECORD.note,
        digest,
      ),
    );
    if (row === undefined) return false;
    const payload = decodeNotePayload(decodeRecord(blobOf(row, 'encoded')).payload);
    if (payload === null || !equalBytes(payload.removalHash, removalHash(token))) return false;
    this.#remove(row);
    this.#removed.add(digest, token, integerOf(row, 'expires_at'));
    return true;
  }

  /** Removes some expired records. True if more may be left. */
  purge(): boolean {
    const now = unixSeconds(this.#clock);
    this.#removed.purge(now);
    const rows = this.#store.all(`SELECT ${REMOVABLE} FROM records WHERE expires_at < ? LIMIT ?`, now, PURGE_BATCH);
    this.#change(() => {
      for (const row of rows) this.#remove(row);
    });
    return rows.length === PURGE_BATCH;
  }

  usage(): StoreUsage {
    return { records: this.#records, bytes: this.#bytes.total, maxBytes: this.#maxBytes };
  }

  /** The nodes that were last saved. */
  savedNodes(): Address[] {
    const rows = this.#store.all('SELECT host, port FROM nodes');
    return rows.map((row) => ({ host: textOf(row, 'host'), port: integerOf(row, 'port') }));
  }

  saveNodes(nodes: readonly Address[]): void {
    this.#store.transaction(() => {
      this.#store.run('DELETE FROM nodes');
      for (const node of nodes)
        this.#store.run('INSERT OR IGNORE INTO nodes (host, port) VALUES (?, ?)', node.host, node.port);
    });
  }

  close(): void {
    if (this.#open === null) return;
    this.#journal?.close();
    this.#open.close();
    this.#open = null;
  }
}

/** As `compareFreshness` of a stored record and another record, without decoding the row. */
function freshnessOver(row: Row, record: SignedRecord): number {
  return (
    integerOf(row, 'issued_at') - record.delegation.issuedAt ||
    integerOf(row, 'seq') - record.seq ||
    integerOf(row, 'timestamp') - record.timestamp ||
    compareBytes(blobOf(row, 'encoded'), record.encoded)
  );
}
