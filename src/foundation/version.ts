/** The version of this svcd, from its package. */
import { readFileSync } from 'node:fs';
import { memberOf, readJson } from './json.ts';

function readVersion(): string {
  const manifest = readJson(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const version = memberOf(manifest, 'version');
  if (typeof version === 'string') return version;
  throw new Error('package.json has no version');
}

export const VERSION: string = readVersion();
