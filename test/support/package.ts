/** The npm package of this checkout, and its installation without the network. */
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { type Output, run, runOk } from './programs.ts';

/** Logs and downloads stay in directories of the test. Cached packages come from npm's cache. */
const NPM_QUIET = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
const NOT_PACKED = new Set(['node_modules', '.git', 'dist', 'out', 'coverage']);

/** The used part of an entry in package-lock.json. */
export interface LockEntry {
  readonly version: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

export const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly version: string;
  readonly engines: { readonly node: string };
};

/** Runs npm in a directory. */
function npm(directory: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  return runOk('npm', ['--prefix', directory, ...NPM_QUIET, ...args], { env });
}

/**
 * Packs a copy of this checkout like a release, so that two tests can do it at the same time.
 * @param releaseKeys pinned by the build
 * @returns path of the tarball
 */
export async function packSvcd(directory: string, releaseKeys: readonly string[] = []): Promise<string> {
  const copy = join(directory, 'checkout');
  mkdirSync(copy);
  for (const name of readdirSync('.')) {
    if (!NOT_PACKED.has(name) && !name.endsWith('.tgz')) cpSync(name, join(copy, name), { recursive: true });
  }
  if (releaseKeys.length > 0) pinKeys(join(copy, 'src', 'capabilities', 'update', 'release-keys.ts'), releaseKeys);
  symlinkSync(join(process.cwd(), 'node_modules'), join(copy, 'node_modules'));
  await runOk('npm', ['pack', copy, '--pack-destination', directory, ...NPM_QUIET]);
  return join(directory, `svcd-${manifest.version}.tgz`);
}

function pinKeys(file: string, keys: readonly string[]): void {
  const line = /^export const RELEASE_KEYS: readonly string\[\] = .*;$/m;
  const source = readFileSync(file, 'utf8');
  if (!line.test(source)) throw new Error(`${file} pins no keys`);
  writeFileSync(file, source.replace(line, `export const RELEASE_KEYS: readonly string[] = ${JSON.stringify(keys)};`));
}

/** Installs a tarball of svcd globally under a prefix. @returns the folder of its programs */
export async function installGlobally(directory: string, tarball: string, registry: string): Promise<string> {
  const [prefix, cache] = [join(directory, 'prefix'), join(directory, 'cache')];
  mkdirSync(prefix);
  await npm(prefix, ['install', '--global', '--registry', registry, '--cache', cache, '--ignore-scripts', tarball]);
  return join(prefix, 'bin');
}

/** Every package of an installation by its path in the lock file, without those for other platforms. */
export function productionPackages(): Map<string, LockEntry> {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, LockEntry> };
  const wanted = Object.entries(lock.packages).filter(
    ([path]) => path !== '' && lock.packages[path]?.dev !== true && existsSync(path),
  );
  return new Map(wanted);
}

/** The name of a package by its path in the lock file. */
export function packageName(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/** The file name that `npm pack` gives the tarball of a package. */
export function tarballName(name: string, version: string): string {
  return `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
}

/** A package in the registry, and the integrity in the lock file. */
export interface Pinned {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
}

/**
 * Puts the tarballs of registry packages into a directory: from npm's cache, which the installation of this checkout
 * filled, or from the network.
 */
export async function fetchTarballs(directory: string, packages: readonly Pinned[]): Promise<void> {
  const cache = (await runOk('npm', ['config', 'get', 'cache', ...NPM_QUIET])).trim();
  const missing = packages.filter(({ name, version, integrity }) => {
    const content = contentPath(cache, integrity);
    if (integrity === '' || !existsSync(content)) return true;
    copyFileSync(content, join(directory, tarballName(name, version)));
    return false;
  });
  const specs = missing.map(({ name, version }) => `${name}@${version}`);
  if (specs.length > 0)
    await runOk('npm', ['pack', ...specs, '--prefer-offline', '--pack-destination', directory, ...NPM_QUIET]);
}

/** Path of cached bytes by their hash. */
function contentPath(cache: string, integrity: string): string {
  const [algorithm = '', base64 = ''] = integrity.split('-', 2);
  const hash = Buffer.from(base64, 'base64').toString('hex');
  return join(cache, '_cacache', 'content-v2', algorithm, hash.slice(0, 2), hash.slice(2, 4), hash.slice(4));
}

/**
 * Another version of Node from npm.
 * @returns path of the program, or null if npm cannot install it: no network, or no build for this platform
 */
export async function otherNode(directory: string, version: string): Promise<string | null> {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const args = ['install', '--prefix', directory, '--prefer-offline', '--no-save', ...NPM_QUIET, `${name}@${version}`];
  const { code } = await run('npm', args);
  const program = join(directory, 'node_modules', name, 'bin', 'node');
  return code === 0 && existsSync(program) ? program : null;
}

/** Runs an installed program with the Node that is first in its PATH, like a shell. */
export function runWith(node: string, program: string, args: readonly string[], env = {}): Promise<Output> {
  return run(program, args, { env: { PATH: pathWith(node), ...env } });
}

/** A PATH with this Node first. */
export function pathWith(node: string): string {
  return [dirname(node), ...(process.env['PATH'] ?? '').split(delimiter)].join(delimiter);
}
