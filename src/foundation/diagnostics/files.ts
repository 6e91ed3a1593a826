/** Checks of the local files: writable, and private. */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { CONFIG_FILE, KEYS_DIRECTORY } from '../data-dir/paths.ts';
import { DISK_FAIL_BYTES, DISK_WARN_BYTES } from '../domain/disk.ts';
import { type Finding, findingsOf } from '../domain/findings.ts';
import { OTHERS_MODE, PRIVATE_FILE_MODE } from '../files.ts';
import { textMember } from '../json.ts';

/** Key files that are checked. */
const MAX_KEY_FILES = 1000;

function reasonOf(error: unknown): string {
  return textMember(error, 'code') || 'unknown error';
}

function examineWriting(dataDir: string): Finding {
  const data = findingsOf('data');
  const probe = join(dataDir, `.doctor-${randomUUID()}`);
  try {
    writeFileSync(probe, 'svc doctor was here\n', { mode: PRIVATE_FILE_MODE, flag: 'wx' });
    return data.pass(`the data directory ${dataDir} can be written`, {
      code: 'data_writable',
      values: { directory: dataDir },
    });
  } catch (error) {
    const reason = reasonOf(error);
    return data.fail(
      `the data directory ${dataDir} cannot be written (${reason})`,
      'Allow its owner to write, free disk space, or mount the disk for writing.',
      { code: 'data_not_writable', values: { directory: dataDir, error: reason } },
    );
  } finally {
    rmSync(probe, { force: true });
  }
}

async function examineDisk(dataDir: string): Promise<Finding> {
  const disk = findingsOf('disk');
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  const mebibytes = Math.floor(free / 2 ** 20);
  const values = { mebibytes, directory: dataDir };
  const what = `${mebibytes.toLocaleString('en')} MiB are free for ${dataDir}`;
  if (free < DISK_FAIL_BYTES)
    return disk.fail(`only ${what}`, 'Free disk space. Without it svcd cannot store anything.', {
      code: 'disk_full',
      values,
    });
  return free < DISK_WARN_BYTES
    ? disk.warn(`only ${what}`, 'Free disk space soon.', { code: 'disk_low', values })
    : disk.pass(what, { code: 'disk_free', values });
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
  if (exposed.length === 0)
    return keys.pass('no other user of this machine can read the keys', { code: 'keys_private' });
  const [first = ''] = exposed;
  const more = exposed.length - 1;
  const command = `chmod -R go= "${first}"`;
  return keys.fail(
    `other users of this machine can read ${first}${more > 0 ? ` and ${more} more` : ''}`,
    `Run: ${command}. Replace the keys if another user may have read them.`,
    { code: more > 0 ? 'keys_exposed' : 'key_exposed', values: { file: first, n: more, command } },
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
        { code: 'data_missing', values: { directory: dataDir } },
      ),
    ];
  const keys = keyDir === '' ? join(dataDir, KEYS_DIRECTORY) : keyDir;
  try {
    // Windows has no file modes. Directories of a user are private there.
    const modes = process.platform === 'win32' || !existsSync(keys) ? [] : [examineModes(dataDir, keys)];
    return [examineWriting(dataDir), await examineDisk(dataDir), ...modes];
  } catch (error) {
    const reason = reasonOf(error);
    return [
      data.info(`the files of ${dataDir} cannot be checked (${reason})`, 'Allow the user of svcd to read them.', {
        code: 'data_unreadable',
        values: { directory: dataDir, error: reason },
      }),
    ];
  }
}
