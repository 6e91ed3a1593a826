import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { completions } from '../../../src/surfaces/cli/completion/complete.ts';
import { completionScript, FILES, NOTHING, SHELLS } from '../../../src/surfaces/cli/completion/scripts.ts';
import { svcdProgram } from '../../../tools/command-tree.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

const [{ aid: bob }, { aid: own }] = [newIdentity(), newIdentity()];
const GROUP = `12345678${'0'.repeat(56)}`;

const ANSWERS: Readonly<Record<string, unknown>> = {
  'GET /node/address-book': { aliases: { [bob]: 'Bob' }, favorites: [] },
  'GET /agents': { agents: [{ aid: own, name: 'Own', services: ['lang.translate'] }] },
  'GET /agents?limit=2': { agents: [{ aid: own }] },
  [`GET /agents/${own}/group-invitations`]: { invitations: [] },
  'GET /tunnel': { tunnels: [{ id: '0123456789abcdef', listen: '127.0.0.1:1', remote_aid: bob }] },
  'POST /mcp/call': { groups: [{ group_id: GROUP, title: 'Plans\u001b[2J' }] },
};

/** The candidates for the last of `words`. */
async function offered(api: string, ...words: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await runSvc(['complete', '--', ...words], { env: { SVC_API: api } });
  assert.deepEqual([code, stderr], [0, '']);
  return stdout
    .split('\n')
    .flatMap((line) => (line === '' || line.startsWith(NOTHING) ? [] : [line.split('\t')[0] ?? '']));
}

test('completes commands, options, choices and values from the daemon', async (t) => {
  const { api } = await AnsweringDaemon.start(t, (line) => [200, ANSWERS[line] ?? {}]);
  const at = (...words: readonly string[]) => offered(api, ...words);
  assert.deepEqual(await at('tunn'), ['tunnel']);
  assert.deepEqual(await at('tunnel', ''), ['open', 'rm', 'reset', 'status']);
  assert.deepEqual(await at('tunnel', 'open', '--idle'), ['--idle-timeout']);
  assert.deepEqual(await at('status', '--js'), ['--json']);
  assert.deepEqual(await at('agents', 'get', 'b'), ['Bob']);
  assert.deepEqual(await at('get', '--as', ''), [own]);
  assert.deepEqual(await at('get', '--local-aid', ''), [own]);
  assert.deepEqual(await at('get', '--a'), ['--as', '--access-token', '--api']);
  assert.deepEqual(await at('note', 'send', ''), ['Bob', own]);
  assert.deepEqual(await at('--via', 'B'), ['Bob']);
  assert.deepEqual(await at('tunnel', 'close', ''), ['01234567']);
  assert.deepEqual(await at('group', 'read', ''), ['12345678']);
  assert.deepEqual(await at('unpublish', ''), ['lang.translate']);
  assert.deepEqual(await at('alias', 'rm', ''), ['Bob']);
  assert.deepEqual(await at('config', 'set', 'api_'), ['api_addr', 'api_token']);
  assert.deepEqual(await at('agents', 'acl', 'default', own, ''), ['public', 'deny', 'ask']);
  assert.deepEqual(await at('completion', 'z'), ['zsh']);
  assert.deepEqual(await at('backup', 'no'), [FILES]);
  assert.deepEqual(await at('register', '--save-master', ''), [FILES]);
  assert.deepEqual(await at('status', ''), []);
  assert.deepEqual(await at('config', 'set', 'log_level', 'd'), ['debug']);
  assert.deepEqual(await at('config', 'set', 'lan_tcp', ''), ['true', 'false']);
  assert.deepEqual(await at('config', 'set', 'listen_addr', ''), [':4121']);
  for (const [words, reason] of [
    ['status ', 'the command is complete'],
    ['tunnel clo', 'nothing begins with "clo"'],
    ['agents get x', 'nothing begins with "x"'],
    ['alias add ', 'no suggestions for <label>'],
    ['tunnel open --idle-timeout ', 'no suggestions for --idle-timeout <seconds>: close after this time .*'],
  ] as const) {
    const { stdout } = await runSvc(['complete', '--', ...words.split(' ')], { env: { SVC_API: api } });
    assert.match(stdout, new RegExp(`^${NOTHING}\t${reason}\n$`), words);
  }
  const { stdout } = await runSvc(['complete', '--', 'group', 'read', ''], { env: { SVC_API: api } });
  assert.equal(stdout, '12345678\tPlans\\u{1b}[2J\n');
});

test('completes commands without a daemon', async () => {
  assert.deepEqual(await offered('127.0.0.1:1', 'tunnel', 'r'), ['rm', 'reset']);
  assert.deepEqual(await offered('127.0.0.1:1', 'tunnel', 'close', ''), []);
});

test('completes the commands of svcd', async () => {
  const words = (await completions(svcdProgram(), ['service', 's'], async () => [])).map((line) => line.split('\t')[0]);
  assert.deepEqual(words, ['start', 'stop', 'status']);
});

/** Parses standard input, and runs nothing. */
const PARSE_POWERSHELL = [
  'pwsh',
  ...['-NoProfile', '-NonInteractive', '-Command'],
  '$null = [ScriptBlock]::Create([Console]::In.ReadToEnd())',
] as const;

test('the scripts need only their shell', () => {
  for (const shell of SHELLS)
    for (const program of ['svc', 'svcd']) {
      const script = completionScript(shell, program);
      assert.doesNotMatch(script, /NAME|_get_comp_words_by_ref|__ltrim|\\\$/);
      // Shells that are not installed are skipped.
      const [name, ...args] = shell === 'powershell' ? PARSE_POWERSHELL : [shell, '-n'];
      const checked = spawnSync(name, args, { input: script, encoding: 'utf8' });
      if (checked.error === undefined)
        assert.deepEqual([checked.status, checked.stderr], [0, ''], `${shell} ${program}`);
    }
});

/** The brackets of a PowerShell script, without those in texts and comments. */
function bracketsOf(script: string): string {
  return script.replaceAll(/'(?:[^']|'')*'|"(?:[^"`]|`.)*"|#.*$/gm, '').replaceAll(/[^(){}[\]]/g, '');
}

test('the script for PowerShell is complete, and registers its program', () => {
  for (const program of ['svc', 'svcd']) {
    const script = completionScript('powershell', program);
    let brackets = bracketsOf(script);
    assert.ok(brackets.length > 20);
    for (let before = ''; before !== brackets; ) {
      before = brackets;
      brackets = brackets.replaceAll(/\(\)|\{\}|\[\]/g, '');
    }
    assert.equal(brackets, '', program);
    assert.match(
      script,
      new RegExp(`^Register-ArgumentCompleter -Native -CommandName ${program} -ScriptBlock \\{$`, 'm'),
    );
    assert.match(script, new RegExp(`^  ${program} complete -- @words `, 'm'));
  }
});
