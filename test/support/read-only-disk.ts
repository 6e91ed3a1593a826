/**
 * Runs in a mount namespace with a directory on a separate disk. A daemon whose files cannot be written names the file,
 * stops, and treats no file as damaged. Fails with the first violation.
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TestDaemon } from './daemon.ts';
import { runOk } from './programs.ts';

const [disk = ''] = process.argv.slice(2);
const dataDir = join(disk, 'data');

const names = (): string[] => readdirSync(dataDir, { recursive: true }).map(String).sort();

const first = await TestDaemon.start({ dataDir });
const aid = await first.newAgent();
await first.kill('SIGTERM');
const before = names();
for (const name of ['svcd.db', 'records.db', 'lock.db']) {
  const file = join(dataDir, name);
  await runOk('mount', ['--bind', file, file]);
  await runOk('mount', ['-o', 'remount,bind,ro', file]);
  const output = new RegExp(
    `ended with 1:\\n(?:.*INFO.*\\n)*svcd: The (?:database|lock) ${file} cannot be .* \\(EROFS\\): the disk is mounted read-only`,
  );
  await assert.rejects(TestDaemon.start({ dataDir }), output);
  await runOk('umount', [file]);
  assert.deepEqual(names(), before);
}
await runOk('mount', ['-o', 'remount,ro', disk]);
await assert.rejects(TestDaemon.start({ dataDir }), /ended with 1:\nsvcd: .*the disk is mounted read-only/);
await assert.rejects(
  TestDaemon.start({ dataDir: join(disk, 'new') }),
  /ended with 1:\nsvcd: The data directory .* cannot be/,
);
await runOk('mount', ['-o', 'remount,rw', disk]);
assert.deepEqual(names(), before);
await using again = await TestDaemon.start({ dataDir });
await again.call('GET', `/agents/${aid}`);
