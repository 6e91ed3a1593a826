/**
 * Adds platform packages of other operating systems to package-lock.json.
 *
 * npm omits an optional dependency from the lock if the registry does not carry it, and `npm ci` then rejects the lock.
 * The platform is part of the package name, so this script can write the entries. npm skips entries whose `os` or `cpu`
 * does not match. Run it after `npm install`. It prints the added packages.
 */
import { readFileSync, writeFileSync } from 'node:fs';

interface LockEntry {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}
interface Lock {
  packages: Record<string, LockEntry>;
}

const OS = [
  'android',
  'darwin',
  'freebsd',
  'linux',
  'linuxmusl',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'aix',
  'win32',
  'win',
  'wasm32',
  'wasm',
];
const CPU = [
  'arm64',
  'x64',
  'ia32',
  'x86',
  'arm',
  'armv7',
  'ppc64',
  'riscv64',
  's390x',
  'loong64',
  'mips64el',
  'wasm32',
  'universal',
];

function platformOf(name: string): Pick<LockEntry, 'os' | 'cpu' | 'libc'> | null {
  const parts = name.replace(/^@[^/]+\//, '').split(/[-_.]/);
  const os = parts.find((p) => OS.includes(p));
  if (os === undefined) return null;
  const cpu = parts.find((p) => CPU.includes(p));
  const libc = parts.some((p) => p.startsWith('musl'))
    ? 'musl'
    : parts.some((p) => p.startsWith('gnu'))
      ? 'glibc'
      : null;
  return {
    os: [os === 'win' ? 'win32' : os.startsWith('wasm') ? 'wasm' : os === 'linuxmusl' ? 'linux' : os],
    cpu: [cpu === undefined || cpu === 'universal' ? 'none' : cpu === 'x86' ? 'ia32' : cpu === 'armv7' ? 'arm' : cpu],
    ...(libc === null || !os.startsWith('linux') ? {} : { libc: [libc] }),
  };
}

const file = new URL('../package-lock.json', import.meta.url);
const lock: Lock = JSON.parse(readFileSync(file, 'utf8'));
const added: string[] = [];
for (const [path, entry] of Object.entries(lock.packages)) {
  for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] !== undefined || lock.packages[`${path}/${key}`] !== undefined) continue;
    const platform = platformOf(name);
    if (platform === null) throw new Error(`${name} is missing from the lock, and its name contains no platform`);
    lock.packages[key] = {
      version: range.replace(/^[~^]/, ''),
      ...(entry.dev === true ? { dev: true } : {}),
      optional: true,
      ...platform,
    };
    added.push(name);
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
for (const name of added) console.log(`added ${name}`);
