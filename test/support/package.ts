/** The npm package of this checkout, and what it takes to install it without the network. */
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

/** What npm says and fetches stays in directories of the test; what it has in its cache, it takes from there. */
const NPM_QUIET = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
const NOT_PACKED = new Set(['node_modules', '.git', 'dist', 'out', 'coverage']);

/** An entry of package-lock.json, as far as the tests need it. */
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
 * Packs this checkout as a release would, in a copy: two tests may do so at a time.
 * @param releaseKeys that the build pins
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

/** Installs a tarball of svcd for all who use a prefix; returns the folder of its programs. */
export async function installGlobally(directory: string, tarball: string, registry: string): Promise<string> {
  const [prefix, cache] = [join(directory, 'prefix'), join(directory, 'cache')];
  mkdirSync(prefix);
  await npm(prefix, ['install', '--global', '--registry', registry, '--cache', cache, '--ignore-scripts', tarball]);
  return join(prefix, 'bin');
}

/** Every package that an installation brings, by the path in the lock; without those of other platforms. */
export function productionPackages(): Map<string, LockEntry> {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, LockEntry> };
  const wanted = Object.entries(lock.packages).filter(
    ([path]) => path !== '' && lock.packages[path]?.dev !== true && existsSync(path),
  );
  return new Map(wanted);
}

/** Name of a package by its path in the lock. */
export function packageName(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/** How `npm pack` calls the tarball of a package. */
export function tarballName(name: string, version: string): string {
  return `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
}

/** A package of the registry, and the bytes that the lock names. */
export interface Pinned {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
}

/**
 * Puts the tarballs of packages of the registry into a directory: from npm's cache, where the
 * installation of this checkout has left them, and from the network only what is not in it.
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

/** Where npm's cache keeps bytes: by their hash. */
function contentPath(cache: string, integrity: string): string {
  const [algorithm = '', base64 = ''] = integrity.split('-', 2);
  const hash = Buffer.from(base64, 'base64').toString('hex');
  return join(cache, '_cacache', 'content-v2', algorithm, hash.slice(0, 2), hash.slice(2, 4), hash.slice(4));
}

/**
 * A Node of another version, from npm.
 * @returns path of the program, and null where npm cannot bring it: no network, or none for this platform
 */
export async function otherNode(directory: string, version: string): Promise<string | null> {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const args = ['install', '--prefix', directory, '--prefer-offline', '--no-save', ...NPM_QUIET, `${name}@${version}`];
  const { code } = await run('npm', args);
  const program = join(directory, 'node_modules', name, 'bin', 'node');
  return code === 0 && existsSync(program) ? program : null;
}

/** Runs an installed program with the Node that is first in its PATH, as a shell does. */
export function runWith(node: string, program: string, args: readonly string[], env = {}): Promise<Output> {
  return run(program, args, { env: { PATH: pathWith(node), ...env } });
}

/** A PATH on which this Node is found first. */
export function pathWith(node: string): string {
  return [dirname(node), ...(process.env['PATH'] ?? '').split(delimiter)].join(delimiter);
}
