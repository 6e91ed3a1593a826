import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { builtAt, installBundle, LOCK } from '../../../tools/bundle/install-bundle.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

function writer(files: Readonly<Record<string, string>>) {
  return async (directory: string): Promise<void> => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(directory, name, '..'), { recursive: true });
      writeFileSync(join(directory, name), text);
    }
  };
}

function built(t: TestContext) {
  const directory = join(temporaryDirectory(t), 'dist');
  const textOf = (name: string): string | null =>
    existsSync(join(directory, name)) ? readFileSync(join(directory, name), 'utf8') : null;
  return { directory, textOf };
}

test('a checkout keeps unloaded chunks of the previous bundle for a day', async (t) => {
  const { directory, textOf } = built(t);
  await installBundle(
    directory,
    true,
    writer({ 'cli/main.js': 'one', 'chunks/a.js': 'a', 'chunks/older.js': 'older' }),
  );
  writeFileSync(join(directory, LOCK), '');
  const old = new Date(Date.now() - DAY_MS - 60_000);
  utimesSync(join(directory, 'chunks/older.js'), old, old);
  await installBundle(directory, true, writer({ 'cli/main.js': 'two', 'chunks/b.js': 'b' }));
  const names = ['cli/main.js', 'chunks/a.js', 'chunks/b.js', 'chunks/older.js', LOCK];
  assert.deepEqual(names.map(textOf), ['two', 'a', 'b', null, '']);
});

test('a package contains only its own bundle', async (t) => {
  const { directory, textOf } = built(t);
  await installBundle(directory, true, writer({ 'cli/main.js': 'one', 'old/a.js': 'a' }));
  await installBundle(directory, false, writer({ 'cli/main.js': 'two' }));
  assert.deepEqual(
    [textOf('cli/main.js'), textOf('old/a.js'), existsSync(join(directory, 'old'))],
    ['two', null, false],
  );
});

test('a bundle has the time of its sources, so later edits make it outdated', async (t) => {
  const { directory } = built(t);
  assert.equal(builtAt(directory), 0);
  const before = Date.now();
  let during = 0;
  await installBundle(directory, true, async (made) => {
    await writer({ 'cli/main.js': 'one' })(made);
    while (Date.now() <= before + 1) await new Promise(setImmediate);
    during = Date.now();
  });
  const at = builtAt(directory);
  assert.ok(at >= before && at < during, `${before} ≤ ${at} < ${during}`);
});

test('a failed build keeps the previous bundle', async (t) => {
  const { directory, textOf } = built(t);
  await installBundle(directory, true, writer({ 'cli/main.js': 'one' }));
  const at = builtAt(directory);
  const failing = installBundle(directory, true, async (made) => {
    await writer({ 'cli/main.js': 'half' })(made);
    throw new Error('no more room');
  });
  await assert.rejects(failing, /no more room/);
  assert.deepEqual([textOf('cli/main.js'), builtAt(directory)], ['one', at]);
});
