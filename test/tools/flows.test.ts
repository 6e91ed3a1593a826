/** docs/flows.md names real files, and few of them. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const MAX_FILES = 10;

test('each flow of docs/flows.md names at most ten files, and all exist', () => {
  const flows = readFileSync('docs/flows.md', 'utf8').split(/^## /m).slice(1);
  assert.equal(flows.length, 4);
  for (const flow of flows) {
    const files = [...flow.matchAll(/^\|\s*\d+\s*\|\s*`([^`]+)`\s*\|/gm)].map(([, file = '']) => file);
    assert.ok(files.length >= 5 && files.length <= MAX_FILES, flow);
    for (const file of files) assert.ok(existsSync(`src/${file}`), file);
  }
});
