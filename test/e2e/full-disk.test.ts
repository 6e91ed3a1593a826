import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Runs a program of `test/support` in a mount namespace, with the path of a 16 MiB disk. */
async function onSmallDisk(t: TestContext, program: URL): Promise<void> {
  const disk = join(temporaryDirectory(t), 'disk');
  mkdirSync(disk);
  const mount = `mount -t tmpfs -o size=16m,mode=0700 none "${disk}"`;
  const allowed = await run('unshare', ['-Urm', 'sh', '-c', mount]);
  if (allowed.code !== 0) return t.skip('needs mount namespaces (unshare)');
  const command = `${mount} && exec "${process.execPath}" "${fileURLToPath(program)}" "${disk}"`;
  const { code, stderr } = await run('unshare', ['-Urm', 'sh', '-c', command]);
  assert.equal(code, 0, stderr);
}

test('a full disk stops nothing, loses nothing and leaves nothing incomplete', (t) =>
  onSmallDisk(t, new URL('../support/full-disk.ts', import.meta.url)));

test('a file that cannot be written is named at the start, and not reported as damaged', (t) =>
  onSmallDisk(t, new URL('../support/read-only-disk.ts', import.meta.url)));

test('a log on a disk that was full has all its lines once there is space again', (t) =>
  onSmallDisk(t, new URL('../support/full-log.ts', import.meta.url)));
