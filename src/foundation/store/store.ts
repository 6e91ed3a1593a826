/**
 * The node's database: SQLite in WAL mode, one file, one connection. It contains all state that the user would miss.
 * Records that the DHT stores for strangers are in a separate database.
 */
import { hash } from 'node:crypto';
import { chmodSync, existsSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import { type Backoff, backoff } from '../backoff.ts';
import { SvcError } from '../errors.ts';
import { describeDiskError, describeOpenError, PRIVATE_FILE_MODE } from '../files.ts';
import { Journal } from './journal.ts';

/**
 * A statement: constant text with separate values, or a template with embedded values that are bound, such as
 * store.run`DELETE FROM agents WHERE aid = ${aid}`.
 */
type Sql = string | TemplateStringsArray;

/** One row as SQLite returns it. */
export type Row = Record<string, SQLOutputValue>;

/** Guarantee of a completed commit: `full` survives a power cut, `normal` a crash of the process. */
type Durability = 'full' | 'normal';

/** Milliseconds to wait for another process's lock. */
const BUSY_TIMEOUT_MS = 5000;

/** Page cache in KiB. Sized for the IDs of a hundred thousand entries of a group, which arrive in random order. */
const CACHE_KIB = 16_384;

/** Primary result codes of SQLite with a separate error. */
const DISK_CODES: ReadonlySet<number> = new Set([8, 10, 13, 14, 23]); // READONLY, IOERR, FULL, CANTOPEN, AUTH
const DAMAGE_CODES: ReadonlySet<number> = new Set([11, 26]); // CORRUPT, NOTADB

/** Milliseconds until the commits of a failed flush are copied to the database, if no other commit does so before. */
const REPAIR: Backoff = { firstMs: 1000, maxMs: 60_000 };

/** Damaged rows that are reported, each once. A failing disk may have many. */
const MAX_REPORTED_DAMAGE = 1000;

/** Matches statements that change nothing. */
const READ_STATEMENT = /^\s*(?:SELECT|PRAGMA|WITH)\b/i;

export class Store {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<Sql, { readonly statement: StatementSync; readonly writes: boolean }>();
  readonly #durability: Durability;
  readonly #file: string;
  #depth = 0;
  #rollbacks = 0;
  /** A commit must be copied from the journal to the database. */
  #needsCheckpoint = false;
  /** A flush failed: the journal may have a gap on disk, behind which a later flush saves nothing. */
  #hasGap = false;
  /** Failed repairs of this gap. */
  #failedRepairs = 0;
  #repairTimer: NodeJS.Timeout | null = null;
  #onRepair: (() => void) | null = null;
  #onCheckpoint: (() => void) | null = null;
  #onDamage: ((row: string) => void) | null = null;
  readonly #damaged = new Set<string>();
  #journal: Journal | null = null;

  private constructor(db: DatabaseSync, file: string, durability: Durability) {
    this.#db = db;
    this.#file = file;
    this.#durability = durability;
  }

  /**
   * Opens or creates a database that only its owner can read, and migrates its schema in one transaction.
   * @param migrations the SQL of each schema version; released versions never change
   * @throws SvcError `store_corrupt` if it is damaged or newer than this version, `not_writable`
   */
  static open(file: string, migrations: readonly string[], durability: Durability = 'full'): Store {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
      // Before SQLite creates the journal, because the journal gets the mode of its database.
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
        toSvcError(error, file) ??
        new SvcError('store_corrupt', { message: `The database ${file} cannot be opened.`, cause: error })
      );
    }
  }

  /**
   * Allocates the journal on disk in advance, so that commits are faster. After this, writes are rejected when the disk
   * is full, as without the allocation. No other process may use the database.
   */
  reserveJournal(): void {
    this.#journal ??= Journal.open(this.#file, {
      onError: () => {
        // The commits that this flush should have covered may be lost: the next commit copies them to the database.
        this.#needsCheckpoint = true;
        this.#hasGap = true;
        this.#planRepair();
      },
    });
  }

  /** Copies the commits of a failed flush to the database, also if no other commit follows. */
  #planRepair(): void {
    if (!this.#db.isOpen) return;
    this.#repairTimer ??= setTimeout(
      () => {
        this.#repairTimer = null;
        if (this.#hasGap) this.#checkpoint();
        if (!this.#hasGap) return;
        this.#failedRepairs++;
        this.#planRepair();
      },
      backoff(REPAIR, this.#failedRepairs + 1),
    ).unref();
  }

  #migrate(migrations: readonly string[]): void {
    const current = Number(this.one('PRAGMA user_version')?.['user_version'] ?? 0);
    if (current > migrations.length) {
      throw new SvcError('store_corrupt', {
        message: `The database has schema version ${current}; this svcd supports up to ${migrations.length}. Update svcd.`,
      });
    }
    if (current === migrations.length) return;
    this.transaction(() => {
      for (const step of migrations.slice(current)) this.#db.exec(step);
      this.#db.exec(`PRAGMA user_version = ${migrations.length}`);
    });
  }

  /** @throws SvcError `not_writable` if a write outside a transaction finds the disk full */
  #prepare(sql: Sql): StatementSync {
    let known = this.#statements.get(sql);
    if (known === undefined) {
      const text = typeof sql === 'string' ? sql : sql.join('?');
      known = { statement: this.#db.prepare(text), writes: !READ_STATEMENT.test(text) };
      this.#statements.set(sql, known);
    }
    if (known.writes && this.#depth === 0) this.#requireDiskSpace();
    return known.statement;
  }

  /** Runs a statement. Returns the number of changed rows. */
  run(sql: Sql, ...values: SqlValue[]): number {
    return mapErrors(() => Number(this.#prepare(sql).run(...values).changes));
  }

  /** The first row, or undefined. */
  one(sql: Sql, ...values: SqlValue[]): Row | undefined {
    return mapErrors(() => this.#prepare(sql).get(...values));
  }

  /** All rows. Blocks the event loop, so page through tables that can grow. */
  all(sql: Sql, ...values: SqlValue[]): Row[] {
    return mapErrors(() => this.#prepare(sql).all(...values));
  }

  /**
   * Runs `work` in one transaction, which is committed completely or not at all. It is on disk when this returns. A
   * nested call is atomic too, and is committed only with the outer one. `work` must be synchronous: code after an
   * `await` would run outside the transaction.
   * @throws any error of `work`; SvcError `not_writable` if the disk rejects the write, `store_corrupt`
   */
  transaction<T>(work: () => T): T {
    return this.#begin(work, this.#durability);
  }

  /**
   * Runs `work` like `transaction`, but flushes the commit on another thread. Concurrent commits share a flush, which
   * covers all earlier commits. The changes are visible immediately, so `now` must also precede an answer that only
   * repeats an earlier change.
   * @param when `now`: the promise resolves when the commit is on disk. Not in a transaction. `soon`: returns
   *   immediately, and the commit is on disk at most `SYNC_SOON_MS` later. Use it for changes that no answer depends on
   * @throws as `transaction`
   */
  commit<T>(work: () => T, when: 'now'): Promise<T>;
  commit<T>(work: () => T, when: 'soon'): T;
  commit<T>(work: () => T, when: 'now' | 'soon'): T | Promise<T> {
    return when === 'now' ? this.#commitNow(work) : this.#commitSoon(work);
  }

  async #commitNow<T>(work: () => T): Promise<T> {
    if (this.#depth > 0) throw new Error('A transaction cannot wait for the disk.');
    if (this.#journal === null) return this.transaction(work);
    const result = this.#begin(work, 'normal');
    await this.#journal.flush().catch((error: unknown) => {
      throw toSvcError(error) ?? error;
    });
    if (this.#hasGap) this.#checkpoint();
    if (this.#hasGap) throw notWritable('The database');
    return result;
  }

  #commitSoon<T>(work: () => T): T {
    if (this.#depth > 0) return this.transaction(work);
    const result = this.#begin(work, 'normal');
    this.#journal?.flushSoon();
    return result;
  }

  #begin<T>(work: () => T, durability: Durability): T {
    if (this.#depth > 0) return this.#transaction(work);
    this.#requireDiskSpace();
    if (durability === this.#durability) return this.#transaction(work);
    this.#db.exec(`PRAGMA synchronous = ${durability}`);
    try {
      return this.#transaction(work);
    } finally {
      this.#db.exec(`PRAGMA synchronous = ${this.#durability}`);
    }
  }

  /**
   * Like `transaction`, for changes that must not be undone, such as revoked access. The commit is copied from the
   * journal to the database immediately. A journal that is lost or damaged after a crash undoes commits that were not
   * copied.
   */
  durableTransaction<T>(work: () => T): T {
    return this.transaction(() => {
      const result = work();
      this.#needsCheckpoint = true;
      return result;
    });
  }

  /** Adds a listener that runs after each copy of the journal by `durableTransaction`. */
  onCheckpoint(listener: () => void): void {
    this.#onCheckpoint = listener;
  }

  /**
   * Adds a listener that runs when all commits of failed flushes have reached the disk, before any later commit. It
   * must not use the database, because a transaction may be ending.
   */
  onRepair(listener: () => void): void {
    this.#onRepair = listener;
  }

  /** Adds a listener that runs once for each damaged row. */
  onDamage(listener: (row: string) => void): void {
    this.#onDamage = listener;
  }

  /** Reports a row that fails its checksum, identified by its table and key. */
  reportDamage(row: string): void {
    if (this.#damaged.has(row) || this.#damaged.size >= MAX_REPORTED_DAMAGE) return;
    this.#damaged.add(row);
    this.#onDamage?.(row);
  }

  /** Rows changed by this connection since it was opened. */
  get changes(): number {
    return Number(this.one('SELECT total_changes() AS n')?.['n'] ?? 0);
  }

  /**
   * The number of transactions and nested transactions that were rolled back. While it is unchanged, all earlier writes
   * exist.
   */
  get rollbacks(): number {
    return this.#rollbacks;
  }

  /** @throws SvcError `not_writable` */
  #requireDiskSpace(): void {
    if (this.#journal?.isDiskFull() === true) throw notWritable('The database');
  }

  #transaction<T>(work: () => T): T {
    const savepoint = `nested${this.#depth}`;
    const outer = this.#depth === 0;
    this.#db.exec(outer ? 'BEGIN IMMEDIATE' : `SAVEPOINT ${savepoint}`);
    this.#depth += 1;
    try {
      const result = work();
      if (result instanceof Promise) throw new TypeError('A transaction must be synchronous.');
      this.#db.exec(outer ? 'COMMIT' : `RELEASE ${savepoint}`);
      if (outer && this.#needsCheckpoint) this.#checkpoint();
      return result;
    } catch (error) {
      this.#rollbacks++;
      // SQLite rolls back on its own after some errors, such as a full disk.
      if (this.#db.isTransaction) this.#db.exec(outer ? 'ROLLBACK' : `ROLLBACK TO ${savepoint}; RELEASE ${savepoint}`);
      throw toSvcError(error) ?? error;
    } finally {
      this.#depth -= 1;
    }
  }

  /** The commit is already on disk. If this fails, the next commit tries again. */
  #checkpoint(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(FULL)');
      this.#needsCheckpoint = false;
      if (this.#hasGap) this.#onRepair?.();
      this.#hasGap = false;
      this.#failedRepairs = 0;
      this.#onCheckpoint?.();
    } catch {
      // The disk may be full.
    }
  }

  close(): void {
    this.#statements.clear();
    if (this.#repairTimer !== null) clearTimeout(this.#repairTimer);
    this.#journal?.close();
    this.#db.close();
  }
}

/** Values that can be bound. Excludes Date and undefined, because node:sqlite silently binds them as NULL. */
export type SqlValue = null | number | bigint | string | Uint8Array;

function mapErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toSvcError(error) ?? error;
  }
}

function notWritable(
  name: string,
  cause?: unknown,
  why = ': check its permissions and the free space on the disk.',
): SvcError {
  const message = `${name} cannot be written${why}`;
  return new SvcError('not_writable', { message, cause });
}

/** Maps an error of the disk or the file to an SvcError; undefined for other errors, such as a violated constraint. */
function toSvcError(error: unknown, file?: string): SvcError | undefined {
  if (error instanceof SvcError) return error;
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0;
  const name = file === undefined ? 'The database' : `The database ${file}`;
  // Not an error of SQLite: the system rejected a file operation of this code.
  const refused = error instanceof Error && 'syscall' in error;
  if (refused) return notWritable(name, error, describeDiskError(error));
  if (DISK_CODES.has(code)) return notWritable(name, error, file === undefined ? undefined : describeOpenError(file));
  if (!DAMAGE_CODES.has(code)) return undefined;
  return new SvcError('store_corrupt', { message: `${name} is damaged. Restore a backup.`, cause: error });
}

/** The hash that a table stores instead of a secret. */
export function sha256Hex(secret: string): string {
  return hash('sha256', secret, 'hex');
}
