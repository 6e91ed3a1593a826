import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('the demo cleans up if its reader closes the pipe', async (t) => {
  const TMPDIR = temporaryDirectory(t);
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../tools/demo.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR },
  });
  await once(child.stdout, 'data');
  child.stdout.destroy();
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.deepEqual(readdirSync(TMPDIR), []);
});
