/** Keeps the folder of objects, whose files agents read, send and write, apart from what makes up this node. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { SvcError } from '../foundation/errors.ts';

/** The real place of a path that need not be there yet. */
function realPlace(path: string): string {
  const full = resolve(path);
  let there = full;
  while (!existsSync(there)) there = dirname(there);
  return join(realpathSync(there), relative(there, full));
}

function holds(folder: string, path: string): boolean {
  const inside = relative(folder, path);
  return inside === '' || !(inside === '..' || inside.startsWith(`..${sep}`) || inside === resolve(inside));
}

/**
 * @param filesRoot as configured; empty for none
 * @param own the data directory and the folder of the keys
 * @throws SvcError `config_invalid` where keys, database or releases would lie among the files of objects
 */
export function checkFilesRoot(filesRoot: string, own: { readonly dataDir: string; readonly keys: string }): void {
  if (filesRoot === '') return;
  const [root, dataDir, keys] = [filesRoot, own.dataDir, own.keys].map(realPlace) as [string, string, string];
  const releases = join(dataDir, 'releases');
  if (holds(root, dataDir) || holds(root, keys) || holds(keys, root) || holds(releases, root))
    throw new SvcError('config_invalid', {
      message: `files_root (${filesRoot}) holds the keys or the data of svcd itself, which agents could read and write then. Choose a folder of its own.`,
      details: { key: 'files_root' },
    });
}
