import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { KeyStore, keyFileName } from '../../../src/foundation/keys/key-store.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const SECRET = new Uint8Array([1, 2, 3]);
const OTHER = new Uint8Array([4, 5, 6]);

async function setUp(t: TestContext) {
  const directory = join(temporaryDirectory(t), 'keys');
  const open = () => KeyStore.open({ directory }, { log: silentLog });
  const file = (name: string): string => join(directory, keyFileName(name));
  /** All writes are complete. */
  const written = (...names: string[]) =>
    eventually('the files', async () => {
      const left = readdirSync(directory).filter((one) => one.endsWith('.tmp'));
      return left.length === 0 && names.every((name) => existsSync(file(name)));
    });
  return { directory, store: await open(), open, file, written };
}

test('a deferred file is readable immediately, and written to disk in the background with private mode', async (t) => {
  const { store, open, file, written } = await setUp(t);
  const names = Array.from({ length: 70 }, (_, n) => `notes-${n}`);
  for (const name of names) store.putSecretDeferred(name, SECRET);
  assert.deepEqual(store.getSecret('notes-69'), SECRET);
  assert.ok(!existsSync(file('notes-0')), 'no write waited for the disk');
  await written(...names);
  assert.equal(statSync(file('notes-69')).mode & 0o777, 0o600);
  const again = await open();
  for (const name of names) assert.deepEqual(again.getSecret(name), SECRET);
});

test('after settle it is on the disk, the last that was put', async (t) => {
  const { store, open, written } = await setUp(t);
  store.putSecretDeferred('notes-1', SECRET);
  store.putSecretDeferred('notes-1', OTHER);
  store.putSecretDeferred('notes-2', SECRET);
  store.flush();
  const at = await open();
  assert.deepEqual([at.getSecret('notes-1'), at.getSecret('notes-2')], [OTHER, SECRET]);
  await written('notes-1', 'notes-2');
  assert.deepEqual((await open()).getSecret('notes-1'), OTHER);
});

test('a durable write or a deletion meanwhile wins', async (t) => {
  const { store, open, written } = await setUp(t);
  // The first round of each write is running when further writes start.
  for (const name of ['a', 'b', 'c']) store.putSecretDeferred(name, SECRET);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  store.putSecret('a', OTHER);
  store.delete('b');
  assert.deepEqual([store.getSecret('a'), store.getSecret('b'), store.getSecret('c')], [OTHER, null, SECRET]);
  await written('a', 'c');
  const again = await open();
  assert.deepEqual([again.getSecret('a'), again.getSecret('b'), again.getSecret('c')], [OTHER, null, SECRET]);
});

test('after a disk error flush throws, and the file is written later', async (t) => {
  const { directory, store, open } = await setUp(t);
  rmSync(directory, { recursive: true });
  store.putSecretDeferred('notes-1', SECRET);
  assert.throws(() => store.flush(), { code: 'not_writable' });
  assert.deepEqual(store.getSecret('notes-1'), SECRET);
  const again = await open();
  assert.equal(again.getSecret('notes-1'), null);
  store.flush();
  assert.deepEqual(again.getSecret('notes-1'), SECRET);
  assert.match(readFileSync(join(directory, keyFileName('notes-1')), 'utf8'), /010203/);
});
