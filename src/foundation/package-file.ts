/**
 * Files of the package: on disk, or embedded in the single file that contains Node and svcd (built by
 * `tools/package.ts`, see decision 41).
 */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { getRawAsset, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';

/** True if svcd runs from the single file. Then the package has no files on disk. */
export const isSingleFile: boolean = isSea();

/**
 * Reads a file of the package.
 * @param path in the package, such as `package.json`
 * @throws Error if it does not exist
 */
export function readPackageFile(path: string): Buffer {
  return isSingleFile ? Buffer.from(getRawAsset(path)) : readFileSync(new URL(`../../${path}`, import.meta.url));
}

/**
 * The first argument for `process.execPath` to start this program again: the absolute path of its script, or in the
 * single file its name, `svcd` or `svc`.
 * @param args arguments of this process
 */
export function ownScript([, script = 'svcd']: readonly string[] = process.argv): string {
  return isSingleFile ? script : resolve(script);
}

/**
 * The command and first arguments that run a short script in a separate process. Further arguments are in
 * `process.argv` from the second member on. The script can only `require` Node's own modules.
 * @param name of the script in the single file, which does not run code from its arguments
 */
export function scriptCommand(name: string, code: string): readonly [string, ...string[]] {
  if (isSingleFile) return [process.execPath, `script:${name}`];
  return [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=commonjs', '--eval', code];
}

/** The folders that contain the program `svc` and the Node that it needs. The single file is both. */
export function programFolders(): string[] {
  const node = dirname(process.execPath);
  return isSingleFile ? [node] : [fileURLToPath(new URL('../../bin', import.meta.url)), node];
}
