/** Tells whether a local process is the daemon. */
import { readFileSync } from 'node:fs';
import { isAlive } from '../../foundation/data-dir/lock.ts';

/**
 * True if the process is svcd. Behind a forwarded port or in a container the same pid belongs to another process, or to
 * none.
 */
export function isSvcd(pid: number): boolean {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return true;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('svcd');
  } catch {
    return false;
  }
}
