import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const isWindows = process.platform === 'win32';

const BUILD = `
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
mkdirSync('dist/cli', { recursive: true });
writeFileSync('dist/cli/main.js', readFileSync('src/cli/main.ts', 'utf8').replace('sources', 'bundle'));
writeFileSync('dist/built', '');
`;

/** A checkout with a program that prints whether its sources or its bundle run. */
class Checkout {
  readonly #root: string;

  constructor(t: TestContext) {
    this.#root = temporaryDirectory(t);
    this.write('package.json', JSON.stringify({ engines: { node: '>=24.11' }, type: 'module' }));
    this.write('bin/package.json', '{}');
    copyFileSync('bin/launch.js', join(this.#root, 'bin/launch.js'));
    this.write('src/cli/main.ts', "console.log('sources')");
    this.write('tools/build.ts', BUILD);
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.#root, name)), { recursive: true });
    writeFileSync(join(this.#root, name), text);
  }

  writeProgram(name: string, text: string): void {
    this.write(name, text);
    chmodSync(join(this.#root, name), 0o755);
  }

  remove(name: string): void {
    rmSync(join(this.#root, name), { recursive: true });
  }

  /** Backdates a file, because a file written in the same millisecond is not newer. */
  age(name: string): void {
    const before = new Date(Date.now() - 10_000);
    utimesSync(join(this.#root, name), before, before);
  }

  /** Runs `bin/svc`. */
  start(...args: readonly string[]) {
    return spawnSync(process.execPath, ['bin/svc', ...args], { cwd: this.#root, encoding: 'utf8' });
  }

  spawn() {
    return spawn(process.execPath, ['bin/svc'], { cwd: this.#root, stdio: ['ignore', 'pipe', 'inherit'] });
  }

  /** Runs the program. Returns its output, and the first message of the launcher. */
  run(): readonly [string, string] {
    const code = "require('./bin/launch.js')('cli/main', 'cli/main')";
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], { cwd: this.#root, encoding: 'utf8' });
    return [stdout.trim(), stderr.replace(/\d+\.\d s/, 'n s').split('\n')[0] ?? ''];
  }
}

const FIRST = 'svcd: first start, building … done in n s';
const DONE = 'svcd: the sources have changed, building … done in n s';

test('a checkout builds once if its sources are newer', (t) => {
  const checkout = new Checkout(t);
  assert.deepEqual(checkout.run(), ['bundle', FIRST]);
  assert.deepEqual(checkout.run(), ['bundle', '']);
  checkout.age('dist/built');
  checkout.write('src/cli/main.ts', "console.log('newer sources')");
  assert.deepEqual(checkout.run(), ['newer bundle', DONE]);
  assert.deepEqual(checkout.run(), ['newer bundle', '']);
});

test('removing a source file triggers a build', (t) => {
  const checkout = new Checkout(t);
  checkout.write('src/other.ts', '');
  checkout.run();
  checkout.age('dist/built');
  for (const name of ['src/cli/main.ts', 'src/cli', 'src', 'tools/build.ts']) checkout.age(name);
  checkout.remove('src/other.ts');
  assert.deepEqual(checkout.run(), ['bundle', DONE]);
});

test('a checkout that cannot build runs its sources and reports that', (t) => {
  const checkout = new Checkout(t);
  checkout.write('tools/build.ts', "throw new Error('no bundler here')");
  const [printed, reported] = checkout.run();
  assert.equal(printed, 'sources');
  assert.match(reported, /building … failed. Running the sources directly/);
});

test('a package without sources builds nothing', (t) => {
  const checkout = new Checkout(t);
  checkout.run();
  checkout.age('dist/built');
  checkout.remove('src');
  assert.deepEqual(checkout.run(), ['bundle', '']);
});

/** A checkout that needs a newer Node than there is. Its own "Node" is a shell script. */
function oldNode(t: TestContext, own: string): Checkout {
  const checkout = new Checkout(t);
  checkout.write('package.json', JSON.stringify({ engines: { node: '>=999.0' }, type: 'module' }));
  checkout.write('bin/svc', "require('./launch.js')('cli/main', 'cli/main');");
  checkout.writeProgram('node_modules/node/bin/node', `#!/bin/sh\n${own}\n`);
  return checkout;
}

test('with an old Node, a checkout runs with its own one, and ends like it', { skip: isWindows }, (t) => {
  const checkout = oldNode(t, 'echo "$1" | grep -o "bin/svc$"; shift; echo "$@"; exit 7');
  const { stdout, status } = checkout.start('one', '--two');
  assert.deepEqual([stdout, status], ['bin/svc\none --two\n', 7]);
});

test('the own Node receives signals', { skip: isWindows }, async (t) => {
  const checkout = oldNode(t, 'trap "echo stopped; exit 0" TERM; echo ready; while :; do sleep 0.1; done');
  const child = checkout.spawn();
  const output: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.push(text);
    if (text.includes('ready')) child.kill('SIGTERM');
  });
  await once(child, 'close');
  assert.deepEqual([output.join(''), child.exitCode], ['ready\nstopped\n', 0]);
});

test('an old Node without a newer one is named', (t) => {
  const checkout = oldNode(t, '');
  checkout.remove('node_modules');
  const { stderr, status } = checkout.start();
  assert.match(stderr, /^svcd needs Node 999\.0 or newer\. This is Node /);
  assert.equal(status, 1);
});
