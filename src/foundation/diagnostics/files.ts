/** What the daemon keeps on this machine: that it can be kept, and that nobody else can read it. */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { CONFIG_FILE, KEYS_DIRECTORY } from '../data-dir/names.ts';
import { type Finding, findingsOf } from '../domain/findings.ts';
import { OTHERS_MODE, PRIVATE_FILE_MODE } from '../file-modes.ts';
import { textMember } from '../json.ts';

/** Less room than this stops the daemon soon, bytes. */
const DISK_FAIL_BYTES = 50 * 2 ** 20;
/** Less room than this is worth a word, bytes. */
const DISK_WARN_BYTES = 500 * 2 ** 20;
/** Key files that are looked at. */
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
      'Give its owner the right to write, free room on the disk, or mount it for writing.',
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
  if (free < DISK_FAIL_BYTES) return disk.fail(`only ${what}`, 'Free some room: without it nothing new is kept.');
  return free < DISK_WARN_BYTES ? disk.warn(`only ${what}`, 'Free some room before it is used up.') : disk.pass(what);
}

/** The paths among the given ones that others than their owner can read or change. */
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
  if (exposed.length === 0) return keys.pass('nobody else on this machine can read the keys');
  const [first = ''] = exposed;
  return keys.fail(
    `others on this machine can read ${first}${exposed.length > 1 ? ` and ${exposed.length - 1} more` : ''}`,
    `chmod -R go= "${first}" — and replace the keys where somebody else may have read them.`,
  );
}

/**
 * Examines the files of a daemon on this machine.
 * @param keyDir empty where it is below the data directory
 */
export async function checkFiles(dataDir: string, keyDir: string): Promise<Finding[]> {
  const data = findingsOf('data');
  if (!existsSync(dataDir))
    return [
      data.fail(
        `the data directory ${dataDir} is gone`,
        'Stop svcd, put it back from a backup, and start svcd again: what it keeps now is lost when it ends.',
      ),
    ];
  const keys = keyDir === '' ? join(dataDir, KEYS_DIRECTORY) : keyDir;
  try {
    // Windows has no modes: the directory of a user is closed to others.
    const modes = process.platform === 'win32' || !existsSync(keys) ? [] : [examineModes(dataDir, keys)];
    return [examineWriting(dataDir), await examineDisk(dataDir), ...modes];
  } catch (error) {
    const what = `the files of ${dataDir} cannot be looked at (${textMember(error, 'code') || 'unknown error'})`;
    return [data.info(what, 'Give the user that svcd runs as the right to look at them.')];
  }
}
