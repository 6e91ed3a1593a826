/** The database of records kept for others: no user misses what is in it, so a damaged one does not stop a start. */
import { renameSync, rmSync } from 'node:fs';
import { SvcError } from '../../foundation/errors.ts';
import { type Row, Store } from '../../foundation/store/store.ts';
import { RECORD_STORE_MIGRATIONS } from './record-store-schema.ts';

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
