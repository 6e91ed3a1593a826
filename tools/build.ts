/**
 * Bundles src/ and the packages that it needs into dist/. A few files start several times as fast as a thousand,
 * without type stripping or module resolution. `npm pack` runs this. bin/launch.js runs it with `--checkout` if the
 * sources are newer: it then waits for a concurrent build and keeps old chunks for running programs.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { writeBundle } from './bundle/bundle.ts';
import { builtAt, installBundle, LOCK } from './bundle/install-bundle.ts';
import { withLock } from './bundle/with-lock.ts';

const DIRECTORY = 'dist';

process.chdir(join(import.meta.dirname, '..'));
if (process.argv.includes('--checkout')) {
  const requestedAt = Date.now();
  mkdirSync(DIRECTORY, { recursive: true });
  await withLock(join(DIRECTORY, LOCK), async () => {
    if (builtAt(DIRECTORY) < requestedAt) await installBundle(DIRECTORY, true, writeBundle);
  });
} else await installBundle(DIRECTORY, false, writeBundle);
