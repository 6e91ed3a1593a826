import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSvc } from '../../support/cli-run.ts';

test('explains wrong usage and points to the help', async () => {
  const unknown = await runSvc(['serach', 'x']);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /^svc: unknown command 'serach'\n\(Did you mean search\?\)\n\(see svc --help\)\n$/);
  const missing = await runSvc(['tunnel', 'open']);
  assert.equal(missing.stderr, "svc: missing required argument 'aid'\n(see svc tunnel open --help)\n");
  const group = await runSvc(['tunnel']);
  assert.equal(group.code, 2);
  assert.match(group.stderr, /^Usage: svc tunnel/);
  assert.equal(group.stdout, '');
});

test('reports wrong usage as JSON with --json', async () => {
  for (const args of [['serach'], ['tunnel'], ['tunnel', 'open'], ['events', '--since', 'x']]) {
    const { code, stdout, stderr } = await runSvc(['--json', ...args]);
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    const { error, message } = JSON.parse(stderr) as Record<string, string>;
    assert.equal(error, 'invalid_request');
    assert.match(message ?? '', /unknown command|Missing command|missing required|Not an integer/);
  }
  const help = await runSvc(['--json', 'tunnel', '--help']);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /^Usage: svc tunnel/);
});
