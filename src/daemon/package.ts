/** The npm package of this svcd: its location, and the source of newer versions. */
import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Npm } from '../capabilities/update/installer.ts';
import { RELEASE_KEYS } from '../capabilities/update/release-keys.ts';
import { ReleaseSource } from '../capabilities/update/release-source.ts';
import type { Clock } from '../foundation/clock.ts';
import { isSingleFile } from '../foundation/package-file.ts';

/** Name of the npm package. */
export const PACKAGE = 'svcd';

/** The running Node by the path with which it was started: a symbolic link survives an update of Node. */
export function nodeProgram(): string {
  return isAbsolute(process.argv0) ? process.argv0 : process.execPath;
}

/**
 * Why updates are disabled: a checkout is updated with git, and a single file is replaced. Empty for a package with a
 * release key.
 */
export function updatesDisabled(): string {
  if (isSingleFile) return 'This svcd is a single file. Replace it with a newer one, and restart svcd ("svc restart").';
  const isCheckout = existsSync(new URL('../../src', import.meta.url));
  if (isCheckout) return 'This svcd runs from a checkout. Update it with "git pull && npm ci".';
  if (RELEASE_KEYS.length > 0) return '';
  return 'This build of svcd has no release key, so it cannot update itself. Install a newer version from a trusted checkout or file, and restart svcd.';
}

/** Environment for programs of an update, without the daemon's settings, which contain secrets. */
export function withoutSvcdSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !/^svcd?_/i.test(name)));
}

/** The npm of this Node. It reads its configuration from the package directory, not from the current directory. */
export function npmOf(environment: NodeJS.ProcessEnv): Npm {
  const directory = fileURLToPath(new URL('../..', import.meta.url));
  return new Npm({ node: nodeProgram(), directory, environment: withoutSvcdSettings(environment) });
}

/** The releases in the registry of npm's configuration. */
export function releaseSource(environment: NodeJS.ProcessEnv, clock: Clock): ReleaseSource {
  const npm = npmOf(environment);
  const registry = (signal: AbortSignal): Promise<URL> => npm.registry(signal);
  return new ReleaseSource({ name: PACKAGE, registry, releaseKeys: RELEASE_KEYS, now: () => clock.now() });
}
