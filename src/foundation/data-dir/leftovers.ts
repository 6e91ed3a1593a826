/** What a backup that was killed has left in a data directory: a copy of the database. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from './process.ts';

const NAME = /^backup-(\d+)\.tmp$/;

/** Where a backup keeps its copy meanwhile: its name says which process looks after it. */
export function backupDirectory(dataDir: string, pid: number): string {
  return join(dataDir, `backup-${pid}.tmp`);
}

/** Removes the copies that nobody looks after any more. */
export function removeStaleBackups(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    const pid = Number(NAME.exec(name)?.[1] ?? 0);
    if (pid > 0 && !isAlive(pid)) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}
