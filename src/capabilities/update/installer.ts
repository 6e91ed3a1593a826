/** Installs a release next to the running one, without switching to it. */
import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';
import { syncDirectory, syncFile } from '../../foundation/atomic-file.ts';
import { describeDiskError } from '../../foundation/disk-errors.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { type Npm, runProgram } from './npm.ts';
import type { ReleaseSource } from './release-source.ts';
import type { Releases } from './releases.ts';
import type { Release } from './types.ts';
import { checkIntegrity, checkManifest, type Platform, readLock, unpack } from './unpack.ts';

export interface InstallerOptions {
  /** Package name. */
  readonly name: string;
  /** The running Node: its executable and its version. */
  readonly node: string;
  readonly nodeVersion: string;
  /** The platform for which packages are installed. Determined only when there is something to install. */
  readonly platform: () => Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface InstallerDependencies {
  readonly source: Pick<ReleaseSource, 'tarball'>;
  readonly npm: Pick<Npm, 'install'>;
  readonly releases: Releases;
}

export class Installer {
  readonly #options: InstallerOptions;
  readonly #deps: InstallerDependencies;

  constructor(options: InstallerOptions, dependencies: InstallerDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  /**
   * Downloads a release, verifies its bytes, installs its dependencies and checks that it starts.
   * @throws SvcError `connect_failed`, `timeout`, `too_large`, `protocol_error`, `not_writable`, `cancelled`
   */
  async install(release: Release, signal: AbortSignal): Promise<void> {
    const { name, nodeVersion } = this.#options;
    const { source, releases } = this.#deps;
    if (!semver.satisfies(nodeVersion, release.node))
      throw new SvcError('protocol_error', {
        message: `${name} ${release.version} needs Node ${release.node}, but this is Node ${nodeVersion}.`,
      });
    const tarball = await source.tarball(release, signal);
    checkIntegrity(tarball, release.integrity);
    try {
      await this.#stage(release, tarball, signal);
    } catch (error) {
      const code = codeOf(error, '');
      if (error instanceof SvcError || code === '') throw error;
      throw new SvcError('not_writable', {
        message: `Cannot write the release${describeDiskError(error)}`,
        cause: error,
      });
    } finally {
      releases.unstage();
    }
  }

  async #stage({ version }: Release, tarball: Buffer, signal: AbortSignal): Promise<void> {
    const { name, node, platform, environment } = this.#options;
    const { npm, releases } = this.#deps;
    const staging = releases.stage();
    const directory = join(staging, 'package');
    const cache = join(staging, 'cache');
    await unpack(tarball, directory);
    checkManifest(directory, name, version);
    writeFileSync(join(directory, 'package-lock.json'), readLock(directory, platform()));
    await npm.install(directory, cache, signal);
    const run = { signal, directory, environment };
    const said = await runProgram(node, [join(directory, 'bin', 'svcd'), '--version'], run);
    if (said.trim() !== version)
      throw new SvcError('protocol_error', { message: `The release ${version} reports a different version.` });
    // Flush before the release can be switched to. A power failure must not leave it with empty files.
    flushTree(directory);
    const target = releases.pathOf(version);
    // An earlier attempt may have left this directory. It cannot be replaced in one step, so it is renamed first.
    renameQuietly(target, join(staging, 'old'));
    renameSync(directory, target);
    syncDirectory(releases.directory);
  }
}

/** Flushes a directory tree to disk. */
function flushTree(directory: string): void {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) syncFile(path);
    if (entry.isDirectory()) syncDirectory(path);
  }
  syncDirectory(directory);
}

function renameQuietly(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}
