/** Renames a file without replacing an existing one. */
import { link, lstat, rename, rm } from 'node:fs/promises';
import { codeOf } from './errors.ts';

/** Error codes of file systems without hard links. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Moves a file to another name in the same file system.
 * @returns false if the target exists; nothing is changed then
 * @throws the system error
 */
export async function moveWithoutReplacing(file: string, target: string): Promise<boolean> {
  try {
    // Unlike a rename, a link never replaces a file.
    await link(file, target);
    await rm(file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    if (!NO_LINKS.has(codeOf(error))) throw error;
    if ((await lstat(target).catch(() => null)) !== null) return false;
    await rename(file, target);
    return true;
  }
}
