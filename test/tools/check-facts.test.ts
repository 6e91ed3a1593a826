import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { findings } from '../../tools/check-facts.ts';

function source(path: string, text: string) {
  return { path: `src/${path}`, text };
}

/** Findings in made-up files, given by name and text. */
function found(files: Readonly<Record<string, string>>, page = ''): string[] {
  const sources = Object.entries(files).map(([path, text]) => source(path, text));
  return findings(sources, [{ path: 'docs/page.md', text: page }]);
}

function onlyFinding(files: Readonly<Record<string, string>>, page = ''): string {
  const [one = '', ...more] = found(files, page);
  assert.deepEqual(more, []);
  return one;
}

test('finds a number that two files define under similar names', () => {
  const owner = '/** Longest label, characters. */\nexport const MAX_LABEL_CHARS = 64;\n';
  for (const copy of [
    'const MAX_LABEL_CHARS = 64;\n',
    'const MAX_LABEL: number = 8 * 8;\n',
    'const LABEL_MAX = 0x40;\n',
  ])
    assert.match(
      onlyFinding({ 'a.ts': owner, 'b.ts': copy }),
      /^one fact .*MAX_LABEL_CHARS \(src\/a\.ts\).*src\/b\.ts/,
    );
});

test('allows other values, units and bounds, and computed constants', () => {
  const owner = 'export const MAX_LABEL_CHARS = 64;\n';
  for (const other of [
    'const MAX_LABEL_CHARS = 65;\n',
    'const MAX_LABEL_BYTES = 64;\n',
    'const MIN_LABEL_CHARS = 64;\n',
    "import { MAX_LABEL_CHARS } from './a.ts';\nconst MAX_LABEL: number = MAX_LABEL_CHARS;\n",
    '// const MAX_LABEL = 64;\n',
    'const VERSION = 1;\n',
  ])
    assert.deepEqual(found({ 'a.ts': `${owner}const VERSION = 1;\n`, 'b.ts': other }), [], other);
});

test('finds a pattern that two files define, as a literal or as text', () => {
  const files = { 'a.ts': 'const ID = /^[0-9a-f]{64}$/;\n', 'b.ts': "const NAME_PATTERN = '^[0-9a-f]{64}$';\n" };
  assert.match(onlyFinding(files), /ID \(src\/a\.ts\), NAME_PATTERN \(src\/b\.ts\)/);
  assert.deepEqual(found({ 'a.ts': files['a.ts'], 'b.ts': 'const ID = /^[0-9a-f]{32}$/;\n' }), []);
});

test('finds a list that two files define, as a list or as a type, in any order', () => {
  const owner = "export const STATES = ['idle', 'busy', 'gone'] as const;\n";
  for (const copy of ["type State = 'busy' | 'idle' | 'gone';\n", "x(['gone', 'busy', 'idle'])"])
    assert.match(onlyFinding({ 'a.ts': owner, 'b.ts': copy }), /^one list .*src\/a\.ts and src\/b\.ts/);
  for (const other of ["type Part = 'busy' | 'idle';\n", "// ['idle', 'busy', 'gone']\n"])
    assert.deepEqual(found({ 'a.ts': owner, 'b.ts': other }), [], other);
});

test('finds schema bounds that are bare numbers', () => {
  for (const bound of ['maxLength: 64', 'maximum: 2 * 1024', 'maxItems: 0x10', 'minimum: -7'])
    assert.match(onlyFinding({ 'a.ts': `Type.String({ ${bound} });\n` }), new RegExp(`^a limit .*src/a\\.ts`), bound);
  for (const bound of ['minLength: 1', 'minimum: -1', 'maximum: MAX_PORT', 'maximum: 2 * MAX_PARTS'])
    assert.deepEqual(found({ 'a.ts': `Type.String({ ${bound} });\n` }), [], bound);
});

test('finds figures of a page that differ from the sources', () => {
  const files = {
    'a.ts': 'export const MAX_TEXT_BYTES: number = 64 * 1024;\nexport const LIFE_S = 7200;\nconst WAIT_MS = 500;\n',
    'b.ts': 'export const MAX_BOTH_BYTES: number = 2 * MAX_TEXT_BYTES;\nconst RATE_PER_S = 20;\nconst WAIT_MS = 1;\n',
    'c.ts': 'const MAX_TEXT_BYTES = 1;\n',
  };
  const good =
    '64 KiB<!-- MAX_TEXT_BYTES --> 65,536 bytes<!-- MAX_TEXT_BYTES --> (2 h<!-- LIFE_S -->) 120 minutes<!-- LIFE_S --> ' +
    '128 KiB<!-- MAX_BOTH_BYTES --> 20<!-- RATE_PER_S --> a second, 7200<!-- LIFE_S --> <!-- a remark -->';
  assert.deepEqual(found(files, good), []);
  assert.match(onlyFinding(files, '63 KiB<!-- MAX_TEXT_BYTES -->'), /says 63 KiB but MAX_TEXT_BYTES is 65536/);
  assert.match(onlyFinding(files, '2 s<!-- LIFE_S -->'), /says 2 s but LIFE_S is 7200/);
  assert.match(onlyFinding(files, '5<!-- NO_SUCH -->'), /NO_SUCH, which is not a numeric/);
  assert.match(onlyFinding(files, '1 ms<!-- WAIT_MS -->'), /WAIT_MS, which has different values/);
});

test('ignores the schemas of migrations', () => {
  const list = "CHECK (state IN (['idle', 'busy', 'gone']))";
  assert.deepEqual(found({ 'a.ts': list, 'foundation/store/schema.ts': list }), []);
});

test('the sources state no fact twice', () => {
  const { status, stderr } = spawnSync(process.execPath, ['tools/check-facts.ts'], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

test('finds one name that two files of a folder export', () => {
  const owner = 'export class Session {}\n';
  for (const other of [
    'export interface Session {}\n',
    'export abstract class Session {}\n',
    'export type Session = 1;\n',
  ])
    assert.match(onlyFinding({ 'a.ts': owner, 'b.ts': other }), /^one name .*Session .*src\/a\.ts and src\/b\.ts/);
  assert.deepEqual(found({ 'a.ts': owner, 'b.ts': 'class Session {}\n// export class Session\n' }), []);
  assert.deepEqual(found({ 'a.ts': 'export const Part = 1;\nexport type Part = typeof Part;\n' }), []);
  assert.deepEqual(found({ 'calls/a.ts': owner, 'chat/a.ts': owner }), []);
});
