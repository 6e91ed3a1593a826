/**
 * The records that this node keeps for the network: what it took on survives a restart, within a
 * size cap that publishers share fairly. It trusts its caller to have verified what it is offered.
 */
import type { Address } from '../../foundation/address.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { addDigest, recordDigest } from '../../foundation/records/digest.ts';
import { decodeNotePayload, removalHash } from '../../foundation/records/notes.ts';
import { compareFreshness, decodeRecord, expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { MAX_RECORDS_PER_KEY, RECORD, RECORD_DIGEST_BYTES, type RecordType } from '../../foundation/records/types.ts';
import { blobOf, integerOf, orZero, textOf } from '../../foundation/store/row.ts';
import { type Row, type SqlValue, Store } from '../../foundation/store/store.ts';
import type { Part } from './messages.ts';
import { RECORD_STORE_MIGRATIONS } from './record-store-schema.ts';
import { ReplicationQueue } from './replication-queue.ts';
import { StorageUsage } from './storage-usage.ts';
import {
  isOfMany,
  partOf,
  ROW_OVERHEAD_BYTES,
  STORED_COLUMNS,
  type StoredRecord,
  sizeOf,
  slotOf,
  toStored,
} from './stored-record.ts';
import { Tombstones } from './tombstones.ts';
import type { NoteRemoval, StoreUsage } from './types.ts';

/** Most notes that one sending node may have waiting for one recipient. */
export const MAX_NOTES_PER_SENDER = 100;
/** Expired rows that one purge removes, so that it never blocks for long. */
const PURGE_BATCH = 500;
/** Most records in one page. */
const PAGE_ROWS = 256;
/** Keys whose summaries are remembered. */
const MAX_SUMMARIES = 1024;
/** Summaries of one key: strangers choose the types that they ask for. */
const MAX_SUMMARIES_PER_KEY = 8;
/** Most rows that one record may push out. */
const MAX_EVICTIONS = 256;
/** What has to be known of a row that goes. */
const REMOVABLE = 'id, key, publisher, size';

export interface Page {
  readonly records: readonly Uint8Array[];
  /** Where the next page begins; 0 where this is the last. */
  readonly next: number;
}

/** What a node holds under a key: others that say the same hold the same. */
interface RecordSummary {
  readonly count: number;
  readonly digest: Uint8Array;
}

interface CachedSummary extends RecordSummary {
  /** Unix seconds at which the first of the records expires. */
  readonly until: number;
}

/**
 * What became of an offered record. `newer` holds what is kept instead, where it is of the same type;
 * `removed`, the token that a note was removed with.
 */
export type Offer =
  | { readonly code: 'kept' | 'full' }
  | { readonly code: 'newer'; readonly held: SignedRecord | null }
  | { readonly code: 'removed'; readonly token: Uint8Array };

interface Selection {
  /** Empty selects every type. */
  readonly types: readonly RecordType[];
  readonly part?: Part;
  /** Digests of records that a page leaves out, in hex. */
  readonly known?: ReadonlySet<string>;
}

interface RecordStoreOptions {
  /** The database file; `:memory:` keeps nothing over a restart. */
  readonly file: string;
  readonly maxBytes: number;
}

export class RecordStore {
  #open: Store | null;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #usage = new StorageUsage();
  readonly #removed: Tombstones;
  /** What is to be looked after. */
  readonly replicationQueue: ReplicationQueue;
  /** By key and types, until something changes under the key. */
  readonly #summaries = new LruCache<string, ReadonlyMap<string, CachedSummary>>({ maxEntries: MAX_SUMMARIES });

  /** @throws SvcError `store_corrupt` */
  constructor(options: RecordStoreOptions, dependencies: { readonly clock: Clock }) {
    this.#open = Store.open(options.file, RECORD_STORE_MIGRATIONS, 'normal');
    this.#store.one('PRAGMA cache_size = -1024');
    this.#clock = dependencies.clock;
    this.#maxBytes = options.maxBytes;
    this.#removed = new Tombstones(() => this.#store);
    this.replicationQueue = new ReplicationQueue(() => this.#store);
    const shares = 'SELECT publisher, SUM(size) AS bytes, COUNT(*) AS n FROM records GROUP BY publisher';
    for (const row of this.#store.all(shares))
      this.#usage.add(textOf(row, 'publisher'), integerOf(row, 'bytes'), integerOf(row, 'n'));
  }

  /** @throws SvcError `cancelled` once it is closed: work that was under way then ends here */
  get #store(): Store {
    if (this.#open !== null) return this.#open;
    throw new SvcError('cancelled', { message: 'The record store is closed.' });
  }

  /** Keeps a verified record that belongs under `key`, unless a newer one is held or there is no fair room. */
  offer(key: Uint8Array, record: SignedRecord, publisher: string): Offer {
    return this.#store.transaction(() => {
      const held = this.#store.one(
        `SELECT ${REMOVABLE}, encoded FROM records WHERE key = ? AND type = ? AND aid = ? AND note = ?`,
        ...slotOf(key, record),
      );
      if (held !== undefined) {
        const kept = decodeRecord(blobOf(held, 'encoded'));
        const order = compareFreshness(kept, record);
        if (order > 0) return { code: 'newer', held: kept };
        if (order === 0) {
          this.replicationQueue.heard([integerOf(held, 'id')], unixSeconds(this.#clock));
          return { code: 'kept' };
        }
      }
      if (this.#isReplaced(key, record)) return { code: 'newer', held: null };
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
    this.#usage.add(publisher, size, 1);
    this.#summaries.delete(toHex(key));
  }

  #remove(row: Row): void {
    if (this.#store.run('DELETE FROM records WHERE id = ?', integerOf(row, 'id')) === 0) return;
    this.#usage.add(textOf(row, 'publisher'), -integerOf(row, 'size'), -1);
    this.#summaries.delete(toHex(blobOf(row, 'key')));
  }

  /** Room among the many publishers of one key: who has most of them there gives way to who has fewer. */
  #makeRoomUnderKey(key: Uint8Array, record: SignedRecord, publisher: string): boolean {
    const { type } = record;
    if (!isOfMany(type)) return true;
    const under = 'FROM records WHERE key = ? AND +type = ?';
    const counts = this.#store.one(`SELECT SUM(publisher = ?) AS own, COUNT(*) AS n ${under}`, publisher, key, type);
    const own = orZero(counts, 'own');
    if (type === RECORD.note && own >= MAX_NOTES_PER_SENDER) return false;
    if (orZero(counts, 'n') < MAX_RECORDS_PER_KEY) return true;
    const most = `SELECT publisher, COUNT(*) AS n ${under} GROUP BY publisher ORDER BY n DESC LIMIT 1`;
    const largest = this.#store.one(most, key, type);
    if (largest === undefined || integerOf(largest, 'n') <= own + 1) return false;
    const victim = this.#store.one(
      `SELECT ${REMOVABLE} FROM records WHERE key = ? AND type = ? AND publisher = ? ORDER BY expires_at LIMIT 1`,
      key,
      type,
      textOf(largest, 'publisher'),
    );
    if (victim !== undefined) this.#remove(victim);
    return true;
  }

  /** Room in all: the largest publisher's soonest to expire go first, the newcomer's own included. */
  #makeRoom(size: number, publisher: string, expires: number): boolean {
    if (size > this.#maxBytes) return false;
    for (let i = 0; this.#usage.bytes + size > this.#maxBytes; i++) {
      if (i >= MAX_EVICTIONS) return false;
      const largest = this.#usage.largest(publisher, size);
      const soonest = `SELECT ${REMOVABLE}, expires_at FROM records WHERE publisher = ? ORDER BY expires_at LIMIT 1`;
      const victim = this.#store.one(soonest, largest);
      if (victim === undefined) return false;
      if (largest === publisher && integerOf(victim, 'expires_at') >= expires) return false;
      this.#remove(victim);
    }
    return true;
  }

  #where(key: Uint8Array, { types, part }: Selection): { readonly sql: string; readonly values: SqlValue[] } {
    const ofTypes = types.length === 0 ? '' : ` AND type IN (${types.map(() => '?').join(', ')})`;
    const ofPart = part === undefined ? '' : ' AND part % ? = ?';
    return {
      sql: `key = ? AND expires_at >= ?${ofTypes}${ofPart}`,
      values: [key, unixSeconds(this.#clock), ...types, ...(part === undefined ? [] : [part.of, part.index])],
    };
  }

  /** What is held under a key and has not expired: `limit` records at most, the same ones first every time. */
  find(key: Uint8Array, selection: Selection, limit: number): StoredRecord[] {
    const { sql, values } = this.#where(key, selection);
    const found = `SELECT ${STORED_COLUMNS} FROM records WHERE ${sql} ORDER BY part LIMIT ?`;
    return this.#store.all(found, ...values, limit).map(toStored);
  }

  /** The encoding of a record that `find` returned. */
  encoded(id: number): Uint8Array | null {
    const row = this.#store.one('SELECT encoded FROM records WHERE id = ?', id);
    return row === undefined ? null : blobOf(row, 'encoded');
  }

  /** Whole records under a key, of `maxBytes` together but at least one, from the place `from` on. */
  page(key: Uint8Array, selection: Selection, from: number, maxBytes: number): Page {
    const { sql, values } = this.#where(key, selection);
    const onPage = `SELECT id, part, size, digest FROM records WHERE ${sql} AND part >= ? ORDER BY part LIMIT ?`;
    const rows = this.#store.all(onPage, ...values, from, PAGE_ROWS);
    const records: Uint8Array[] = [];
    let bytes = 0;
    let part = from - 1;
    for (const row of rows) {
      const wanted = selection.known?.has(toHex(blobOf(row, 'digest'))) !== true;
      if (wanted) bytes += integerOf(row, 'size') - ROW_OVERHEAD_BYTES;
      if (bytes > maxBytes && integerOf(row, 'part') > part && records.length > 0) return { records, next: part + 1 };
      part = integerOf(row, 'part');
      const encoded = wanted ? this.encoded(integerOf(row, 'id')) : null;
      if (encoded !== null) records.push(encoded);
    }
    return { records, next: rows.length === PAGE_ROWS ? part + 1 : 0 };
  }

  /** How many records there are under a key, and the XOR of their digests. */
  summarize(key: Uint8Array, selection: Selection): RecordSummary {
    const name = toHex(key);
    const types = selection.part === undefined ? selection.types.join() : null;
    const known = types === null ? undefined : this.#summaries.get(name)?.get(types);
    if (known !== undefined && unixSeconds(this.#clock) <= known.until) return known;
    const { sql, values } = this.#where(key, selection);
    const rows = this.#store.all(`SELECT digest, expires_at FROM records WHERE ${sql}`, ...values);
    const digest = new Uint8Array(RECORD_DIGEST_BYTES);
    for (const row of rows) addDigest(digest, blobOf(row, 'digest'));
    const until = Math.min(...rows.map((row) => integerOf(row, 'expires_at')));
    const summary = { count: rows.length, digest, until };
    if (types !== null) {
      const kept = this.#summaries.get(name);
      const base = kept === undefined || kept.size >= MAX_SUMMARIES_PER_KEY ? [] : kept;
      this.#summaries.set(name, new Map(base).set(types, summary));
    }
    return summary;
  }

  /** Drops notes under a mailbox key whose removal tokens are shown; returns how many there were. */
  removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): number {
    return this.#store.transaction(() => removals.filter((removal) => this.#removeNote(key, removal)).length);
  }

  #removeNote(key: Uint8Array, { digest, token }: NoteRemoval): boolean {
    const row = this.#store.one(
      `SELECT ${REMOVABLE}, expires_at, encoded FROM records WHERE key = ? AND type = ? AND digest = ?`,
      key,
      RECORD.note,
      digest,
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
    this.#store.transaction(() => {
      for (const row of rows) this.#remove(row);
    });
    return rows.length === PURGE_BATCH;
  }

  usage(): StoreUsage {
    return { records: this.#usage.records, bytes: this.#usage.bytes, maxBytes: this.#maxBytes };
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
    this.#open?.close();
    this.#open = null;
  }
}
