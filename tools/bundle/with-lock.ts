/** Runs a task in one process at a time. Other processes wait. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Poll interval, milliseconds. */
const POLL_MS = 50;

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function acquire(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/** True if the process that held the lock has exited. */
function isAbandoned(lock: string): boolean {
  try {
    const holder = Number(readFileSync(lock, 'utf8'));
    // An empty file: its process has just created it.
    if (holder > 0) process.kill(holder, 0);
    return false;
  } catch (error) {
    return hasCode(error, 'ESRCH');
  }
}

/** @param lock a file that exists while the task runs */
export async function withLock(lock: string, work: () => Promise<void>): Promise<void> {
  while (!acquire(lock)) {
    if (isAbandoned(lock)) rmSync(lock, { force: true });
    else await delay(POLL_MS);
  }
  try {
    await work();
  } finally {
    rmSync(lock, { force: true });
  }
}
