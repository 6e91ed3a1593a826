import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../support/temporary-directory.ts';

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

  remove(name: string): void {
    rmSync(join(this.#root, name), { recursive: true });
  }

  /** Backdates a file, because a file written in the same millisecond is not newer. */
  age(name: string): void {
    const before = new Date(Date.now() - 10_000);
    utimesSync(join(this.#root, name), before, before);
  }

  /** Runs the program. Returns its output, and the first message of the launcher. */
  run(): readonly [string, string] {
    const code = "require('./bin/launch.js')('cli/main', 'cli/main')";
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], { cwd: this.#root, encoding: 'utf8' });
    return [stdout.trim(), stderr.replace(/\d+\.\d s/, 'n s').split('\n')[0] ?? ''];
  }
}

const DONE = 'svcd: the sources have changed, building … done in n s';

test('a checkout builds once if its sources are newer', (t) => {
  const checkout = new Checkout(t);
  assert.deepEqual(checkout.run(), ['bundle', DONE]);
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
