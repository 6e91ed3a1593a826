/** One process at a time does a piece of work; the others wait for it. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between two looks at whether it is our turn. */
const LOOK_MS = 50;

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function take(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/** Whether the process that holds a lock is there no more. */
function isLeft(lock: string): boolean {
  try {
    const holder = Number(readFileSync(lock, 'utf8'));
    // Nothing stands in it yet: it was made this moment.
    if (holder > 0) process.kill(holder, 0);
    return false;
  } catch (error) {
    return hasCode(error, 'ESRCH');
  }
}

/** @param lock a file that is there while the work goes on */
export async function alone(lock: string, work: () => Promise<void>): Promise<void> {
  while (!take(lock)) {
    if (isLeft(lock)) rmSync(lock, { force: true });
    else await delay(LOOK_MS);
  }
  try {
    await work();
  } finally {
    rmSync(lock, { force: true });
  }
}
