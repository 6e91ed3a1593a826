import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { NpmRegistry } from '../support/npm-registry.ts';
import { installGlobally, manifest, otherNode, packSvcd, pathWith, runWith } from '../support/package.ts';
import { run } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** The oldest supported Node version of the package. */
const FLOOR = `${manifest.engines.node.replace('>=', '')}.0`;
/**
 * Unsupported Node versions: an early release of the same line, and one that cannot import a module without a suffix.
 */
const TOO_OLD = ['24.4.0', '16.20.2'];

function directoryOf(parent: string, name: string): string {
  const path = join(parent, name);
  mkdirSync(path);
  return path;
}

/** A Node of another version, or this one if npm cannot install it. */
async function nodeOr(t: TestContext, version: string, directory: string): Promise<string> {
  const node = await otherNode(directory, version);
  if (node === null) t.diagnostic(`npm cannot install Node ${version}: this Node is used instead`);
  return node ?? process.execPath;
}

test('the package installs globally from its tarball, and works with the oldest supported Node', async (t) => {
  const directory = temporaryDirectory(t);
  const tarball = await packSvcd(directory);
  await using registry = await NpmRegistry.start();
  await registry.publishDependencies(directoryOf(directory, 'tarballs'));
  const bin = await installGlobally(directory, tarball, registry.url);
  const [svcd, svc] = [join(bin, 'svcd'), join(bin, 'svc')];

  const root = join(bin, '..', 'lib', 'node_modules', 'svcd');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((f) => !f.startsWith('node_modules'));
  for (const wanted of ['README.md', 'LICENSE', 'CHANGELOG.md', 'docs/reference/rest.md', 'docs/threat-model.md'])
    assert.ok(files.includes(wanted), wanted);
  assert.deepEqual(
    files.filter((file) =>
      /(^|\/)(test|tests|bench|src|tools|\.ci)\/|\.test\.|(?<!dist\/client\/[\w-]+\.d)\.ts$|surface\.json/.test(file),
    ),
    [],
    'files that only a checkout needs',
  );
  // npm must have fetched only this platform's native packages.
  assert.equal(readdirSync(join(root, 'node_modules', '@chainsafe')).length, 1);
  assert.equal(existsSync(join(root, 'node_modules', 'typescript')), false);

  const node = await nodeOr(t, FLOOR, directoryOf(directory, 'floor'));
  const started = await runWith(node, svcd, ['service', 'install', '--user', '--dry-run']);
  assert.deepEqual([started.code, started.stderr], [0, ''], 'no unexpected output');
  assert.equal((await runWith(node, svcd, ['--version'])).stdout, `${manifest.version}\n`);
  await using daemon = await TestDaemon.start({ command: [svcd], env: { PATH: pathWith(node) } });
  const status = await runWith(node, svc, ['status', '--json'], { SVC_API: daemon.api });
  assert.equal(status.code, 0, status.stderr);
  assert.equal(JSON.parse(status.stdout).version, manifest.version);
  const registered = await runWith(node, svc, ['register', '--no-publish', '--quiet'], { SVC_API: daemon.api });
  assert.match(registered.stdout, /^aid1/);
  const { body } = await daemon.request('GET', '/debug/host');
  if (node !== process.execPath) assert.match(JSON.stringify(body), new RegExp(`v?${FLOOR}`));

  const update = await runWith(node, svc, ['update', '--confirm'], { SVC_API: daemon.api });
  assert.deepEqual([update.code, update.stdout.split(',')[0]], [0, 'This build of svcd has no release key']);
  const { body: updates } = await daemon.request('GET', '/update/status?check=true');
  assert.match(
    JSON.stringify(updates),
    /"latest_version":null.*"state":"idle".*"warning":"This build of svcd has no release key/,
  );
  assert.match((await runWith(node, svcd, ['update'])).stdout, /^This build of svcd has no release key/);

  for (const version of TOO_OLD) {
    const old = await otherNode(directoryOf(directory, `node-${version}`), version);
    const output = old === null ? await oldNode(t, version, svcd) : await run(old, [svcd, '--version']);
    assert.equal(output.code, 1, version);
    assert.match(
      output.stderr,
      new RegExp(`^svcd needs Node 24\\.11 or newer\\. This is Node ${version.replaceAll('.', '\\.')}\\.\n`),
    );
    assert.equal(output.stderr.split('\n').length, 3, 'two lines, no stack');
  }
});

/** If no old Node is available, this Node reports an old version. */
async function oldNode(
  t: TestContext,
  version: string,
  program: string,
): Promise<{ code: number | null; stderr: string }> {
  t.diagnostic(`npm cannot install Node ${version}: this Node reports that version`);
  const change = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`;
  return run(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(change)}`,
    program,
    '--version',
  ]);
}
