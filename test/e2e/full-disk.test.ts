import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Runs a program of `test/support` in a mount namespace, with the path of a disk of 16 MiB. */
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

test('a full disk ends nothing, loses nothing and leaves nothing half done', (t) =>
  onSmallDisk(t, new URL('../support/full-disk.ts', import.meta.url)));

test('what cannot be written is named at the start, and not taken for damaged', (t) =>
  onSmallDisk(t, new URL('../support/read-only-disk.ts', import.meta.url)));

test('a log on a disk that was full has all its lines once there is room again', (t) =>
  onSmallDisk(t, new URL('../support/full-log.ts', import.meta.url)));
