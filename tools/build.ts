/**
 * Bundles src/ and the packages that it needs into dist/: a few files start several times as fast as a thousand, and
 * need neither types stripped nor folders searched. `npm pack` builds so; with `--checkout` bin/launch.js does, when
 * the sources of a checkout are newer: it waits for a build that is under way, and leaves to programs that run what
 * they have not loaded yet.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { alone } from './bundle/alone.ts';
import { writeBundle } from './bundle/bundle.ts';
import { builtAt, LOCK, putBundle } from './bundle/put.ts';

const DIRECTORY = 'dist';

process.chdir(join(import.meta.dirname, '..'));
if (process.argv.includes('--checkout')) {
  const asked = Date.now();
  mkdirSync(DIRECTORY, { recursive: true });
  await alone(join(DIRECTORY, LOCK), async () => {
    if (builtAt(DIRECTORY) < asked) await putBundle(DIRECTORY, true, writeBundle);
  });
} else await putBundle(DIRECTORY, false, writeBundle);
