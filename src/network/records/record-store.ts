/**
 * The records that this node keeps for the network: what it took on survives a restart, within a
 * size cap that publishers share fairly. It trusts its caller to have verified what it is offered.
 */

import { renameSync, rmSync } from 'node:fs';
import type { Address } from '../../foundation/address.ts';
import { compareBytes, equalBytes, toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { decodeNotePayload, removalHash } from '../../foundation/records/notes.ts';
import { decodeRecord, expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { MAX_RECORDS_PER_KEY, RECORD } from '../../foundation/records/types.ts';
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

/** The database of records kept for others: no user misses what is in it, so a damaged one does not stop a start. */

/** The database of records that this node keeps for others, and of the nodes it last knew. */
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
      encoded BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX records_slot ON records (key, type, aid, note);
    CREATE INDEX records_key ON records (key, part, type, expires_at, digest, publisher);
    CREATE INDEX records_expiry ON records (expires_at);
    CREATE INDEX records_publisher ON records (publisher, expires_at);
    CREATE TABLE nodes (
      host TEXT NOT NULL,
      port INTEGER NOT NULL,
      PRIMARY KEY (host, port)
    ) STRICT, WITHOUT ROWID;
  `,
  // `heard_at`: since when a record is looked after, Unix seconds. Short-lived ones are not: their publishers renew them.
  `
    ALTER TABLE records ADD COLUMN heard_at INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX records_upkeep ON records (publisher, heard_at) WHERE expires_at - timestamp > 3600;
    CREATE INDEX records_upkeep_heard ON records (heard_at) WHERE expires_at - timestamp > 3600;
    CREATE INDEX records_upkeep_keys ON records (key) WHERE expires_at - timestamp > 3600;
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
  /** By publisher, what its records take. */
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

/** True for a file that SQLite cannot read; one of a newer svcd has no cause. */
function isDamage(error: unknown): boolean {
  return error instanceof SvcError && error.code === 'store_corrupt' && error.cause !== undefined;
}

/**
 * Opens the records. A damaged database is set aside, under its name with `.damaged`, in the place of one before it.
 * @param onAnew told where it is then
 * @throws SvcError `store_corrupt` where it is newer than this version, `not_writable`
 */
export function openRecords(file: string, onAnew: (aside: string) => void): OpenedRecords {
  try {
    return open(file);
  } catch (error) {
    if (!isDamage(error)) throw error;
    const aside = `${file}.damaged`;
    renameSync(file, aside);
    for (const beside of ['-wal', '-shm']) rmSync(`${file}${beside}`, { force: true });
    onAnew(aside);
    return open(file);
  }
}

/** Records that one transaction writes at most, so that other work has its turn in between. */
export const RECORDS_PER_COMMIT = 4;
/** Most notes that one sending node may have waiting for one recipient. */
export const MAX_NOTES_PER_SENDER = 100;
/** Expired rows that one purge removes, so that it never blocks for long. */
const PURGE_BATCH = 500;
/** Most records in one page. */
const PAGE_ROWS = 256;
/** Most rows that one record may push out. */
const MAX_EVICTIONS = 256;
/** What has to be known of a row that goes. */
const REMOVABLE = 'id, key, type, publisher, size';
/** What has to be known of a row whose encoding is read. */
const READABLE = `${REMOVABLE}, digest, encoded`;
/** What the record in the place of another is compared by. */
const COMPARABLE = 'issued_at, seq, timestamp';

/**
 * What became of an offered record. `newer` holds what is kept instead, where it is of the same type;
 * `removed`, the token that a note was removed with.
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
  /** Digests of records that the page leaves out, in hex. */
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
  /** What is to be looked after. */
  readonly replicationQueue: ReplicationQueue;
  readonly #rows = new KeyRows(() => this.#store);
  readonly #shares = new KeyShares(() => this.#store);

  /** @throws SvcError as `openRecords` */
  constructor(options: RecordStoreOptions, { clock, log }: { readonly clock: Clock; readonly log: Log }) {
    const { store, shares } = openRecords(options.file, (aside) =>
      log.warn(
        { aside },
        'the records kept for others were damaged: they were set aside, and others are collected anew',
      ),
    );
    this.#open = store;
    store.onDamage((row) =>
      log.warn({ row }, 'a record kept for others is damaged and was removed: other nodes have copies of it'),
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

  /** @throws SvcError `cancelled` once it is closed: work that was under way then ends here */
  get #store(): Store {
    if (this.#open !== null) return this.#open;
    throw new SvcError('cancelled', { message: 'The record store is closed.' });
  }

  /** Changes all that `work` changes, or nothing. */
  #change<T>(work: () => T): T {
    try {
      return this.#store.transaction(work);
    } catch (error) {
      this.#shares.clear();
      throw error;
    }
  }

  /** Runs several of the methods below in one transaction, which is kept whole or not at all; nested calls as well. */
  transaction<T>(work: () => T): T {
    return this.#change(work);
  }

  /** Settles when all that was kept so far is on disk, and survives a power cut. Rejects if the disk refuses. */
  async sure(): Promise<void> {
    await this.#journal?.flush();
  }

  /** Keeps a verified record that belongs under `key`, unless a newer one is held or there is no fair room. */
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

  /** What `offer` would answer instead of keeping a record, where something newer stands before it; null where nothing does. */
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

  /** The row, unless the disk has changed its encoding: then it is removed, and other nodes give their copies. */
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

  /** True where the agent has replaced the delegation: what is new here comes from who had the old key. */
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

  /** Room among the many publishers of one key: the largest holder there loses a record to a smaller one. */
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

  /** Room in all: the largest holder loses the records that expire first. That may be the newcomer. */
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

  /** True where what is asked of a key costs no look into the database. */
  isAtHand(key: Uint8Array): boolean {
    return this.#rows.has(key);
  }

  /** Reads what answers about a key need; how many rows that were. */
  readAhead(key: Uint8Array): number {
    return this.#rows.read(key);
  }

  /** What is held under a key and has not expired: `limit` records at most, the same ones first every time. */
  find(key: Uint8Array, selection: Selection, limit: number): KeyRow[] {
    return this.#rows.select(key, selection, unixSeconds(this.#clock)).take(limit).toArray();
  }

  /** The encoding of a record that `find` returned; a short one is read once for as long as its row is in memory. */
  encoded(found: StoredRecord & Pick<KeyRow, 'encoded'>): Uint8Array | null {
    if (found.encoded !== undefined) return found.encoded;
    const row = this.#intact(this.#store.one(`SELECT ${READABLE} FROM records WHERE id = ?`, found.id));
    if (row === undefined) return null;
    const encoded = blobOf(row, 'encoded');
    if (isKept(found)) found.encoded = encoded;
    return encoded;
  }

  /** Whole records under a key, of `maxBytes` together but at least one, from the place `from` on. */
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

  /** How many records there are under a key, and the XOR of their digests. */
  summarize(key: Uint8Array, selection: Selection): RecordSummary {
    return this.#rows.summarize(key, selection, unixSeconds(this.#clock));
  }

  /** Drops notes under a mailbox key whose removal tokens are shown; returns how many there were. */
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

  /** Removes some of what has expired; true where more may be left. */
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

  /** The nodes that were known when it was last saved. */
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

/** As `compareFreshness` of the record in a row, which need not be read for it, and another one. */
function freshnessOver(row: Row, record: SignedRecord): number {
  return (
    integerOf(row, 'issued_at') - record.delegation.issuedAt ||
    integerOf(row, 'seq') - record.seq ||
    integerOf(row, 'timestamp') - record.timestamp ||
    compareBytes(blobOf(row, 'encoded'), record.encoded)
  );
}
