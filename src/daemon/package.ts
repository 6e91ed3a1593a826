/** The npm package that this svcd comes from: where it lies, and where newer ones are to be had. */
import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Npm } from '../capabilities/update/npm.ts';
import { RELEASE_KEYS } from '../capabilities/update/release-keys.ts';
import { ReleaseSource } from '../capabilities/update/release-source.ts';
import type { Clock } from '../foundation/clock.ts';
import { isSingleFile } from '../foundation/package-file.ts';

/** Name of the npm package. */
export const PACKAGE = 'svcd';

/** The Node that runs this, by the path that it was started by: a link outlives the version that it leads to. */
export function nodeProgram(): string {
  return isAbsolute(process.argv0) ? process.argv0 : process.execPath;
}

/** Why there are no updates: a checkout is brought up to date by git, a single file by a newer one. Empty in a package with a release key. */
export function updatesDisabled(): string {
  if (isSingleFile)
    return 'This svcd is a single file: put a newer one in its place, and start it again ("svc restart").';
  const isCheckout = existsSync(new URL('../../src', import.meta.url));
  if (isCheckout) return 'This svcd runs from a checkout: bring it up to date with "git pull && npm ci".';
  if (RELEASE_KEYS.length > 0) return '';
  return 'No release channel is set up: this build of svcd has no release key. Install a newer version from a checkout or a file that you trust, and start it again.';
}

/** What programs of an update see of the environment: none of the daemon's own settings, which hold secrets. */
export function withoutOwn(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !/^svcd?_/i.test(name)));
}

/** The npm beside this Node. It reads its configuration from here, not from a folder that somebody chose. */
export function npmOf(environment: NodeJS.ProcessEnv): Npm {
  const directory = fileURLToPath(new URL('../..', import.meta.url));
  return new Npm({ node: nodeProgram(), directory, environment: withoutOwn(environment) });
}

/** The releases that the registry of npm's configuration offers. */
export function releaseSource(environment: NodeJS.ProcessEnv, clock: Clock): ReleaseSource {
  const npm = npmOf(environment);
  const registry = (signal: AbortSignal): Promise<URL> => npm.registry(signal);
  return new ReleaseSource({ name: PACKAGE, registry, releaseKeys: RELEASE_KEYS, now: () => clock.now() });
}
