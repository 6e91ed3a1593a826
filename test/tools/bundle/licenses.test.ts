import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { licensesOf } from '../../../tools/bundle/licenses.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** Creates a module of a package with this manifest. */
function moduleOf(
  t: TestContext,
  manifest: Readonly<Record<string, unknown>> & { readonly name: string },
  files: Readonly<Record<string, string>> = {},
) {
  const folder = join(temporaryDirectory(t), 'node_modules', manifest.name);
  mkdirSync(folder, { recursive: true });
  const all = { 'package.json': JSON.stringify({ version: '1.2.3', ...manifest }), ...files };
  for (const [name, text] of Object.entries(all)) writeFileSync(join(folder, name), text);
  return join(folder, 'lib', 'index.js');
}

test('lists each package with its license text or its author, without own and generated modules', (t) => {
  const text = licensesOf([
    moduleOf(t, { name: '@some/one', license: 'MIT' }, { LICENSE: 'Do what you like.\n' }),
    moduleOf(t, { name: 'other', license: 'ISC', author: { name: 'Ann' } }),
    '/svcd/src/daemon/main.ts',
    '\0made-by-the-bundler',
  ]);
  assert.match(text, /@some\/one 1\.2\.3: MIT\n\nDo what you like\.\n\n-{80}\n\nother 1\.2\.3: ISC\n\nBy Ann\n$/);
  assert.doesNotMatch(text, /main\.ts|made-by/);
});

test('a package that names no license is not bundled', (t) => {
  const module = moduleOf(t, { name: 'secret' });
  assert.throws(() => licensesOf([module]), /secret names no license/);
});
