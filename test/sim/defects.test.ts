import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..', '..');
const DEFECTS = join(ROOT, 'sim', 'defects');
const LIST = join(DEFECTS, 'list.json');

test('every defect has a commit, a cause and options, and at least 40 are expected to be found', () => {
  const list: readonly Readonly<Record<string, unknown>>[] = JSON.parse(readFileSync(LIST, 'utf8'));
  for (const { patch, fixedBy, cause, options, unseen = 'No cause.', ...rest } of list) {
    assert.deepEqual(rest, {}, String(patch));
    assert.match(String(fixedBy), /^[0-9a-f]{8}$/, String(patch));
    for (const sentence of [cause, unseen]) assert.match(String(sentence), /^[A-Z].+\.$/, String(patch));
    assert.match(String(options), /^(--|records)/, String(patch));
  }
  assert.ok(list.filter(({ unseen }) => unseen === undefined).length >= 40);
});

test('the patch of every defect applies to the present sources', () => {
  const patches = readdirSync(DEFECTS).filter((name) => name.endsWith('.patch'));
  const list = JSON.parse(readFileSync(LIST, 'utf8')) as readonly { readonly patch: string }[];
  assert.deepEqual(list.map(({ patch }) => patch).toSorted(), patches.toSorted());
  const stale = patches.filter(
    (patch) => spawnSync('git', ['apply', '--check', join(DEFECTS, patch)], { cwd: ROOT }).status !== 0,
  );
  assert.deepEqual(stale, []);
});
