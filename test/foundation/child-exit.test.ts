import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, test } from 'node:test';
import { onExit } from '../../src/foundation/child-exit.ts';

const BYTES = 3_000_000;

/** The output of a shell text, and its exit code. The text starts `sleep` first and writes its process ID. */
async function outcome(text: string) {
  const child = spawn('/bin/sh', ['-c', `sleep 1000 & echo $!; ${text}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  const code = await new Promise((resolve) => onExit(child, resolve));
  const [, pid = '', rest = ''] = /^(\d+)\n(.*)$/s.exec(stdout) ?? [];
  process.kill(Number(pid), 'SIGKILL');
  return { code, stdout: rest, stderr };
}

describe('the exit of a program whose output is held by a process that it left behind', {
  skip: process.platform === 'win32',
}, () => {
  test('comes with its code and all it wrote', async () => {
    const { code, stdout, stderr } = await outcome(`head -c ${BYTES} /dev/zero; echo end; echo oops >&2; exit 3`);
    assert.deepEqual([code, stdout.length, stderr], [3, BYTES + 'end\n'.length, 'oops\n']);
  });

  test('has no code after a signal', async () => {
    assert.equal((await outcome('kill -TERM $$; sleep 1000')).code, null);
  });

  test('comes although the other process writes without end', async () => {
    const child = spawn('/bin/sh', ['-c', 'yes & exit 7'], { stdio: ['ignore', 'pipe', 'ignore'] });
    child.stdout.resume();
    assert.equal(await new Promise((resolve) => onExit(child, resolve)), 7);
  });
});
