/**
 * Disks of simulated machines. Databases are real SQLite files. A power cut loses their changes since the last flush: the
 * last frames of each journal (WAL), or any part of each frame. Other files are flushed immediately.
 */
import fs, { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { DatabaseSync, type SQLInputValue, StatementSync } from 'node:sqlite';
import type { Random } from '../test/support/random.ts';

const { closeSync, ftruncateSync, openSync, readSync, writeSync, fdatasyncSync, statfsSync } = fs;

const JOURNAL_SUFFIX = '-wal';
const INDEX_SUFFIX = '-shm';
/** Sizes of the format of SQLite's journal, bytes: https://sqlite.org/fileformat2.html#walformat */
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const SECTOR_BYTES = 512;
/** Primary result codes of SQLite. */
const IOERR = 10;
const FULL = 13;
const READ_STATEMENT = /^\s*(?:SELECT|PRAGMA|WITH)\b/i;
const SYNCHRONOUS = /\bsynchronous\s*=\s*(\w+)/gi;

/** A position in a journal. The salt differs each time that SQLite starts the journal again from its beginning. */
interface Position {
  readonly salt: string;
  /** Number of salts so far. */
  readonly start: number;
  readonly frames: number;
  /** Frames that were copied to the database, which flushes both. */
  readonly copied: number;
}

/** Frames that a failed flush has lost: the system believes that they are on the disk. */
interface Hole {
  readonly salt: string;
  readonly first: number;
  readonly last: number;
}

const NOTHING: Position = { salt: '', start: 0, frames: 0, copied: 0 };

/** The journal of one database, and its flushed part. */
class FlushedJournal {
  readonly #file: string;
  #index: number | null = null;
  #flushed: Position = NOTHING;
  #salt = '';
  #starts = 0;
  #holes: Hole[] = [];
  #isOpened = false;

  constructor(file: string) {
    this.#file = file;
  }

  /** The present end of the journal. */
  position(): Position {
    try {
      this.#index ??= openSync(`${this.#file}${INDEX_SUFFIX}`, 'r');
      const index = Buffer.alloc(100);
      if (readSync(this.#index, index, 0, index.length, 0) < index.length) return NOTHING;
      const [frames, copied] = [index.readUInt32LE(16), index.readUInt32LE(96)];
      const salt = index.toString('hex', 32, 40);
      if (salt !== this.#salt) this.#starts++;
      this.#salt = salt;
      return { salt, start: this.#starts, frames, copied };
    } catch {
      return NOTHING;
    }
  }

  /** To be called after a statement. The first call counts the present journal as flushed. */
  opened(): void {
    if (this.#isOpened) return;
    const position = this.position();
    if (position === NOTHING) return;
    this.#isOpened = true;
    this.flushed(position);
  }

  /** Everything up to a position is on the disk. A flush that began earlier may end later than another one. */
  flushed(to: Position = this.position()): void {
    const { start, frames } = this.#flushed;
    if (to.start < start || (to.start === start && to.frames < frames)) return;
    this.#flushed = to;
    this.#holes = this.#holes.filter(({ salt, last }) => salt === to.salt && last > to.copied);
  }

  /** A flush failed: the frames since the last one never reach the disk. */
  lost(to: Position): void {
    const first = to.salt === this.#flushed.salt ? this.#flushed.frames + 1 : 1;
    if (to.frames >= first) this.#holes.push({ salt: to.salt, first, last: to.frames });
  }

  /** The frames that are on the disk after a power cut: none with a number for which this is false. */
  survivors(): (frame: number) => boolean {
    const now = this.position();
    const flushed = now.salt === this.#flushed.salt ? this.#flushed.frames : 0;
    const safe = Math.max(flushed, now.copied);
    const holes = this.#holes.filter(({ salt }) => salt === now.salt);
    return (frame) => frame <= safe && !holes.some(({ first, last }) => frame >= first && frame <= last);
  }

  close(): void {
    if (this.#index !== null) closeSync(this.#index);
    this.#index = null;
  }
}

/** Faults of a disk. They can be changed at any time. */
export interface DiskFaults {
  /** No statement can write. */
  isFull: boolean;
  /** Probabilities that a statement fails, 0 to 1. */
  failingWrites: number;
  failingReads: number;
  /** Probability that a flush fails, and loses what it should have flushed. */
  failingFlushes: number;
}

/** The disk of one machine: a directory of the real one. */
export class Disk {
  static readonly #all = new Map<string, Disk>();
  readonly directory: string;
  readonly faults: DiskFaults = { isFull: false, failingWrites: 0, failingReads: 0, failingFlushes: 0 };
  readonly #random: Random;
  readonly #journals = new Map<string, FlushedJournal>();

  constructor(directory: string, random: Random) {
    this.directory = directory;
    this.#random = random;
    mkdirSync(directory, { recursive: true });
    Disk.#all.set(directory, this);
  }

  /** The disk with a file; undefined for files that belong to no simulated machine. */
  static of(file: string): Disk | undefined {
    for (const disk of Disk.#all.values()) if (file.startsWith(disk.directory + sep)) return disk;
    return undefined;
  }

  journal(file: string): FlushedJournal {
    const journal = this.#journals.get(file) ?? new FlushedJournal(file);
    this.#journals.set(file, journal);
    return journal;
  }

  /** @throws an error of SQLite by the faults of this disk */
  beforeStatement(isWrite: boolean): void {
    const { isFull, failingReads, failingWrites } = this.faults;
    if (isWrite && (isFull || (failingWrites > 0 && this.#random.chance(failingWrites)))) throw sqliteError(FULL);
    if (!isWrite && failingReads > 0 && this.#random.chance(failingReads)) throw sqliteError(IOERR);
  }

  flushFails(): boolean {
    return this.faults.failingFlushes > 0 && this.#random.chance(this.faults.failingFlushes);
  }

  /** To be called after all programs of the machine were killed: their changes that were not flushed are lost. */
  cutPower(): void {
    this.#replace((to) => this.copyAfterPowerCut(to));
  }

  /** As `cutPower`, but all changes reach the disk, because only the programs were killed. */
  killed(): void {
    this.#replace((to) => this.copy(to));
  }

  /** Files that SQLite changes when a database is closed keep their state. */
  #replace(save: (to: string) => void): void {
    const to = `${this.directory}.saved`;
    save(to);
    this.closeAll();
    this.restore(to);
    rmSync(to, { recursive: true });
  }

  /** Copies the state after a power cut to another directory, which must not exist. */
  copyAfterPowerCut(to: string): void {
    this.#copy(to, (file, copy) => {
      const survives = this.#journals.get(file)?.survivors();
      if (survives !== undefined) tear(`${copy}${JOURNAL_SUFFIX}`, survives, this.#random);
    });
  }

  /** Copies everything that the programs have written, also what is not flushed, for example as a backup. */
  copy(to: string): void {
    this.#copy(to, () => {});
  }

  /** As after a crash of the file system: the journals of all databases are lost. */
  dropJournals(): void {
    for (const file of this.#files()) if (file.endsWith(JOURNAL_SUFFIX)) rmSync(file);
  }

  /** Replaces everything by a copy. No program of the machine may run. */
  restore(from: string): void {
    this.release();
    rmSync(this.directory, { recursive: true, force: true });
    cpSync(from, this.directory, { recursive: true });
  }

  /** Databases that a program has open. */
  get openDatabases(): number {
    return databases
      .values()
      .filter((state) => state?.disk === this)
      .toArray().length;
  }

  /** Closes what crashed programs have left open. */
  closeAll(): void {
    for (const [database, state] of databases) if (state?.disk === this) database.close();
    for (const [fd, file] of openJournals) {
      if (Disk.of(file) !== this) continue;
      openJournals.delete(fd);
      closeSync(fd);
    }
    this.release();
  }

  /** To be called when no program of the machine runs. All files count as flushed. */
  release(): void {
    for (const journal of this.#journals.values()) journal.close();
    this.#journals.clear();
  }

  /** The disk is no longer used. */
  remove(): void {
    this.release();
    Disk.#all.delete(this.directory);
    rmSync(this.directory, { recursive: true, force: true });
  }

  #files(): string[] {
    return readdirSync(this.directory, { recursive: true, encoding: 'utf8' })
      .map((name) => join(this.directory, name))
      .filter((file) => statSync(file).isFile());
  }

  #copy(to: string, each: (file: string, copy: string) => void): void {
    // SQLite creates the index again from the journal.
    const filter = (file: string): boolean => !file.endsWith(INDEX_SUFFIX);
    cpSync(this.directory, to, { recursive: true, filter, preserveTimestamps: true });
    for (const file of this.#journals.keys()) each(file, join(to, relative(this.directory, file)));
  }
}

/** Damages the frames of a journal that were not flushed. A frame may survive completely or in part. */
function tear(journal: string, survives: (frame: number) => boolean, random: Random): void {
  if (!existsSync(journal)) return;
  const file = openSync(journal, 'r+');
  try {
    const { size } = fs.fstatSync(file);
    const header = Buffer.alloc(HEADER_BYTES);
    if (readSync(file, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return;
    const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(8);
    if (frameBytes === FRAME_HEADER_BYTES) return;
    for (let frame = 1, at = HEADER_BYTES; at + frameBytes <= size; frame++, at += frameBytes) {
      if (survives(frame)) continue;
      const written = random.chance(0.5) ? frameBytes : random.below(frameBytes / SECTOR_BYTES) * SECTOR_BYTES;
      if (written < frameBytes)
        writeSync(file, Buffer.alloc(frameBytes - written), 0, frameBytes - written, at + written);
    }
    ftruncateSync(file, size);
  } finally {
    closeSync(file);
  }
}

function sqliteError(errcode: number): Error {
  const message = errcode === FULL ? 'database or disk is full' : 'disk I/O error';
  return Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR', errcode });
}

/** An open database of a simulated machine. */
interface OpenDatabase {
  readonly file: string;
  readonly disk: Disk;
  /** Each commit is flushed. */
  isFlushing: boolean;
}

type DatabaseMethods = {
  readonly [K in 'exec' | 'prepare' | 'close']: (
    this: DatabaseSync,
    ...values: Parameters<DatabaseSync[K]>
  ) => ReturnType<DatabaseSync[K]>;
};
type Work<T> = (this: StatementSync, ...values: SQLInputValue[]) => T;
interface StatementMethods {
  readonly run: Work<unknown>;
  readonly get: Work<unknown>;
  readonly all: Work<unknown>;
}

const ofDatabase: DatabaseMethods = Object.assign({}, DatabaseSync.prototype);
const ofStatement: StatementMethods = Object.assign({}, StatementSync.prototype);
const databases = new Map<DatabaseSync, OpenDatabase | null>();
const statements = new WeakMap<StatementSync, { readonly database: DatabaseSync; readonly isWrite: boolean }>();

function stateOf(database: DatabaseSync): OpenDatabase | null {
  const known = databases.get(database);
  if (known !== undefined) return known;
  const file = database.location() ?? '';
  const disk = Disk.of(file);
  const state = disk === undefined ? null : { file, disk, isFlushing: false };
  databases.set(database, state);
  return state;
}

/** To be called after a statement. Outside of transactions, a flushing connection has flushed its changes. */
function onChange(database: DatabaseSync, { disk, file, isFlushing }: OpenDatabase): void {
  if (isFlushing && !database.isTransaction) disk.journal(file).flushed();
}

/** @throws an error of SQLite. A commit whose flush fails is rolled back. */
function beforeExec({ disk, isFlushing }: OpenDatabase, sql: string): void {
  if (sql === 'COMMIT') disk.beforeStatement(true);
  const flushes = (sql === 'COMMIT' && isFlushing) || sql.includes('wal_checkpoint');
  if (flushes && disk.flushFails()) throw sqliteError(IOERR);
}

function watchedExec(this: DatabaseSync, sql: string): void {
  const state = stateOf(this);
  if (state !== null) beforeExec(state, sql);
  ofDatabase.exec.call(this, sql);
  if (state === null) return;
  state.disk.journal(state.file).opened();
  for (const [, level = ''] of sql.matchAll(SYNCHRONOUS)) state.isFlushing = level.toLowerCase() === 'full';
  if (sql.includes('wal_checkpoint')) state.disk.journal(state.file).flushed();
  else if (!sql.startsWith('PRAGMA')) onChange(this, state);
}

function watchedPrepare(this: DatabaseSync, sql: string): StatementSync {
  const statement = ofDatabase.prepare.call(this, sql);
  statements.set(statement, { database: this, isWrite: !READ_STATEMENT.test(sql) });
  return statement;
}

function watchedClose(this: DatabaseSync): void {
  const state = databases.get(this);
  databases.delete(this);
  ofDatabase.close.call(this);
  // SQLite has removed the index of the journal, and creates another one.
  state?.disk.journal(state.file).close();
}

function watched<T>(work: Work<T>): Work<T> {
  return function (this: StatementSync, ...values: SQLInputValue[]): T {
    const known = statements.get(this);
    const state = known === undefined ? null : stateOf(known.database);
    if (known === undefined || state === null) return work.apply(this, values);
    state.disk.beforeStatement(known.isWrite);
    const result = work.apply(this, values);
    if (known.isWrite) onChange(known.database, state);
    return result;
  };
}

type Done = (error: Error | null) => void;

/** The files that are open as journals, by descriptor. */
const openJournals = new Map<number, string>();

/** @param later runs a task after the time that a flush takes */
export function takeDatabases(later: (task: () => void) => void): void {
  const { close, closeSync: closeNow, openSync: openNow } = fs;
  // Named imports of this module cannot be replaced.
  Object.assign(DatabaseSync.prototype, { exec: watchedExec, prepare: watchedPrepare, close: watchedClose });
  Object.assign(StatementSync.prototype, {
    run: watched(ofStatement.run),
    get: watched(ofStatement.get),
    all: watched(ofStatement.all),
  });
  Object.assign(fs, {
    openSync: (...args: Parameters<typeof openSync>) => {
      const fd = openNow(...args);
      const path = String(args[0]);
      if (path.endsWith(JOURNAL_SUFFIX)) openJournals.set(fd, path.slice(0, -JOURNAL_SUFFIX.length));
      return fd;
    },
    closeSync: (fd: number) => {
      openJournals.delete(fd);
      closeNow(fd);
    },
    close: (fd: number, done?: Done) => {
      openJournals.delete(fd);
      close(fd, done);
    },
    fdatasync: (fd: number, done: Done) => flush(fd, done, later),
    statfsSync: (path: string, ...rest: []) => {
      const found = statfsSync(path, ...rest);
      return Disk.of(join(path, basename(path)))?.faults.isFull === true ? Object.assign(found, { bfree: 0 }) : found;
    },
  });
}

function flush(fd: number, done: Done, later: (task: () => void) => void): void {
  const file = openJournals.get(fd);
  const disk = file === undefined ? undefined : Disk.of(file);
  if (file === undefined || disk === undefined) {
    fdatasyncSync(fd);
    return later(() => done(null));
  }
  const journal = disk.journal(file);
  const to = journal.position();
  later(() => {
    if (disk.flushFails()) {
      journal.lost(to);
      return done(Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'fdatasync' }));
    }
    journal.flushed(to);
    done(null);
  });
}
