/**
 * What stands in the package beside its programs: files on the disk, or parts of the single file that is Node and svcd in
 * one (`tools/package.ts` makes it, see decision 41).
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { getRawAsset, isSea } from 'node:sea';

/** Whether this runs from the single file: then nothing of the package lies on the disk. */
export const isSingleFile: boolean = isSea();

/**
 * Reads a file of the package.
 * @param path in the package, such as `package.json`
 * @throws Error where it is not there
 */
export function readPackageFile(path: string): Buffer {
  return isSingleFile ? Buffer.from(getRawAsset(path)) : readFileSync(new URL(`../../${path}`, import.meta.url));
}

/**
 * What has to come first in the arguments of `process.execPath` to start this very program anew: the path of its script,
 * absolute, and in the single file its name, `svcd` or `svc`.
 * @param args of this process
 */
export function ownScript([, script = 'svcd']: readonly string[] = process.argv): string {
  return isSingleFile ? script : resolve(script);
}

/**
 * How a short script is run in a process of its own: the command and its first arguments, what follows is in
 * `process.argv` from its second member on. Anything it needs it gets by `require`, of Node's own modules only.
 * @param name that the single file knows it by: it runs nothing that stands in its arguments
 */
export function scriptCommand(name: string, code: string): readonly [string, ...string[]] {
  if (isSingleFile) return [process.execPath, `script:${name}`];
  return [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=commonjs', '--eval', code];
}
