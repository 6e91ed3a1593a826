/**
 * The releases beside the installed one, below the data directory, and which of them runs. The
 * state is one small file, replaced as a whole: a switch happens or does not. The supervisor writes
 * it, the daemon reads it.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { writeFileAtomic } from '../../foundation/atomic-file.ts';
import { PRIVATE_DIRECTORY_MODE } from '../../foundation/file-modes.ts';
import { lazy } from '../../foundation/lazy.ts';

const STATE_FILE = 'state.json';
const STAGING = '.staging';

const State = Type.Object({
  /** The release that runs; null for the installed one. */
  current: Type.Union([Type.String(), Type.Null()]),
  /** The one before, kept. */
  previous: Type.Union([Type.String(), Type.Null()]),
  /** A release that runs on probation. */
  trial: Type.Union([Type.Object({ to: Type.String() }), Type.Null()]),
  /** How the last switch ended. */
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

/** False for a link, and for what belongs to another user: it would run with the rights of this one. */
function isOwn(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.isSymbolicLink()) return false;
  return process.platform === 'win32' || stats.uid === process.getuid?.();
}

export class Releases {
  /** Where they lie. */
  readonly directory: string;

  /** @param dataDir absolute path of the data directory */
  constructor(dataDir: string) {
    this.directory = join(dataDir, 'releases');
  }

  /** Makes the directory where there is none. */
  open(): void {
    mkdirSync(this.directory, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  }

  /** The state; that of a fresh installation where none was written, or it is not readable. */
  read(): ReleaseState {
    try {
      const state: unknown = JSON.parse(readFileSync(join(this.directory, STATE_FILE), 'utf8'));
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

  /** A fresh directory to prepare a release in; what an earlier attempt left there is gone. */
  stage(): string {
    this.open();
    const directory = join(this.directory, STAGING);
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { mode: PRIVATE_DIRECTORY_MODE });
    return directory;
  }

  /** Takes away what an attempt left in the staging directory. */
  unstage(): void {
    rmSync(join(this.directory, STAGING), { recursive: true, force: true });
  }

  /**
   * Where a release lies, whether or not it is there.
   * @throws RangeError where that is no version: it becomes part of a path
   */
  pathOf(version: string): string {
    if (semver.valid(version) !== version) throw new RangeError(`"${version}" is no version`);
    return join(this.directory, version);
  }

  /** The program of a release; null if it is not there, or if this user did not put it there. */
  programOf(version: string): string | null {
    if (semver.valid(version) !== version) return null;
    const release = this.pathOf(version);
    const folder = join(release, 'bin');
    const program = join(folder, 'svcd');
    return [this.directory, release, folder, program].every(isOwn) ? program : null;
  }

  /** Removes every release but those named. */
  keepOnly(versions: readonly (string | null)[]): void {
    if (!existsSync(this.directory)) return;
    for (const name of readdirSync(this.directory)) {
      if (semver.valid(name) === name && !versions.includes(name))
        rmSync(join(this.directory, name), { recursive: true, force: true });
    }
  }
}
