/** What a user can do about a disk that refuses. */
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from './errors.ts';

/** By the code of the system. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'the disk is full, free some room'],
  ['EDQUOT', 'your quota of this disk is used up, free some room'],
  ['EROFS', 'the disk is mounted read-only'],
  ['EACCES', 'its permissions forbid it'],
  ['EPERM', 'its permissions forbid it'],
  ['EMFILE', 'this process has too many files open, raise its limit ("ulimit -n")'],
  ['ENFILE', 'this machine has too many files open'],
]);

/** The end of a sentence on what could not be done: ` (ENOSPC): the disk is full, free some room.` */
export function describeDiskError(error: unknown): string {
  const code = codeOf(error);
  const advice = ADVICE.get(code);
  return advice === undefined ? ` (${code}).` : ` (${code}): ${advice}.`;
}

/** Descriptors that SQLite needs for a database: the file, its journal, its shared memory and its folder. */
const DESCRIPTORS = 4;

/**
 * Why SQLite cannot open a file: it does not tell. The file itself is not opened, as that could end a lock on it.
 * @returns the end of a sentence; undefined where nothing can be found out
 */
export function describeOpenError(file: string): string | undefined {
  const opened: number[] = [];
  try {
    accessSync(dirname(file), constants.R_OK | constants.W_OK | constants.X_OK);
    while (opened.length < DESCRIPTORS) opened.push(openSync(dirname(file), 'r'));
    accessSync(file, constants.R_OK | constants.W_OK);
    return undefined;
  } catch (error) {
    return describeDiskError(error);
  } finally {
    for (const one of opened) closeSync(one);
  }
}
