/** Leftovers of a killed backup: a copy of the database. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from './process.ts';

const NAME = /^backup-(\d+)\.tmp$/;

/** Temporary folder of a backup. Its name contains the process ID of the backup. */
export function backupDirectory(dataDir: string, pid: number): string {
  return join(dataDir, `backup-${pid}.tmp`);
}

/** Removes the copies of stopped processes. */
export function removeStaleBackups(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    const pid = Number(NAME.exec(name)?.[1] ?? 0);
    if (pid > 0 && !isAlive(pid)) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}
