import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { create } from 'tar';
import { Installer, Npm } from '../../../src/capabilities/update/installer.ts';
import { Releases } from '../../../src/capabilities/update/releases.ts';
import type { Release } from '../../../src/capabilities/update/types.ts';
import { sha512 } from '../../support/npm-registry.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const VERSION = '1.1.0';
const PLATFORM = { os: 'linux', cpu: 'x64', libc: 'glibc' };

/** Files of a release that reports its version, with a lock file. */
function files(lock: object = {}): Record<string, string> {
  return {
    'package.json': JSON.stringify({ name: 'svcd', version: VERSION, type: 'module' }),
    'bin/svcd': `console.log('${VERSION}')`,
    'dist/package-lock.json': JSON.stringify({ packages: { '': {}, ...lock } }),
  };
}

function setUp(t: TestContext) {
  const directory = temporaryDirectory(t);
  const releases = new Releases(join(directory, 'data'));
  mkdirSync(join(directory, 'data'));
  const installed: string[] = [];
  const pack = (content: Record<string, string>, more: (root: string) => void = () => {}): Buffer => {
    const root = join(directory, `${Math.random()}`, 'package');
    for (const [name, text] of Object.entries(content)) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), text);
    }
    more(root);
    const file = join(directory, 'x.tgz');
    create({ file, gzip: true, cwd: dirname(root), sync: true }, ['package']);
    return readFileSync(file);
  };
  const install = (tarball: Buffer, more: Partial<Release> = {}): Promise<void> => {
    const installer = new Installer(
      { name: 'svcd', node: process.execPath, nodeVersion: '24.11.0', platform: () => PLATFORM, environment: {} },
      { tarball: async () => tarball },
      {
        install: async (folder) => void installed.push(readFileSync(join(folder, 'package-lock.json'), 'utf8')),
      },
      releases,
    );
    const url = new URL('http://127.0.0.1/x.tgz');
    const release = { version: VERSION, tarball: url, integrity: sha512(tarball), node: '*', ...more };
    return installer.install(release, new AbortController().signal);
  };
  const nothingLeft = (): void => {
    assert.equal(releases.programOf(VERSION), null);
    assert.equal(existsSync(join(releases.directory, '.staging')), false);
  };
  return { releases, installed, pack, install, nothingLeft };
}

test('a release is unpacked next to other releases, installed by its lock file, and started once', async (t) => {
  const { releases, installed, pack, install } = setUp(t);
  const content = files({ 'node_modules/a': { integrity: 'sha512-x' } });
  await install(pack(content));
  assert.deepEqual(installed, [content['dist/package-lock.json']]);
  assert.equal(releases.programOf(VERSION), join(releases.directory, VERSION, 'bin', 'svcd'));
  assert.equal(existsSync(join(releases.directory, '.staging')), false);
  await install(pack(content));
  assert.equal(installed.length, 2, 'the remains of an earlier attempt are replaced');
});

test('bytes that do not match the signature are not unpacked', async (t) => {
  const { installed, pack, install, nothingLeft } = setUp(t);
  const tarball = pack(files());
  const other = Buffer.concat([tarball, Buffer.alloc(1)]);
  await assert.rejects(install(other, { integrity: sha512(tarball) }), { message: /does not match the signature/ });
  assert.deepEqual(installed, []);
  nothingLeft();
});

test('a release with another name or version is rejected', async (t) => {
  const { pack, install, nothingLeft } = setUp(t);
  const manifest = { 'package.json': JSON.stringify({ name: 'svcd', version: '9.9.9' }) };
  await assert.rejects(install(pack({ ...files(), ...manifest })), { message: /its manifest has another name/ });
  const program = { 'bin/svcd': "console.log('9.9.9')" };
  await assert.rejects(install(pack({ ...files(), ...program })), { message: /reports a different version/ });
  const broken = { 'bin/svcd': 'throw new Error("broken")' };
  await assert.rejects(install(pack({ ...files(), ...broken })), {
    code: 'protocol_error',
    message: /failed: .*broken/s,
  });
  nothingLeft();
});

test('a lock file without integrity hashes for this platform is rejected', async (t) => {
  const { installed, pack, install, nothingLeft } = setUp(t);
  for (const entry of [{}, { integrity: 'sha1-x' }, { os: ['linux'], cpu: ['x64'], libc: ['glibc'] }])
    await assert.rejects(install(pack(files({ 'node_modules/a': entry }))), {
      message: /no integrity hash for a/,
    });
  const { 'dist/package-lock.json': _, ...without } = files();
  await assert.rejects(install(pack(without)), { message: /it has no lock/ });
  nothingLeft();
  const elsewhere = [{ dev: true }, { os: ['darwin'] }, { cpu: ['arm64'] }, { libc: ['musl'] }];
  await install(pack(files(Object.fromEntries(elsewhere.map((entry, i) => [`node_modules/${i}`, entry])))));
  assert.equal(installed.length, 1);
});

test('a release for another Node is rejected before the download', async (t) => {
  const { pack, install, nothingLeft } = setUp(t);
  await assert.rejects(install(pack(files()), { node: '>=26' }), {
    message: /needs Node >=26, but this is Node 24\.11\.0/,
  });
  nothingLeft();
});

test('links in a tarball lead nowhere, and an invalid tarball is rejected', async (t) => {
  const { releases, pack, install } = setUp(t);
  await install(pack(files(), (root) => symlinkSync('/etc', join(root, 'etc'))));
  assert.equal(existsSync(join(releases.directory, VERSION, 'etc')), false);
  await assert.rejects(install(Buffer.from('nonsense')), { message: /Cannot unpack/ });
  // A tarball of a quarter of a megabyte that unpacks to more than 256 MiB.
  const member = gzipSync(Buffer.alloc(16 * 1024 * 1024));
  const bomb = Buffer.concat(Array.from({ length: 17 }, () => member));
  await assert.rejects(install(bomb), { message: /Cannot unpack/ });
});

test('an invalid version never becomes a path', (t) => {
  const { releases } = setUp(t);
  for (const version of ['../../etc', '1.0', '', '.staging', 'v1.0.0', '1.0.0/..'])
    assert.throws(() => releases.pathOf(version), RangeError);
});

/** A separate folder with a script in place of npm. */
function npmWith(t: TestContext, script: string) {
  const root = temporaryDirectory(t);
  const program = join(root, 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js');
  mkdirSync(dirname(program), { recursive: true });
  writeFileSync(program, script);
  const directory = join(root, 'project');
  mkdirSync(directory);
  const environment = { PATH: ['', join(root, 'bin')].join(delimiter), MARK: 'seen' };
  // No npm is next to this Node.
  const node = join(root, 'other', 'bin', 'node');
  mkdirSync(dirname(node), { recursive: true });
  symlinkSync(process.execPath, node);
  return { npm: new Npm({ node, directory, environment }), directory };
}

test('npm of PATH reports its registry', async (t) => {
  const { npm } = npmWith(
    t,
    "console.log(process.argv[3] === 'get' && process.env.MARK ? ' https://r.example/ ' : '')",
  );
  assert.equal((await npm.registry(new AbortController().signal)).href, 'https://r.example/');
  const bad = npmWith(t, "console.log('undefined')");
  await assert.rejects(bad.npm.registry(new AbortController().signal), { code: 'config_invalid' });
});

test('npm ends with its exit, even if a process that it left behind holds its output', {
  skip: process.platform === 'win32',
}, async (t) => {
  const left = "require('node:child_process').spawn('/bin/sleep', ['1000'], { detached: true, stdio: 'inherit' })";
  const { npm, directory } = npmWith(
    t,
    `const { pid } = ${left}; require('node:fs').writeFileSync('left', String(pid));
    process.stdout.write('https://r.example/' + ' '.repeat(60_000), () => process.exit(0))`,
  );
  const registry = await npm.registry(new AbortController().signal);
  process.kill(Number(readFileSync(join(directory, 'left'), 'utf8')), 'SIGKILL');
  assert.equal(registry.href, 'https://r.example/');
});

test('npm installs the lock file without scripts, in the folder of the release', async (t) => {
  const { npm, directory } = npmWith(
    t,
    "require('node:fs').writeFileSync('args', process.argv.slice(2).join(' ')); console.log(process.cwd())",
  );
  await npm.install(directory, '/cache', new AbortController().signal);
  const args = readFileSync(join(directory, 'args'), 'utf8');
  assert.match(args, new RegExp(`^ci --omit=dev --ignore-scripts --prefix ${directory} --cache /cache `));
});

test('a failed npm, a missing one and a cancelled one are different errors', async (t) => {
  const run = (npm: Npm, signal = new AbortController().signal) => npm.registry(signal);
  const failing = npmWith(t, "console.log('out'); console.error('no network'); process.exit(1)");
  await assert.rejects(run(failing.npm), { code: 'protocol_error', message: /failed: no network$/ });
  const quiet = npmWith(t, "console.log('only out'); process.exit(1)");
  await assert.rejects(run(quiet.npm), { message: /failed: only out$/ });
  const missing = new Npm({ node: '/nowhere/bin/node', directory: tmpdir(), environment: {} });
  await assert.rejects(run(missing), { code: 'not_found' });
  const hanging = npmWith(t, 'setInterval(() => {}, 1000)');
  const stop = new AbortController();
  const outcome = run(hanging.npm, stop.signal);
  stop.abort();
  await assert.rejects(outcome, { code: 'cancelled' });
});

test('only the given releases are kept, and other files stay', async (t) => {
  const { releases, pack, install } = setUp(t);
  releases.keepOnly([]);
  await install(pack(files()));
  for (const name of ['1.0.0', '1.2.0', 'notes']) mkdirSync(join(releases.directory, name));
  releases.keepOnly([VERSION, null, '1.2.0']);
  const exists = (name: string) => existsSync(join(releases.directory, name));
  assert.deepEqual(['1.0.0', VERSION, '1.2.0', 'notes'].map(exists), [false, true, true, true]);
  assert.equal(releases.programOf('../x'), null);
  assert.equal(releases.programOf('v1.1.0'), null);
});
