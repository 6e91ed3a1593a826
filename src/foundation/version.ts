/** The version of this svcd, from its package. */
import { memberOf, readJson } from './json.ts';
import { readPackageFile } from './package-file.ts';

function readVersion(): string {
  const manifest = readJson(readPackageFile('package.json').toString('utf8'));
  const version = memberOf(manifest, 'version');
  if (typeof version === 'string') return version;
  throw new Error('package.json has no version');
}

export const VERSION: string = readVersion();
