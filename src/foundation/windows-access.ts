/**
 * Secrets on Windows. Node's modes only set the read-only attribute there: access follows from the access list that a
 * file inherits from its folder. The folder of a user's profile is private to its user, the system and administrators.
 * Anywhere else, svcd sets the list itself.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { SvcError } from './errors.ts';
import { type Environment, variableOf } from './programs.ts';

/** Everyone, authenticated users, and users (well-known SIDs). */
const OTHERS = ['*S-1-1-0', '*S-1-5-11', '*S-1-5-32-545'];
/** The system, and administrators: they can act as any user. */
const SYSTEM = ['S-1-5-18', 'S-1-5-32-544'];

/** True if Windows itself keeps a path private. */
export function isInProfile(file: string, environment: Environment): boolean {
  const profile = variableOf(environment, 'USERPROFILE', 'win32') ?? '';
  if (!path.win32.isAbsolute(profile)) return false;
  const way = path.win32.relative(profile, file);
  return way !== '..' && !way.startsWith('..\\') && !path.win32.isAbsolute(way);
}

/** The arguments of `icacls` for a list that has only a user, the system and administrators. */
export function accessList(file: string, sid: string, isFolder: boolean): readonly string[] {
  const rights = isFolder ? ':(OI)(CI)F' : ':F';
  const granted = [sid, ...SYSTEM].map((one) => `*${one}${rights}`);
  return [file, '/inheritance:r', '/grant:r', ...granted, '/remove:g', ...OTHERS, '/q'];
}

/** Runs a program of Windows and returns its output. */
export type RunTool = (name: string, args: readonly string[]) => string;

const runTool: RunTool = (name, args) => {
  const root = variableOf(process.env, 'SYSTEMROOT', 'win32') ?? 'C:\\Windows';
  const file = path.win32.join(root, 'System32', name);
  const { status, error, stdout } = spawnSync(file, args, { encoding: 'utf8', windowsHide: true });
  if (status !== 0) throw new Error(`${name} failed`, { cause: error });
  return stdout;
};

/**
 * On Windows, lets only this user, the system and administrators access a file or folder, and everything in it. On
 * other systems, modes do that.
 * @throws SvcError `key_exposed` if the access list cannot be set
 */
export function keepFromOthers(
  file: string,
  isFolder: boolean,
  platform: string = process.platform,
  run: RunTool = runTool,
): void {
  if (platform !== 'win32' || isInProfile(file, process.env)) return;
  try {
    const [sid] = /S-1-[\d-]+/.exec(run('whoami.exe', ['/user'])) ?? [];
    if (sid === undefined) throw new Error('this user has no SID');
    run('icacls.exe', accessList(file, sid, isFolder));
  } catch (cause) {
    throw new SvcError('key_exposed', {
      message: `Other users may be able to read ${file}, and svcd cannot change that (icacls). Choose a place in the folder of your user, or on a disk with NTFS.`,
      cause,
    });
  }
}
