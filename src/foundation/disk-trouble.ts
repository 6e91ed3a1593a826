/** What a user can do about a disk that refuses. */
import { codeOf } from './errors.ts';

/** By the code of the system. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'the disk is full, free some room'],
  ['EDQUOT', 'your quota of this disk is used up, free some room'],
  ['EROFS', 'the disk is mounted read-only'],
  ['EACCES', 'its permissions forbid it'],
  ['EPERM', 'its permissions forbid it'],
]);

/** The end of a sentence on what could not be done: ` (ENOSPC): the disk is full, free some room.` */
export function diskTrouble(error: unknown): string {
  const code = codeOf(error);
  const advice = ADVICE.get(code);
  return advice === undefined ? ` (${code}).` : ` (${code}): ${advice}.`;
}
