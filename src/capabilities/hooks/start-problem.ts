/** Why a program could not be started: the error of the system, its cause and the remedy. */
import { codeOf } from '../../foundation/errors.ts';

/** Causes by error code. `passes`: the same start may succeed later without a change by the owner. */
const CAUSES: Readonly<Record<string, { readonly text: string; readonly passes: boolean }>> = {
  EAGAIN: { text: 'This user can start no more processes now. Stop some, or raise the limit.', passes: true },
  ENOMEM: { text: 'The memory of this machine is full.', passes: true },
  EMFILE: { text: 'svcd has no free file descriptors. Raise its limit of open files.', passes: true },
  ENFILE: { text: 'This machine has no free file descriptors.', passes: true },
  ENOSPC: { text: 'The disk of the data directory is full.', passes: true },
  EDQUOT: { text: 'The disk quota of this user is used up.', passes: true },
  EROFS: { text: 'The data directory is read-only.', passes: true },
  EIO: { text: 'The disk of the data directory fails.', passes: true },
  ENOENT: { text: 'Its folder or the shell does not exist.', passes: false },
  ENOTDIR: { text: 'Its folder is no folder.', passes: false },
  EACCES: { text: 'svcd may not enter its folder.', passes: false },
  EPERM: { text: 'The system does not permit it.', passes: false },
};

/** True if the owner need not change anything: the system had no room. */
export function isShortage(error: unknown): boolean {
  return CAUSES[codeOf(error)]?.passes === true;
}

/** The error of a program for which the shell found no process. */
export function noProcess(): Error {
  return Object.assign(new Error('the shell cannot fork'), { code: 'EAGAIN' });
}

/** A sentence with the cause. */
export function startProblem(error: unknown): string {
  const code = codeOf(error);
  const { text = 'Check its folder.' } = CAUSES[code] ?? {};
  return `The program could not be started (${code}). ${text}`;
}
