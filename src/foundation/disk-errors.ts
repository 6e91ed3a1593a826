/** Explains disk errors to users. */
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from './errors.ts';

/** Advice by system error code. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'the disk is full, free some space'],
  ['EDQUOT', 'your disk quota is used up, free some space'],
  ['EROFS', 'the disk is mounted read-only'],
  ['EACCES', 'permission denied, check its permissions'],
  ['EPERM', 'permission denied, check its permissions'],
  ['EMFILE', 'this process has too many files open, raise its limit ("ulimit -n")'],
  ['ENFILE', 'this machine has too many files open'],
]);

/** The end of an error message: ` (ENOSPC): the disk is full, free some space.` */
export function describeDiskError(error: unknown): string {
  const code = codeOf(error);
  const advice = ADVICE.get(code);
  return advice === undefined ? ` (${code}).` : ` (${code}): ${advice}.`;
}

/** Descriptors that SQLite needs for a database: the file, its journal, its shared memory and its folder. */
const DESCRIPTORS = 4;

/**
 * Finds out why SQLite cannot open a file, because SQLite does not say. The file itself is not opened, because closing
 * it could release a lock on it.
 * @returns the end of an error message; undefined if the cause is unknown
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
