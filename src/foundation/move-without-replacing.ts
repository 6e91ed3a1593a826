/** Gives a file its name without ever taking the place of another one. */
import { link, lstat, rename, rm } from 'node:fs/promises';
import { codeOf } from './errors.ts';

/** File systems without hard links say so in these ways. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Moves a file to a name of the same file system.
 * @returns false where something has that name: nothing was done
 * @throws what the system says
 */
export async function moveWithoutReplacing(file: string, target: string): Promise<boolean> {
  try {
    // Unlike a renaming this never replaces anything.
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
