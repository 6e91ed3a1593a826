/** Whether a process of this machine is the daemon that is meant. */
import { readFileSync } from 'node:fs';
import { isAlive } from '../../foundation/data-dir/process.ts';

/**
 * True where the process of this number is a daemon of ours. Behind a forwarded port or in a
 * container the same number means another process, or none.
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
