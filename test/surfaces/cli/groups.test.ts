import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { groupOperations } from '../../../src/operations/groups.ts';
import { groupHandlers } from '../../../src/operations/handlers/groups.ts';
import { toolHandlers } from '../../../src/operations/handlers/tools.ts';
import { bind } from '../../../src/operations/operation.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { toolOperations } from '../../../src/operations/tools.ts';
import { runCli } from '../../../src/surfaces/cli/program.ts';
import { type GroupNode, GroupWorld } from '../../support/group-world.ts';
import { ACT_ONCE, READ_ONCE } from '../../support/read-once.ts';
import { startWorld } from '../rest/support.ts';

const OPTIONS = { version: '0', dataDir: '/nonexistent' };

async function shell(t: TestContext, node: GroupNode) {
  const operations = bind(groupOperations, groupHandlers({ groups: node.groups, waits: READ_ONCE, repeats: ACT_ONCE }));
  const tools = new ToolTable({ operations, pending: () => ({}) });
  const api = await startWorld(t, { operations: [...operations, ...bind(toolOperations, toolHandlers({ tools }))] });
  return async (...args: string[]): Promise<{ code: number; text: string }> => {
    const stdout = new PassThrough();
    const io = { stdin: new PassThrough(), stdout, stderr: new PassThrough(), env: {} };
    const code = await runCli(['--api', api.url, ...args, '--aid', node.aid], io, OPTIONS);
    return { code, text: String(stdout.read() ?? '').trimEnd() };
  };
}

test('a group from the command line: create, write, read, withdraw', async (t) => {
  const world = new GroupWorld();
  const ann = await world.node();
  const svc = await shell(t, ann);
  const { text: group } = await svc('--quiet', 'group', 'create', 'Plans');
  assert.match(group, /^[0-9a-f]{64}$/);
  assert.equal((await svc('group', 'link', group)).text, ann.groups.head(ann.aid, group).link);
  const { text: entry } = await svc('--quiet', 'group', 'send', group, 'hello \u001b[2J', '--kind', 'note');
  const shown = await svc('group', 'read', group, '--kind', 'note');
  assert.ok(shown.text.includes(` ${entry.slice(0, 8)}…`) && shown.text.includes('hello \\u{1b}[2J'));
  assert.ok((await svc('--full', 'group', 'read', group, '--kind', 'note')).text.includes(` ${entry}`));
  assert.equal((await svc('group', 'retract', group, entry, '-y')).code, 0);
  assert.ok((await svc('group', 'read', group, '--kind', 'note')).text.includes('(retracted)'));
  assert.match((await svc('group', 'list')).text, /Plans +creator +1/);
  assert.match((await svc('group', 'members', group)).text, new RegExp(`${ann.aid.slice(0, 12)}… +creator`));
  assert.match((await svc('group', 'head', group)).text, /entries: +3/);
  assert.equal((await svc('group', 'mark-read', group, '3')).code, 0);
  assert.equal((await svc('group', 'leave', group, '-y')).code, 1);
  assert.equal((await svc('group', 'head', '0'.repeat(64))).code, 5);
  await world.stop();
});
