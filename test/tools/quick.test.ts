import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleGraph } from '../../tools/module-graph.ts';
import { testsAfter } from '../../tools/quick.ts';

const SOURCES = moduleGraph({
  'src/a/x.ts': '',
  'src/b/y.ts': "import { x } from '../a/x.ts';\n",
  'src/c/z.ts': "import { y } from '../b/y.ts';\n",
});
const TESTS = [
  'test/a/x.test.ts',
  'test/b/y.test.ts',
  'test/c/z.test.ts',
  'test/sim/w.test.ts',
  'test/tools/t.test.ts',
];

test('a change runs the tests of its folder and of the folders that import it', () => {
  assert.deepEqual(testsAfter(['src/a/x.ts'], TESTS, SOURCES), ['test/a/x.test.ts', 'test/b/y.test.ts']);
  assert.deepEqual(testsAfter(['src/c/z.ts'], TESTS, SOURCES), ['test/c/z.test.ts']);
});

test('changed tests run, and after a change of any tool the tests of all tools', () => {
  assert.deepEqual(testsAfter(['test/c/z.test.ts', 'test/sim/w.test.ts'], TESTS, SOURCES), ['test/c/z.test.ts']);
  assert.deepEqual(testsAfter(['tools/build.ts'], TESTS, SOURCES), ['test/tools/t.test.ts']);
  assert.deepEqual(testsAfter(['README.md'], TESTS, SOURCES), []);
});
