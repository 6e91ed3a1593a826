import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { RELEASE_KEYS } from '../../src/capabilities/update/release-keys.ts';

test('no page, command or hint installs svcd from a registry by its name while there is no release channel', () => {
  if (RELEASE_KEYS.length > 0) return;
  const byName =
    /\b(?:npm (?:install|i|add|exec)|npx|bunx|pnpm (?:add|dlx)|yarn (?:global )?add)(?: -\S+)* svcd(?![\w-])/;
  // Decisions mention commands of other programs.
  const files = globSync([
    'README.md',
    'CONTRIBUTING.md',
    'docs/**/*',
    'src/**/*.ts',
    'panel/src/**/*',
    'package.json',
  ]);
  assert.ok(files.length > 100);
  const found = files.filter(
    (file) =>
      !file.startsWith(join('docs', 'decisions')) &&
      /\.(?:md|ts|tsx|json|[18])$/.test(file) &&
      byName.test(readFileSync(file, 'utf8')),
  );
  assert.deepEqual(found, []);
});
