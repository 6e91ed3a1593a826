/** Creates a folder and its missing parents. */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { codeOf } from './errors.ts';

/** True if a folder exists; false also if it cannot be accessed. */
function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/**
 * Creates a folder and its missing parents. Node's own recursive `mkdir` never returns on file systems that report "no
 * such entry" for every new name, such as `/proc`.
 * @param mode of the created folders
 * @throws the system error of the first folder that cannot be created
 */
export function makeDirectory(path: string, mode: number): void {
  const missing: string[] = [];
  // The root can be missing too, such as a drive.
  for (let at = resolve(path); !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.push(at);
  for (const one of missing.toReversed())
    try {
      mkdirSync(one, { mode });
    } catch (error) {
      // Another process created it at the same time.
      if (codeOf(error) !== 'EEXIST' || !isDirectory(one)) throw error;
    }
  // Something else has this name: lets the system report the error.
  if (!isDirectory(path)) mkdirSync(path, { mode });
}
