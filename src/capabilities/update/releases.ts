/**
 * The releases in the data directory, next to the installed one, and which release runs. The state is one small file
 * that is replaced atomically, so a switch is complete or does not happen. The supervisor writes it, the daemon reads
 * it.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { PRIVATE_DIRECTORY_MODE, writeFileAtomic } from '../../foundation/files.ts';
import { lazy } from '../../foundation/lazy.ts';

const STATE_FILE = 'state.json';
const STAGING = '.staging';

const State = Type.Object({
  /** The running release; null for the installed one. */
  current: Type.Union([Type.String(), Type.Null()]),
  /** The previous release, stored for a rollback. */
  previous: Type.Union([Type.String(), Type.Null()]),
  /** A release on trial. */
  trial: Type.Union([Type.Object({ to: Type.String() }), Type.Null()]),
  /** Result of the last switch. */
  last: Type.Union([
    Type.Object({
      version: Type.String(),
      outcome: Type.Enum(['ok', 'rolled_back']),
      error: Type.String(),
      at: Type.Number(),
    }),
    Type.Null(),
  ]),
});
export type ReleaseState = Static<typeof State>;

const NOTHING: ReleaseState = { current: null, previous: null, trial: null, last: null };
const checkState = lazy(() => Compile(State));

/** False for a symbolic link or a file of another user: it would run with this user's rights. */
function isOwn(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.isSymbolicLink()) return false;
  return process.platform === 'win32' || stats.uid === process.getuid?.();
}

export class Releases {
  /** The directory of the releases. */
  readonly directory: string;

  /** @param dataDir absolute path of the data directory */
  constructor(dataDir: string) {
    this.directory = join(dataDir, 'releases');
  }

  /** Creates the directory if it does not exist. */
  open(): void {
    mkdirSync(this.directory, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  }

  /** The stored state, or the initial state if the file is missing or unreadable. */
  read(): ReleaseState {
    const file = join(this.directory, STATE_FILE);
    // The usual case, and every two seconds: an exception would take most of the time.
    if (!existsSync(file)) return NOTHING;
    try {
      const state: unknown = JSON.parse(readFileSync(file, 'utf8'));
      return checkState().Check(state) ? state : NOTHING;
    } catch {
      return NOTHING;
    }
  }

  /** @throws SvcError `not_writable` */
  write(state: ReleaseState): void {
    this.open();
    writeFileAtomic(join(this.directory, STATE_FILE), `${JSON.stringify(state)}\n`);
  }

  /** Creates an empty directory to prepare a release in, and removes the remains of an earlier attempt. */
  stage(): string {
    this.open();
    const directory = join(this.directory, STAGING);
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { mode: PRIVATE_DIRECTORY_MODE });
    return directory;
  }

  /** Removes the staging directory. */
  unstage(): void {
    rmSync(join(this.directory, STAGING), { recursive: true, force: true });
  }

  /**
   * The directory of a release, which may not exist.
   * @throws RangeError for an invalid version, because it becomes part of a path
   */
  pathOf(version: string): string {
    if (semver.valid(version) !== version) throw new RangeError(`"${version}" is not a valid version`);
    return join(this.directory, version);
  }

  /** The program of a release; null if it does not exist or belongs to another user. */
  programOf(version: string): string | null {
    if (semver.valid(version) !== version) return null;
    const release = this.pathOf(version);
    const folder = join(release, 'bin');
    const program = join(folder, 'svcd');
    return [this.directory, release, folder, program].every(isOwn) ? program : null;
  }

  /** Removes all releases except the given ones. */
  keepOnly(versions: readonly (string | null)[]): void {
    if (!existsSync(this.directory)) return;
    for (const name of readdirSync(this.directory)) {
      if (semver.valid(name) === name && !versions.includes(name))
        rmSync(join(this.directory, name), { recursive: true, force: true });
    }
  }
}
