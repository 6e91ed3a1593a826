import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FilesRoot } from '../../../src/capabilities/objects/files-root.ts';
import { withCode } from '../../support/link-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

function world(t: TestContext) {
  const directory = temporaryDirectory(t);
  const outside = join(directory, 'outside');
  mkdirSync(join(outside, 'folder'), { recursive: true });
  writeFileSync(join(outside, 'secret'), 'secret');
  writeFileSync(join(outside, 'folder', 'secret'), 'secret');
  const files = join(directory, 'files');
  const root = FilesRoot.open(files);
  mkdirSync(join(files, 'sub'));
  writeFileSync(join(files, 'sub', 'a.txt'), 'a');
  return { directory, outside, files, root };
}

async function pathOf(root: FilesRoot, path: string): Promise<string> {
  const { handle, path: inside } = await root.open(path);
  await handle.close();
  return inside;
}

test('opens files below the folder, by absolute and relative path, and through links that stay inside', async (t) => {
  const { root, files } = world(t);
  symlinkSync('sub/a.txt', join(files, 'link'));
  symlinkSync(files, join(files, 'sub', 'loop'));
  for (const path of ['sub/a.txt', join(files, 'sub/a.txt'), './sub/../sub/a.txt', 'link', 'sub/loop/sub/a.txt'])
    assert.equal(await pathOf(root, path), 'sub/a.txt');
});

test('no path opens a file outside', async (t) => {
  const { root, files, outside, directory } = world(t);
  symlinkSync(join(outside, 'secret'), join(files, 'link'));
  symlinkSync(join(outside, 'folder'), join(files, 'folder'));
  symlinkSync('link', join(files, 'link-to-link'));
  // A sibling whose name starts with the name of the folder.
  mkdirSync(`${files}-2`);
  writeFileSync(`${files}-2/x`, 'x');
  const bad = [
    join(outside, 'secret'),
    '../outside/secret',
    'link',
    'link-to-link',
    'folder/secret',
    `${files}-2/x`,
    '/etc/passwd',
    '..',
    '.',
    'sub',
    'a\0b',
    directory,
  ];
  for (const path of bad) await assert.rejects(root.open(path), withCode('invalid_request'), path);
  await assert.rejects(root.open('nothing'), withCode('not_found'));
  await assert.rejects(root.open('sub/a.txt/b'), withCode('not_found'));
});

test('the folder of the daemon is reserved, and a pipe cannot be an object', async (t) => {
  const { root, files } = world(t);
  writeFileSync(join(root.incoming, 'x'), 'partial upload');
  await assert.rejects(root.open('.svcd/incoming/x'), withCode('invalid_request'));
  execFileSync('mkfifo', [join(files, 'pipe')]);
  await assert.rejects(root.open('pipe'), withCode('invalid_request'));
});

test('a folder that becomes a link between two checks leads nowhere else', async (t) => {
  const { root, files, outside } = world(t);
  mkdirSync(join(files, 'folder'));
  writeFileSync(join(files, 'folder', 'secret'), 'inside');
  let link = false;
  const flip = (): void => {
    if (link) rmSync(join(files, 'folder'));
    else renameSync(join(files, 'folder'), join(files, 'kept'));
    if (link) renameSync(join(files, 'kept'), join(files, 'folder'));
    else symlinkSync(join(outside, 'folder'), join(files, 'folder'));
    link = !link;
  };
  for (let i = 0; i < 40; i++) {
    const opening = root.open('folder/secret').catch(() => null);
    for (let turns = 0; turns < i % 8; turns++) await new Promise((resolve) => setImmediate(resolve));
    flip();
    const file = await opening;
    if (file === null) continue;
    assert.equal(await file.handle.readFile('utf8'), 'inside');
    await file.handle.close();
  }
});

test('a destination is below the folder, and its folders are created', async (t) => {
  const { root, files, outside } = world(t);
  assert.equal(await root.destination('new/deep/file'), join(files, 'new/deep/file'));
  assert.equal(await root.destination(join(files, 'b')), join(files, 'b'));
  symlinkSync(outside, join(files, 'out'));
  for (const path of ['../x', 'out/x', 'out/new/x', '/tmp/x', '.svcd/x', '.', 'sub/', 'a\0b', ''])
    await assert.rejects(root.destination(path), withCode('invalid_request'), path);
  assert.throws(() => realpathSync(join(outside, 'new')), { code: 'ENOENT' });
});

test("a link in place of the daemon's folder is rejected", (t) => {
  const directory = temporaryDirectory(t);
  const files = join(directory, 'files');
  mkdirSync(files);
  mkdirSync(join(directory, 'elsewhere'));
  symlinkSync(join(directory, 'elsewhere'), join(files, '.svcd'));
  assert.throws(() => FilesRoot.open(files), withCode('not_writable'));
  writeFileSync(join(directory, 'file'), '');
  assert.throws(() => FilesRoot.open(join(directory, 'file')), withCode('not_writable'));
  assert.equal(readFileSync(join(directory, 'file'), 'utf8'), '');
});
