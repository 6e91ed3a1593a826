/**
 * The node's database: SQLite in WAL mode, one file, one connection. Everything that a user would
 * miss lives here; records that the DHT keeps for strangers have a database of their own.
 */
import { chmodSync, existsSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import { describeDiskError, describeOpenError } from '../disk-errors.ts';
import { SvcError } from '../errors.ts';
import { PRIVATE_FILE_MODE } from '../file-modes.ts';
import { Journal } from './journal.ts';

/**
 * A statement: constant text whose values follow, or a template whose values are bound where they stand, as in
 * store.run`DELETE FROM agents WHERE aid = ${aid}`.
 */
type Sql = string | TemplateStringsArray;

/** One row as SQLite returns it. */
export type Row = Record<string, SQLOutputValue>;

/** How surely a commit is on disk before it returns: `full` survives a power cut, `normal` a crash of the process. */
export type Durability = 'full' | 'normal';

/** What is written, and when it is on disk: whoever has something to do first that others wait for asks for that behind it. */
export interface WrittenSoon<T> {
  readonly result: T;
  readonly sure: () => Promise<void>;
}

/** Milliseconds to wait for another process's lock. */
const BUSY_TIMEOUT_MS = 5000;

/** Pages of the database that stay in memory, KiB: the ids of a hundred thousand entries of a room, which come in no order. */
const CACHE_KIB = 16_384;

/** Primary result codes of SQLite that say more than "it failed". */
const DISK_CODES: ReadonlySet<number> = new Set([8, 10, 13, 14, 23]); // READONLY, IOERR, FULL, CANTOPEN, AUTH
const DAMAGE_CODES: ReadonlySet<number> = new Set([11, 26]); // CORRUPT, NOTADB

/** Damaged rows that are told of, each once: a disk that fails may have many. */
const MAX_DAMAGE_TOLD = 1000;

/** How statements begin that change nothing. */
const READING = /^\s*(?:SELECT|PRAGMA|WITH)\b/i;

export class Store {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<Sql, { readonly statement: StatementSync; readonly writes: boolean }>();
  readonly #durability: Durability;
  readonly #file: string;
  #depth = 0;
  #undone = 0;
  /** Something was committed that has to be in the database itself. */
  #isBehind = false;
  #onLasting: (() => void) | null = null;
  #onDamage: ((row: string) => void) | null = null;
  readonly #damaged = new Set<string>();
  #journal: Journal | null = null;

  private constructor(db: DatabaseSync, file: string, durability: Durability) {
    this.#db = db;
    this.#file = file;
    this.#durability = durability;
  }

  /**
   * Opens or creates a database, for its owner only, and brings its schema up to date, all steps in
   * one transaction.
   * @param migrations the SQL of each step of the schema; steps are only ever added, a released one never changes
   * @throws SvcError `store_corrupt` where it is damaged or newer than this version, `not_writable`
   */
  static open(file: string, migrations: readonly string[], durability: Durability = 'full'): Store {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
      // Before the journal comes to be: SQLite gives it the mode of its database.
      if (existsSync(file)) chmodSync(file, PRIVATE_FILE_MODE);
      db.exec(
        `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durability}; PRAGMA foreign_keys = ON; PRAGMA cache_size = -${CACHE_KIB}`,
      );
      const store = new Store(db, file, durability);
      store.#migrate(migrations);
      return store;
    } catch (error) {
      db?.close();
      throw (
        known(error, file) ??
        new SvcError('store_corrupt', { message: `The database ${file} cannot be opened.`, cause: error })
      );
    }
  }

  /**
   * Takes room on the disk for the journal, so that commits are sure sooner. Writing is refused from then on where the
   * disk is full, as it would be without that room. No other process may use the database.
   */
  reserveJournal(): void {
    this.#journal ??= Journal.open(this.#file);
  }

  #migrate(migrations: readonly string[]): void {
    const current = Number(this.one('PRAGMA user_version')?.['user_version'] ?? 0);
    if (current > migrations.length) {
      throw new SvcError('store_corrupt', {
        message: `The database has schema version ${current}; this svcd knows ${migrations.length}. Update svcd.`,
      });
    }
    this.transaction(() => {
      for (const step of migrations.slice(current)) this.#db.exec(step);
      if (current < migrations.length) this.#db.exec(`PRAGMA user_version = ${migrations.length}`);
    });
  }

  /** @throws SvcError `not_writable` where it writes by itself, and the disk is full */
  #prepare(sql: Sql): StatementSync {
    let known = this.#statements.get(sql);
    if (known === undefined) {
      const text = typeof sql === 'string' ? sql : sql.join('?');
      known = { statement: this.#db.prepare(text), writes: !READING.test(text) };
      this.#statements.set(sql, known);
    }
    if (known.writes && this.#depth === 0) this.#mustHaveRoom();
    return known.statement;
  }

  /** Runs a statement; returns how many rows it changed. */
  run(sql: Sql, ...values: SqlValue[]): number {
    return attempt(() => Number(this.#prepare(sql).run(...values).changes));
  }

  /** The first row, or undefined. */
  one(sql: Sql, ...values: SqlValue[]): Row | undefined {
    return attempt(() => this.#prepare(sql).get(...values));
  }

  /** All rows: page what can grow, the event loop waits meanwhile. */
  all(sql: Sql, ...values: SqlValue[]): Row[] {
    return attempt(() => this.#prepare(sql).all(...values));
  }

  /**
   * Runs `work` in one transaction: all of it is kept, or nothing. A nested call is all or nothing
   * too, and kept only where the outer one is. `work` is synchronous: what an async function does
   * after its first `await` would be outside.
   * @param durability `normal` where a power cut may undo it, as long as nothing was acknowledged by it: the next
   *   full commit makes it sure too. Has no effect in a nested call
   * @throws what `work` throws; SvcError `not_writable` where the disk refuses, `store_corrupt`
   */
  transaction<T>(work: () => T, durability: Durability = this.#durability): T {
    if (this.#depth > 0) return this.#transaction(work);
    this.#mustHaveRoom();
    if (durability === this.#durability) return this.#transaction(work);
    this.#db.exec(`PRAGMA synchronous = ${durability}`);
    try {
      return this.#transaction(work);
    } finally {
      this.#db.exec(`PRAGMA synchronous = ${this.#durability}`);
    }
  }

  /**
   * As `transaction`, for what may not come back, such as access that was taken away: once it is committed it no longer
   * depends on the journal. A journal that is lost or damaged after a crash takes back what was committed before.
   */
  lasting<T>(work: () => T): T {
    return this.transaction(() => {
      const result = work();
      this.#isBehind = true;
      return result;
    });
  }

  /** Calls back each time that the journal was written into the database on purpose. */
  onLasting(listener: () => void): void {
    this.#onLasting = listener;
  }

  /** Calls back once for each row that was found damaged. */
  onDamage(listener: (row: string) => void): void {
    this.#onDamage = listener;
  }

  /** Tells of a row that is not what was written, named by its table and its key there. */
  reportDamage(row: string): void {
    if (this.#damaged.has(row) || this.#damaged.size >= MAX_DAMAGE_TOLD) return;
    this.#damaged.add(row);
    this.#onDamage?.(row);
  }

  /** Rows that this connection has changed since it was opened. */
  get changes(): number {
    return Number(this.one('SELECT total_changes() AS n')?.['n'] ?? 0);
  }

  /** As `transaction`; inside of another one it is part of that, which must not go on where it throws. */
  joined<T>(work: () => T): T {
    return this.#depth > 0 ? attempt(work) : this.transaction(work);
  }

  /** Makes sure what was committed with less durability, without waiting for it. */
  syncSoon(): void {
    this.#journal?.syncSoon();
  }

  /**
   * Runs `work` as `transaction` does, and has another thread wait for the disk: other work goes on meanwhile. What it
   * returns may be acknowledged once `sure`, which begins the wait, has settled; until then others here see what is not on
   * disk for certain.
   * @throws as `transaction`; `sure` rejects with SvcError `not_writable`
   */
  transactionSoon<T>(work: () => T): WrittenSoon<T> {
    const journal = this.#journal;
    if (journal === null || this.#depth > 0) return { result: this.transaction(work), sure: async () => {} };
    const result = this.transaction(work, 'normal');
    journal.syncSoon();
    const sure = (): Promise<void> =>
      journal.sure().catch((error: unknown) => {
        throw known(error) ?? error;
      });
    return { result, sure };
  }

  /** How many transactions, or parts of one, were taken back: until it grows, what was written is there. */
  get undone(): number {
    return this.#undone;
  }

  /** @throws SvcError `not_writable` */
  #mustHaveRoom(): void {
    if (this.#journal?.isDiskFull() === true) throw unwritable('The database');
  }

  #transaction<T>(work: () => T): T {
    const savepoint = `nested${this.#depth}`;
    const outer = this.#depth === 0;
    this.#db.exec(outer ? 'BEGIN IMMEDIATE' : `SAVEPOINT ${savepoint}`);
    this.#depth += 1;
    try {
      const result = work();
      if (result instanceof Promise) throw new TypeError('A transaction cannot wait.');
      this.#db.exec(outer ? 'COMMIT' : `RELEASE ${savepoint}`);
      if (outer && this.#isBehind) this.#checkpoint();
      return result;
    } catch (error) {
      this.#undone++;
      // SQLite has already rolled back by itself after some errors, a full disk among them.
      if (this.#db.isTransaction) this.#db.exec(outer ? 'ROLLBACK' : `ROLLBACK TO ${savepoint}; RELEASE ${savepoint}`);
      throw known(error) ?? error;
    } finally {
      this.#depth -= 1;
    }
  }

  /** The commit is on disk already: where this fails, the next one does it again. */
  #checkpoint(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(FULL)');
      this.#isBehind = false;
      this.#onLasting?.();
    } catch {
      // A full disk, for example.
    }
  }

  close(): void {
    this.#statements.clear();
    this.#journal?.close();
    this.#db.close();
  }
}

/** What may be bound: node:sqlite binds a Date or undefined as NULL without a word, so neither is here. */
export type SqlValue = null | number | bigint | string | Uint8Array;

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw known(error) ?? error;
  }
}

function unwritable(
  name: string,
  cause?: unknown,
  why = ': check its permissions and the free space on the disk.',
): SvcError {
  const message = `${name} cannot be written${why}`;
  return new SvcError('not_writable', { message, cause });
}

/** The error of the catalogue for a fault of the disk or of the file; undefined for others, such as a broken constraint. */
function known(error: unknown, file?: string): SvcError | undefined {
  if (error instanceof SvcError) return error;
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0;
  const name = file === undefined ? 'The database' : `The database ${file}`;
  // Not of SQLite: the system refuses what we do with the file ourselves.
  const refused = error instanceof Error && 'syscall' in error;
  if (refused) return unwritable(name, error, describeDiskError(error));
  if (DISK_CODES.has(code)) return unwritable(name, error, file === undefined ? undefined : describeOpenError(file));
  if (!DAMAGE_CODES.has(code)) return undefined;
  return new SvcError('store_corrupt', { message: `${name} is damaged. Restore a backup.`, cause: error });
}
