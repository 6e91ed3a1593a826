/** Keeps the folder of objects, whose files agents read, send and write, apart from what makes up this node. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { ConfigService } from '../foundation/config/config-service.ts';
import { NO_FILES_ROOT } from '../foundation/config/schema.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Log } from '../foundation/log.ts';

/** The folder of objects in the data directory, where `files_root` names no other. */
const DEFAULT_FOLDER = 'files';

/**
 * The folder that a configured `files_root` means.
 * @returns empty where objects are off
 */
export function filesRootOf(configured: string, dataDir: string): string {
  if (configured === NO_FILES_ROOT) return '';
  return configured === '' ? join(dataDir, DEFAULT_FOLDER) : configured;
}

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
 * @param filesRoot as configured
 * @param own the data directory and the folder of the keys
 * @throws SvcError `config_invalid` where keys, database or releases would lie among the files of objects
 */
export function checkFilesRoot(filesRoot: string, own: { readonly dataDir: string; readonly keys: string }): void {
  if (filesRoot === '' || filesRoot === NO_FILES_ROOT) return;
  const [root, dataDir, keys] = [filesRoot, own.dataDir, own.keys].map(realPlace) as [string, string, string];
  const releases = join(dataDir, 'releases');
  if (holds(root, dataDir) || holds(root, keys) || holds(keys, root) || holds(releases, root))
    throw new SvcError('config_invalid', {
      message: `files_root (${filesRoot}) holds the keys or the data of svcd itself, which agents could read and write then. Choose a folder of its own.`,
      details: { key: 'files_root' },
    });
}

interface FilesRootDependencies {
  readonly configuration: Pick<ConfigService, 'current' | 'overrides' | 'set' | 'onChange'>;
  readonly objects: { use(filesRoot: string): void; count(): number };
  readonly own: { readonly dataDir: string; readonly keys: string };
  readonly log: Log;
}

/** Changes the folder of objects while the daemon runs. */
export class FilesRootSetting {
  readonly #deps: FilesRootDependencies;
  /** Ends the following of the configuration. */
  readonly stop: () => void;

  constructor(dependencies: FilesRootDependencies) {
    this.#deps = dependencies;
    this.stop = dependencies.configuration.onChange((changed) => {
      if (changed.has('files_root')) this.#apply();
    });
  }

  /** The folder in effect; empty where objects are off. */
  get #path(): string {
    const { configuration, own } = this.#deps;
    return filesRootOf(configuration.current.files_root, own.dataDir);
  }

  /** What a person wrote into the file is checked as at the start; a folder that may not be is none. */
  #apply(): void {
    const { configuration, objects, own, log } = this.#deps;
    try {
      checkFilesRoot(configuration.current.files_root, own);
      objects.use(this.#path);
    } catch (error) {
      objects.use('');
      log.error({ err: error }, 'files_root may not be that folder: objects are off');
    }
  }

  /**
   * Sets `files_root`, in config.toml too; it applies at once.
   * @returns the folder that holds now, and how many objects stay behind in the one before
   * @throws SvcError `config_invalid`, `not_writable`; nothing has changed then
   */
  set(filesRoot: string) {
    const { configuration, objects, own } = this.#deps;
    const before = this.#path;
    if (configuration.overrides.files_root !== undefined) return { path: before, left: 0, overridden: true };
    try {
      checkFilesRoot(filesRoot, own);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      throw new SvcError('config_invalid', { message: error.message, details: { ...error.details, source: 'patch' } });
    }
    configuration.set('files_root', filesRoot);
    return { path: this.#path, left: before === this.#path ? 0 : objects.count(), overridden: false };
  }
}
