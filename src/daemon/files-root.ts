/** Keeps the directory of objects, whose files agents read, send and write, separate from the node's own data. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { ConfigService } from '../foundation/config/config-service.ts';
import { NO_FILES_ROOT } from '../foundation/config/schema.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Log } from '../foundation/log.ts';

/** Default object directory in the data directory, used if `files_root` is not set. */
const DEFAULT_DIRECTORY = 'files';

/**
 * The directory that a configured `files_root` names.
 * @returns an empty string if objects are off
 */
export function resolveFilesRoot(configured: string, dataDir: string): string {
  if (configured === NO_FILES_ROOT) return '';
  return configured === '' ? join(dataDir, DEFAULT_DIRECTORY) : configured;
}

/** The real path of a path that may not exist yet. */
function realPath(path: string): string {
  const full = resolve(path);
  let there = full;
  while (!existsSync(there)) there = dirname(there);
  return join(realpathSync(there), relative(there, full));
}

function contains(folder: string, path: string): boolean {
  const inside = relative(folder, path);
  return inside === '' || !(inside === '..' || inside.startsWith(`..${sep}`) || inside === resolve(inside));
}

/**
 * @param filesRoot as configured
 * @param own the data directory and the key directory
 * @throws SvcError `config_invalid` if keys, database or releases would be inside the object directory
 */
export function checkFilesRoot(filesRoot: string, own: { readonly dataDir: string; readonly keys: string }): void {
  if (filesRoot === '' || filesRoot === NO_FILES_ROOT) return;
  const [root, dataDir, keys] = [filesRoot, own.dataDir, own.keys].map(realPath) as [string, string, string];
  const releases = join(dataDir, 'releases');
  if (contains(root, dataDir) || contains(root, keys) || contains(keys, root) || contains(releases, root))
    throw new SvcError('config_invalid', {
      message: `files_root (${filesRoot}) contains the keys or the data of svcd itself, so agents could read and write them. Choose a separate directory.`,
      details: { key: 'files_root' },
    });
}

interface FilesRootDependencies {
  readonly configuration: ConfigService;
  readonly objects: { use(filesRoot: string): void; count(): number };
  readonly own: { readonly dataDir: string; readonly keys: string };
  readonly log: Log;
}

/** Changes the object directory while the daemon runs. */
export class FilesRootSetting {
  readonly #deps: FilesRootDependencies;
  /** Stops following the configuration. */
  readonly stop: () => void;

  constructor(dependencies: FilesRootDependencies) {
    this.#deps = dependencies;
    this.stop = dependencies.configuration.onChange((changed) => {
      if (changed.has('files_root')) this.#apply();
    });
  }

  /** The current directory; empty if objects are off. */
  get #path(): string {
    const { configuration, own } = this.#deps;
    return resolveFilesRoot(configuration.current.files_root, own.dataDir);
  }

  /** Values from config.toml are checked as at startup. With an invalid directory, objects are off. */
  #apply(): void {
    const { configuration, objects, own, log } = this.#deps;
    try {
      checkFilesRoot(configuration.current.files_root, own);
      objects.use(this.#path);
    } catch (error) {
      objects.use('');
      log.error({ err: error }, 'the directory of files_root is not allowed: objects are off');
    }
  }

  /**
   * Sets `files_root` and stores it in config.toml. It takes effect immediately.
   * @returns the new directory, and the number of objects that stay in the old one
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
