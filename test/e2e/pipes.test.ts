/** Commands that follow something end when the reader of their output is gone. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';

const isLinux = process.platform === 'linux';

test('svc logs -f | head -1 ends, although nothing more is logged', { skip: !isLinux && 'needs /proc' }, async () => {
  await using daemon = await TestDaemon.start();
  // The shell waits for both programs.
  const shell = spawn('sh', ['-c', `"${process.execPath}" bin/svc logs -f | head -1`], {
    env: { ...process.env, SVC_API: daemon.api },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(shell, 'close');
  const shown = await text(shell.stdout);
  assert.equal(((await closed) as [number | null])[0], 0);
  assert.match(shown, /^[^\n]+\n$/);
});
