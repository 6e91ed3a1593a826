import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { startLines } from '../../src/daemon/start-lines.ts';
import { needs } from '../support/needs.ts';
import { run } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('a node with agents shows its state next', () => {
  const started = { api: '127.0.0.1:2121', dataDir: '/home/me/.config/svcd', svc: 'svc', isNew: false };
  assert.equal(
    startLines(started),
    [
      'Panel:  http://127.0.0.1:2121/',
      'Data:   /home/me/.config/svcd',
      'Next:   svc status   (in another terminal)',
      '',
    ].join('\n'),
  );
});

test('on a terminal, svcd shows three lines in place of its log, and an interrupt stops it', {
  skip: needs('script'),
}, async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  // The first start in a checkout builds svcd, and prints that.
  await run(process.execPath, ['bin/svcd', '--version']);
  // In place of the shell: a shell that is interrupted may report that in place of svcd's exit code.
  const svcd = `exec '${process.execPath}' bin/svcd --data-dir '${dataDir}' --listen 127.0.0.1:0 --api-addr 127.0.0.1:0`;
  const child = spawn('script', ['-qefc', `${svcd} --no-open-browser`, '/dev/null'], {
    env: { ...process.env, SVCD_MDNS: 'false', SVCD_LOG_LEVEL: '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const isReady = /Next: [^\n]*\n/.test(output);
    output += text;
    // Ctrl-C, once: a second one stops it immediately.
    if (!isReady && /Next: [^\n]*\n/.test(output)) child.stdin.write('\u0003');
  });
  const [code] = await once(child, 'close');
  const [panel = '', data, next, ...more] = output.replaceAll('^C', '').trim().split('\r\n');
  const [, api] = /^Panel: {2}http:\/\/(127\.0\.0\.1:\d+)\/$/.exec(panel) ?? [];
  assert.ok(api !== undefined, output);
  assert.deepEqual(
    [data, next, more],
    [`Data:   ${dataDir}`, `Next:   ./bin/svc --api http://${api} serve 8080 --name demo   (in another terminal)`, []],
  );
  assert.equal(code, 0);
});
