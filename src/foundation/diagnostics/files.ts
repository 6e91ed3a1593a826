/** Checks of the local files: writable, and private. */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { CONFIG_FILE, KEYS_DIRECTORY } from '../data-dir/names.ts';
import { type Finding, findingsOf } from '../domain/findings.ts';
import { OTHERS_MODE, PRIVATE_FILE_MODE } from '../file-modes.ts';
import { textMember } from '../json.ts';

/** With less free space the daemon fails soon, bytes. */
const DISK_FAIL_BYTES = 50 * 2 ** 20;
/** With less free space there is a warning, bytes. */
const DISK_WARN_BYTES = 500 * 2 ** 20;
/** Key files that are checked. */
const MAX_KEY_FILES = 1000;

function examineWriting(dataDir: string): Finding {
  const data = findingsOf('data');
  const probe = join(dataDir, `.doctor-${randomUUID()}`);
  try {
    writeFileSync(probe, 'svc doctor was here\n', { mode: PRIVATE_FILE_MODE, flag: 'wx' });
    return data.pass(`the data directory ${dataDir} can be written`);
  } catch (error) {
    return data.fail(
      `the data directory ${dataDir} cannot be written (${textMember(error, 'code') || 'unknown error'})`,
      'Allow its owner to write, free disk space, or mount the disk for writing.',
    );
  } finally {
    rmSync(probe, { force: true });
  }
}

async function examineDisk(dataDir: string): Promise<Finding> {
  const disk = findingsOf('disk');
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  const what = `${Math.floor(free / 2 ** 20).toLocaleString('en')} MiB are free for ${dataDir}`;
  if (free < DISK_FAIL_BYTES)
    return disk.fail(`only ${what}`, 'Free disk space. Without it svcd cannot store anything.');
  return free < DISK_WARN_BYTES ? disk.warn(`only ${what}`, 'Free disk space soon.') : disk.pass(what);
}

/** The given paths that other users can read or change. */
function open(paths: readonly string[]): string[] {
  return paths.filter((path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    return found !== undefined && (found.mode & OTHERS_MODE) !== 0;
  });
}

function examineModes(dataDir: string, keyDir: string): Finding {
  const keys = findingsOf('keys');
  const files = readdirSync(keyDir).slice(0, MAX_KEY_FILES);
  const exposed = open([dataDir, join(dataDir, CONFIG_FILE), keyDir, ...files.map((file) => join(keyDir, file))]);
  if (exposed.length === 0) return keys.pass('no other user of this machine can read the keys');
  const [first = ''] = exposed;
  return keys.fail(
    `other users of this machine can read ${first}${exposed.length > 1 ? ` and ${exposed.length - 1} more` : ''}`,
    `Run: chmod -R go= "${first}". Replace the keys if another user may have read them.`,
  );
}

/**
 * Checks the files of a daemon on this machine.
 * @param keyDir empty if it is in the data directory
 */
export async function checkFiles(dataDir: string, keyDir: string): Promise<Finding[]> {
  const data = findingsOf('data');
  if (!existsSync(dataDir))
    return [
      data.fail(
        `the data directory ${dataDir} was deleted`,
        'Stop svcd, restore the directory from a backup, and start svcd. Data that svcd stores now is lost when it stops.',
      ),
    ];
  const keys = keyDir === '' ? join(dataDir, KEYS_DIRECTORY) : keyDir;
  try {
    // Windows has no file modes. Directories of a user are private there.
    const modes = process.platform === 'win32' || !existsSync(keys) ? [] : [examineModes(dataDir, keys)];
    return [examineWriting(dataDir), await examineDisk(dataDir), ...modes];
  } catch (error) {
    const what = `the files of ${dataDir} cannot be checked (${textMember(error, 'code') || 'unknown error'})`;
    return [data.info(what, 'Allow the user of svcd to read them.')];
  }
}
