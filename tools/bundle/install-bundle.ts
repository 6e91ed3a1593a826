/** Installs a bundle while programs of the previous one may still run. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** Its modification time is the time when the bundled sources were read. bin/launch.js compares it with the sources. */
const STAMP = 'built';
/** Lock file of concurrent builds in a checkout. */
export const LOCK = '.lock';
/** How long files of an earlier bundle are kept for running programs, milliseconds. */
const KEPT_MS = 24 * 60 * 60 * 1000;

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
}

/** When the sources of the bundle in a directory were read, milliseconds since 1970. 0 without a bundle. */
export function builtAt(directory: string): number {
  return statSync(join(directory, STAMP), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/**
 * Has a bundle written and moves it into a directory file by file, so that no program sees a partial file.
 * @param keepOld true if programs of an earlier bundle may still run
 */
export async function installBundle(
  directory: string,
  keepOld: boolean,
  write: (directory: string) => Promise<void>,
): Promise<void> {
  const started = new Date();
  mkdirSync(directory, { recursive: true });
  const made = mkdtempSync(join(directory, '.new-'));
  try {
    await write(made);
    writeFileSync(join(made, STAMP), '');
    utimesSync(join(made, STAMP), started, started);
    // Imported files first, then the programs, then the stamp.
    const order = (file: string): number => (file === STAMP ? 2 : file.startsWith('chunks') ? 0 : 1);
    const files = filesIn(made).sort((a, b) => order(a) - order(b));
    for (const file of files) {
      mkdirSync(dirname(join(directory, file)), { recursive: true });
      renameSync(join(made, file), join(directory, file));
    }
    removeOthers(directory, new Set(files), keepOld ? started.getTime() - KEPT_MS : Number.POSITIVE_INFINITY);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Removes files of other bundles that are older than a time, milliseconds since 1970. */
function removeOthers(directory: string, own: ReadonlySet<string>, before: number): void {
  for (const file of filesIn(directory)) {
    const path = join(directory, file);
    if (own.has(file) || file === LOCK || file.startsWith('.new-')) continue;
    if ((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? before) < before) rmSync(path, { force: true });
  }
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory() && readdirSync(join(directory, entry.name)).length === 0)
      rmdirSync(join(directory, entry.name));
  }
}
