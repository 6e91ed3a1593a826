import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..', '..');
const DEFECTS = join(ROOT, 'sim', 'defects');

test('the patch of every defect applies to the present sources', () => {
  const patches = readdirSync(DEFECTS).filter((name) => name.endsWith('.patch'));
  const list = JSON.parse(readFileSync(join(DEFECTS, 'list.json'), 'utf8')) as readonly { readonly patch: string }[];
  assert.deepEqual(list.map(({ patch }) => patch).toSorted(), patches.toSorted());
  const stale = patches.filter(
    (patch) => spawnSync('git', ['apply', '--check', join(DEFECTS, patch)], { cwd: ROOT }).status !== 0,
  );
  assert.deepEqual(stale, []);
});
