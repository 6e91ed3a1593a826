/**
 * The base layer of the image: the C libraries that Node loads on this machine, the licenses and versions of their
 * Debian packages, and the few files that every Linux program expects. No shell and no other program.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { nativeParts } from '../bundle/single.ts';
import type { Entry } from './archive.ts';

/** User and group id of svcd in the image. Unused on usual machines. */
export const IMAGE_USER = 10_001;
/** Data directory of the image. */
export const IMAGE_DATA = '/data';

/** Prints the shared libraries that Node has loaded after it opened our addons. */
const LOADED = `
for (const file of process.argv.slice(1)) process.dlopen({ exports: {} }, file);
console.log(JSON.stringify(process.report.getReport().sharedObjects));
`;

function output(program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`);
  return stdout;
}

/** Paths of the libraries. */
function libraries(): string[] {
  const parts = Object.values(nativeParts());
  const loaded: readonly string[] = JSON.parse(output(process.execPath, ['--eval', LOADED, ...parts]));
  return loaded.filter((path) => path.startsWith('/') && !parts.includes(path) && path !== process.execPath);
}

/** The Debian package of a file, by its name without the architecture. */
function packageOf(path: string): string {
  // If /lib is a link to /usr/lib, Debian 12 lists a file under either path.
  const found = [path, realpathSync(path), realpathSync(path).replace(/^\/usr/, '')]
    .map((one) => spawnSync('dpkg', ['-S', one], { encoding: 'utf8' }))
    .find(({ status }) => status === 0);
  if (found === undefined)
    throw new Error(`No Debian package contains ${path}. Build the image on Debian or a derivative.`);
  return found.stdout.split(':')[0] ?? '';
}

/** All parent folders of the paths, parents first. */
function foldersOf(paths: readonly string[]): Entry[] {
  const folders = new Set<string>();
  for (const path of paths) {
    const parts = dirname(path).split('/');
    parts.forEach((_, at) => void folders.add(parts.slice(0, at + 1).join('/')));
  }
  return [...folders].sort().map((path) => ({ path, directory: true }));
}

function text(path: string, ...lines: string[]): Entry {
  return { path, content: Buffer.from(lines.map((line) => `${line}\n`).join('')) };
}

/** The lower layer of the image. */
export function baseEntries(): readonly Entry[] {
  const paths = libraries();
  const packages = [...new Set(paths.map(packageOf))].sort();
  const files: Entry[] = [
    text('etc/passwd', 'root:x:0:0:root:/:/none', `svcd:x:${IMAGE_USER}:${IMAGE_USER}:svcd:${IMAGE_DATA}:/none`),
    text('etc/group', 'root:x:0:', `svcd:x:${IMAGE_USER}:`),
    text('etc/nsswitch.conf', 'hosts: files dns'),
    { path: 'etc/os-release', content: readFileSync('/etc/os-release') },
    ...paths.map((path) => ({ path: path.slice(1), mode: 0o755, content: readFileSync(path) })),
    // Vulnerability scanners read the package versions here.
    ...packages.map((name) => text(`var/lib/dpkg/status.d/${name}`, output('dpkg-query', ['-s', name]))),
    ...packages.map((name) => {
      const path = join('usr/share/doc', name, 'copyright');
      return { path, content: readFileSync(`/${path}`) };
    }),
  ];
  return [
    ...foldersOf(files.map(({ path }) => path)),
    ...files,
    { path: 'tmp', mode: 0o1777, directory: true },
    { path: IMAGE_DATA.slice(1), mode: 0o700, owner: IMAGE_USER, directory: true },
  ];
}
