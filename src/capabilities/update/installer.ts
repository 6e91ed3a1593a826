/** Installs a release next to the running one, without switching to it. */

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import semver from 'semver';
import { onExit } from '../../foundation/child-exit.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { describeDiskError, replaceFile, syncDirectory, syncFile } from '../../foundation/files.ts';
import { variableOf } from '../../foundation/programs.ts';
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

export class Installer {
  readonly #options: InstallerOptions;
  readonly #source: Pick<ReleaseSource, 'tarball'>;
  readonly #npm: Pick<Npm, 'install'>;
  readonly #releases: Releases;

  constructor(
    options: InstallerOptions,
    source: Pick<ReleaseSource, 'tarball'>,
    npm: Pick<Npm, 'install'>,
    releases: Releases,
  ) {
    this.#options = options;
    this.#source = source;
    this.#npm = npm;
    this.#releases = releases;
  }

  /**
   * Downloads a release, verifies its bytes, installs its dependencies and checks that it starts.
   * @throws SvcError `connect_failed`, `timeout`, `too_large`, `protocol_error`, `not_writable`, `cancelled`
   */
  async install(release: Release, signal: AbortSignal): Promise<void> {
    const { name, nodeVersion } = this.#options;
    if (!semver.satisfies(nodeVersion, release.node))
      throw new SvcError('protocol_error', {
        message: `${name} ${release.version} needs Node ${release.node}, but this is Node ${nodeVersion}.`,
      });
    const tarball = await this.#source.tarball(release, signal);
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
      this.#releases.unstage();
    }
  }

  async #stage({ version }: Release, tarball: Buffer, signal: AbortSignal): Promise<void> {
    const { name, node, platform, environment } = this.#options;
    const staging = this.#releases.stage();
    const directory = join(staging, 'package');
    const cache = join(staging, 'cache');
    await unpack(tarball, directory);
    checkManifest(directory, name, version);
    writeFileSync(join(directory, 'package-lock.json'), readLock(directory, platform()));
    await this.#npm.install(directory, cache, signal);
    const run = { signal, directory, environment };
    const printed = await runProgram(node, [join(directory, 'bin', 'svcd'), '--version'], run);
    if (printed.trim() !== version)
      throw new SvcError('protocol_error', { message: `The release ${version} reports a different version.` });
    // Flush before the release can be switched to. A power failure must not leave it with empty files.
    flushTree(directory);
    const target = this.#releases.pathOf(version);
    // An earlier attempt may have left this directory. It cannot be replaced in one step, so it is renamed first.
    renameQuietly(target, join(staging, 'old'));
    replaceFile(directory, target);
    syncDirectory(this.#releases.directory);
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
    replaceFile(from, to);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

// Runs the npm of this machine. Its configuration names the registry, and it installs the dependencies of a release.

/** Time limit of an npm command, in milliseconds. */
const NPM_TIMEOUT_MS = 10 * 60_000;
/** Limit on stored npm output. */
const MAX_OUTPUT_CHARS = 64 * 1024;
/** Limit on the part of the output that an error message quotes. */
const MAX_REASON_CHARS = 300;

export interface NpmOptions {
  /** The running Node executable. */
  readonly node: string;
  /** Working directory of npm. An `.npmrc` in this directory or above applies. */
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Path of npm: next to the running Node, or in PATH. */
function npmProgram({ node, environment }: NpmOptions): string | null {
  const bin = dirname(node);
  const roots = [join(bin, '..', 'lib', 'node_modules'), join(bin, 'node_modules')];
  for (const directory of (variableOf(environment, 'PATH', process.platform) ?? '').split(delimiter)) {
    if (directory === '') continue;
    roots.push(join(directory, '..', 'lib', 'node_modules'), join(directory, 'node_modules'));
    // Location in Debian's package.
    roots.push(join(directory, '..', 'share', 'nodejs'));
  }
  return roots.map((root) => join(root, 'npm', 'bin', 'npm-cli.js')).find((file) => existsSync(file)) ?? null;
}

export class Npm {
  readonly #options: NpmOptions;

  constructor(options: NpmOptions) {
    this.#options = options;
  }

  /**
   * The registry in npm's configuration.
   * @throws SvcError `not_found` if npm is missing, `protocol_error`, `cancelled`
   */
  async registry(signal: AbortSignal): Promise<URL> {
    const text = (await this.#run(['config', 'get', 'registry', '--loglevel=silent'], signal)).trim();
    if (!URL.canParse(text))
      throw new SvcError('config_invalid', { message: 'The configuration of npm names no registry.' });
    return new URL(text);
  }

  /**
   * Installs the packages of a lock file and verifies their integrity. No install scripts run.
   * @throws SvcError `not_found` if npm is missing, `protocol_error`, `cancelled`
   */
  async install(directory: string, cache: string, signal: AbortSignal): Promise<void> {
    const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
    const args = ['ci', '--omit=dev', '--ignore-scripts', '--prefix', directory, '--cache', cache, ...quiet];
    await this.#run(args, signal, directory);
  }

  #run(args: readonly string[], signal: AbortSignal, directory = this.#options.directory): Promise<string> {
    const { node, environment } = this.#options;
    const program = npmProgram(this.#options);
    if (program === null)
      throw new SvcError('not_found', {
        message: 'npm was not found. It is part of Node, and svcd looks for it next to Node.',
      });
    return runProgram(node, [program, ...args], { signal, directory, environment });
  }
}

/**
 * Runs a program in a directory until it exits.
 * @returns its standard output
 * @throws SvcError `protocol_error` if it fails, `timeout`, `cancelled`
 */
function runProgram(
  program: string,
  args: readonly string[],
  { signal, directory, environment }: Pick<NpmOptions, 'directory' | 'environment'> & { readonly signal: AbortSignal },
): Promise<string> {
  const ended = AbortSignal.any([signal, AbortSignal.timeout(NPM_TIMEOUT_MS)]);
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: directory,
      env: { ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal: ended,
      windowsHide: true,
    });
    const output = { stdout: '', stderr: '' };
    const keep = (name: 'stdout' | 'stderr') => (text: string) => {
      output[name] = (output[name] + text).slice(-MAX_OUTPUT_CHARS);
    };
    child.on('error', (error) => {
      if (signal.aborted) reject(new SvcError('cancelled', { cause: error }));
      else if (ended.aborted) reject(new SvcError('timeout', { message: `${args[0]} timed out.`, cause: error }));
      else reject(new SvcError('protocol_error', { message: `Cannot run ${program}.`, cause: error }));
    });
    // Without free descriptors, Node starts no process and has no streams. `error` follows.
    const streams: Partial<Pick<typeof child, 'stdout' | 'stderr'>> = child;
    streams.stdout?.setEncoding('utf8').on('data', keep('stdout'));
    streams.stderr?.setEncoding('utf8').on('data', keep('stderr'));
    onExit(child, (code) => {
      if (code === 0) return resolve(output.stdout);
      const reason = (output.stderr || output.stdout).trim().slice(0, MAX_REASON_CHARS);
      return reject(new SvcError('protocol_error', { message: `${args.slice(0, 2).join(' ')} failed: ${reason}` }));
    });
  });
}
