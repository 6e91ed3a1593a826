/** Makes folders with those above them, one by one. */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { codeOf } from './errors.ts';

/** Whether a folder is there; false also for what cannot be looked at. */
function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/**
 * Makes a folder, and those above it, where they are not there. The one of Node that does this never comes back where
 * a file system says "no such entry" of every new name, as that of `/proc` does.
 * @param mode of the folders that are made
 * @throws what the system says of the first that cannot be made
 */
export function makeDirectory(path: string, mode: number): void {
  const missing: string[] = [];
  // The root may be missing too: a drive that is not there.
  for (let at = resolve(path); !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.push(at);
  for (const one of missing.toReversed())
    try {
      mkdirSync(one, { mode });
    } catch (error) {
      // Somebody else made it just then.
      if (codeOf(error) !== 'EEXIST' || !isDirectory(one)) throw error;
    }
  // Something else has its name: the system says what.
  if (!isDirectory(path)) mkdirSync(path, { mode });
}
