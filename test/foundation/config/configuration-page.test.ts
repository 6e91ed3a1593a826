import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseConfig } from '../../../src/foundation/config/file.ts';
import { CONFIG_KEYS, LIVE_KEYS, PATCHABLE_KEYS } from '../../../src/foundation/config/schema.ts';

const page = readFileSync('docs/configuration.md', 'utf8');

test('the page lists every key in order, as the code defines it', () => {
  const rows = [...page.matchAll(/^\|`([a-z_]+)`\|.*\|(immediately|restart)\|(yes|no)\|(.+)\|$/gm)];
  assert.deepEqual(
    rows.map((row) => row.slice(1, 4)),
    CONFIG_KEYS.map((key) => [
      key,
      LIVE_KEYS.has(key) ? 'immediately' : 'restart',
      PATCHABLE_KEYS.has(key) ? 'yes' : 'no',
    ]),
  );
});

test('the tables are what the schema says', () => {
  const { status, stderr } = spawnSync(process.execPath, ['tools/configuration-doc.ts', '--check'], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
});

test('the examples are valid', () => {
  const examples = [...page.matchAll(/^```toml\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
  assert.equal(examples.length, 2);
  for (const example of examples) assert.doesNotThrow(() => parseConfig(example, 'example'));
});
