import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { sample, shares, weakGroups } from '../../tools/mutants.ts';
import { applyMutant, type Mutant, mutantsOf } from '../../tools/mutation/generate.ts';
import { Judge } from '../../tools/mutation/judge.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** The mutants of a line. */
function planted(source: string): string[] {
  return mutantsOf('x.ts', source).map((mutant) => `${mutant.kind}: ${applyMutant(source, mutant)}`);
}

test('inverts operators, but not string concatenation', () => {
  assert.deepEqual(planted('x = a === b'), ['operator: x = a !== b']);
  assert.deepEqual(planted('x = (a) <= b'), ['operator: x = (a) < b']);
  assert.deepEqual(planted('x = a + b'), ['operator: x = a - b']);
  assert.deepEqual(planted('x -= a'), ['operator: x += a']);
  assert.deepEqual(planted("x = a && f('&&')"), ["operator: x = a || f('&&')"]);
  assert.deepEqual(planted("x = 'a' + b + `c`"), []);
});

test('removes conditions', () => {
  assert.deepEqual(planted('if (a) b = c;'), ['condition: if (true) b = c;', 'condition: if (false) b = c;']);
  assert.deepEqual(planted('x = a ? b : c'), ['condition: x = true ? b : c', 'condition: x = false ? b : c']);
});

test('removes call statements, with their await', () => {
  assert.deepEqual(planted('f();'), ['call: ;']);
  assert.deepEqual(planted('await f();'), ['call: ;']);
  assert.deepEqual(planted('x = f();'), []);
});

test('returns a value of the declared type, or undefined without one', () => {
  const body = (type: string) =>
    planted(`function f()${type} { return g; }`).map((text) => text.slice('return: function f()'.length));
  assert.deepEqual(body(''), [' { return undefined }']);
  assert.deepEqual(body(': boolean'), [': boolean { return true }', ': boolean { return false }']);
  assert.deepEqual(body(': Promise<number>'), [': Promise<number> { return 0 }']);
  assert.deepEqual(body(': string'), [": string { return '' }"]);
  assert.deepEqual(body(': readonly X[]'), [': readonly X[] { return [] }']);
  assert.deepEqual(planted('const f = (): string => g;'), ["return: const f = (): string => '';"]);
  assert.deepEqual(planted('const f = () => g;'), []);
  assert.deepEqual(planted('function f() { const g = (): string => h; return g; }'), [
    "return: function f() { const g = (): string => ''; return g; }",
    'return: function f() { const g = (): string => h; return undefined }',
  ]);
});

test('inverts booleans and changes limits', () => {
  assert.deepEqual(planted('x = { a: true }'), ['boolean: x = { a: false }']);
  assert.deepEqual(planted('const MAX_A = 2 * 3;'), ['limit: const MAX_A = 2 * 3 + 1;']);
  assert.deepEqual(planted('x = a < 7'), ['operator: x = a <= 7', 'limit: x = a < 8']);
  assert.deepEqual(planted('const MAX_B = (MAX_A - 1) * 0xff;'), [
    'limit: const MAX_B = (MAX_A - 1) * 0xff + 1;',
    'operator: const MAX_B = (MAX_A + 1) * 0xff;',
  ]);
  assert.deepEqual(planted('const small = 7;'), []);
  assert.deepEqual(planted('const NONE = new Uint8Array(8);'), []);
});

test('does not mutate types, log lines, error texts and time constants', () => {
  assert.deepEqual(planted('interface A { b: true } let c: false | 1 = d as true;'), []);
  assert.deepEqual(planted('this.#deps.log.warn(a ? b : c);'), []);
  assert.deepEqual(planted('x = new TypeError(a ? b : c)'), []);
  assert.deepEqual(planted('const WAIT_MS = 2 + 3;'), []);
  assert.deepEqual(planted('timer.unref();'), []);
});

test('reports the position of a mutant, and rejects invalid TypeScript', () => {
  const [mutant] = mutantsOf('src/a/b.ts', '/** Über */\n\nif (\n  a\n) b();\n');
  assert.deepEqual([mutant?.file, mutant?.line, mutant?.before, mutant?.after], ['src/a/b.ts', 4, 'a', 'true']);
  assert.throws(() => mutantsOf('x.ts', 'if if'), /x\.ts/);
});

test('a seed always selects the same distinct mutants', () => {
  const all = Array.from({ length: 50 }, (_, i) => i);
  const chosen = sample(all, 20, 1);
  assert.deepEqual(sample(all, 20, 1), chosen);
  assert.notDeepEqual(sample(all, 20, 2), chosen);
  assert.equal(new Set(chosen).size, 20);
  assert.deepEqual(
    sample(all, 60, 1).toSorted((a, b) => a - b),
    all,
  );
});

test('counts by folder, and counts hanging mutants as noticed', () => {
  const [mutant] = mutantsOf('src/a/b.ts', 'f();');
  assert.ok(mutant);
  const results = (['noticed', 'hung', 'unnoticed', 'unnoticed'] as const).map((verdict) => ({ mutant, verdict }));
  assert.deepEqual(
    shares(results, () => 'a').map((line) => line.replace(/\s+/g, ' ')),
    ['a 2 of 4 50 %'],
  );
});

test('names the groups in which less than 80 % of the mutants are noticed', () => {
  const results = ['src/a/x.ts', 'src/b/x.ts', 'src/b/y.ts'].flatMap((file) =>
    ([file === 'src/b/y.ts' ? 'unnoticed' : 'noticed', 'hung', 'hung', 'hung', 'noticed'] as const).map(
      (verdict, i) => {
        const [mutant] = mutantsOf(file, 'f();');
        assert.ok(mutant);
        return { mutant, verdict: file === 'src/b/x.ts' && i === 0 ? ('unnoticed' as const) : verdict };
      },
    ),
  );
  assert.deepEqual(
    weakGroups(results, (file) => file),
    [],
  );
  const [first] = results;
  assert.ok(first);
  const worse = [...results, { ...first, verdict: 'unnoticed' as const }, { ...first, verdict: 'unnoticed' as const }];
  assert.deepEqual(
    weakGroups(worse, (file) => file.split('/').slice(0, 2).join('/')),
    ['src/a (5 of 7)'],
  );
});

const WORLD = {
  'package.json': '{"type":"module"}',
  'src/a/kept.ts': 'export const MAX = 2;',
  'src/a/sum.ts': "import './kept.ts';\nexport const sum = (a, b) => a + b;",
  'src/a/deep/loose.ts': 'export const MIN = 3;',
  'test/a/other.test.ts': "import '../../src/a/deep/loose.ts';",
  'test/a/sum.test.ts': "import { sum } from '../../src/a/sum.ts';\nif (sum(2, 3) !== 5) throw new Error('sum');",
};

test('runs the tests of the folder in a copy', { timeout: 60_000 }, async (t) => {
  const root = temporaryDirectory(t);
  for (const [name, text] of Object.entries(WORLD)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const judge = new Judge(root, 1);
  t.after(() => judge.dispose());
  assert.deepEqual(judge.testsOf('src/a/kept.ts'), ['test/a/sum.test.ts']);
  assert.deepEqual(judge.testsOf('src/a/deep/loose.ts'), ['test/a/other.test.ts']);

  const first = (file: keyof typeof WORLD): Mutant => {
    const [mutant] = mutantsOf(file, WORLD[file]);
    assert.ok(mutant);
    return mutant;
  };
  assert.equal(await judge.judge(first('src/a/sum.ts')), 'noticed');
  assert.equal(await judge.judge(first('src/a/kept.ts')), 'unnoticed');
  assert.equal(readFileSync(join(root, 'src/a/sum.ts'), 'utf8'), WORLD['src/a/sum.ts']);
});
