import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROGRAM_VARIABLES } from '../../../src/foundation/environment.ts';
import { runSvc } from '../../support/cli-run.ts';

test('explains wrong usage and points to the help', async () => {
  const unknown = await runSvc(['serach', 'x']);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /^svc: unknown command 'serach'\n\(Did you mean svc search\?\)\n\(see svc --help\)\n$/);
  const missing = await runSvc(['tunnel', 'open']);
  assert.equal(missing.stderr, "svc: missing required argument 'aid'\n(see svc tunnel open --help)\n");
  const group = await runSvc(['tunnel']);
  assert.equal(group.code, 2);
  assert.match(group.stderr, /^Usage: svc tunnel/);
  assert.equal(group.stdout, '');
});

test('suggests the command that was meant, and never shows help for one that does not exist', async () => {
  const meant: Readonly<Record<string, string>> = {
    list: 'svc agents',
    share: 'svc mcp share',
    fetch: 'svc get',
    service: 'svcd service',
    'tunnel create': 'svc tunnel open',
    'chat write': 'svc chat send',
    'agents acl blok': 'svc agents acl deny',
    'nosuch --help': '',
    'help nosuch': '',
    'tunnel nosuch --help': '',
  };
  for (const [line, command] of Object.entries(meant)) {
    const { code, stdout, stderr } = await runSvc(line.split(' '));
    assert.deepEqual([code, stdout], [2, ''], line);
    assert.match(stderr, /^svc: unknown command '/);
    if (line === 'agents acl blok') continue;
    assert.equal(/Did you mean (.*)\?/.exec(stderr)?.[1] ?? '', command, line);
  }
  assert.equal((await runSvc(['help', 'tunnel', 'open'])).code, 0);
  const unreadable = 'a'.repeat(300);
  assert.doesNotMatch((await runSvc(['send', unreadable, 'bob'])).stderr, /, stat /);
  assert.match((await runSvc(['status', '--data-dir', 'x'])).stderr, /unknown option '--data-dir'/);
});

test('knows the variables that svcd sets for programs, and hints at mistyped ones', async () => {
  const { code, stderr } = await runSvc(['status', '--json'], {
    env: Object.fromEntries(PROGRAM_VARIABLES.map((name) => [name, 'x'])),
  });
  assert.notEqual(code, 0);
  assert.doesNotMatch(stderr, /is unknown/);
  const mistyped = await runSvc(['status'], { env: { SVC_TOKN: 'x' } });
  assert.match(mistyped.stderr, /SVC_TOKN is unknown\. Did you mean SVC_TOKEN\?/);
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
