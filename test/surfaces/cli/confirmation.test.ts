import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid } = newIdentity();
const ID = 'ab'.repeat(32);
const ENTRY = ID.slice(0, 16);

/** A response that fits all of these commands. */
const ANSWER = { ok: true, seq: 1, replicas: 1, entry_id: ID, at: '', messages: [], has_more: false };

const COMMANDS: readonly (readonly [line: string, request: string])[] = [
  [`agents del ${aid}`, `DELETE /agents/${aid}`],
  [`object del ${ID} --aid ${aid}`, `DELETE /agents/${aid}/cas/${ID}`],
  [`group leave ${ID} --aid ${aid}`, `POST /agents/${aid}/groups/${ID}/leave`],
  [`group retract ${ID} ${ID} --aid ${aid}`, 'POST /mcp/call'],
  [`chat remove ${aid} --aid ${aid}`, 'POST /mcp/call'],
  [`chat block ${aid} --aid ${aid}`, 'POST /mcp/call'],
  [`note del ${aid} ${ID}`, `DELETE /agents/${aid}/mailbox/${ID}`],
  [`agents acl del ${aid} allow ${ENTRY}`, `DELETE /agents/${aid}/acl/allow/${ENTRY}`],
  [`agents acl del ${aid} deny ${ENTRY}`, `DELETE /agents/${aid}/acl/deny/${ENTRY}`],
  [`agents profile clear ${aid}`, `DELETE /agents/${aid}/profile`],
  [`admin del allow ${ENTRY}`, `DELETE /node/remote-admin/allow/${ENTRY}`],
];

/** The requests since the last look that change something. */
function changes({ asked }: AnsweringDaemon): string[] {
  return asked.splice(0).filter((line) => !line.startsWith('GET '));
}

test('destructive commands need a confirmation', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [200, ANSWER]);
  const env = { SVC_API: daemon.api };
  for (const [line, request] of COMMANDS) {
    const args = line.split(' ');
    for (const way of [[], ['--json'], ['--quiet']]) {
      const { code, stderr } = await runSvc([...args, ...way], { env });
      assert.equal(code, 2, line);
      assert.match(stderr, /Nothing was done.*Use -y/, line);
    }
    const refused = await runSvc(args, { env, terminal: true, input: 'n\n' });
    assert.equal(refused.code, 1, line);
    assert.match(refused.stderr, /\? \[y\/N\] [^]*Nothing was done\./, line);
    assert.deepEqual(changes(daemon), [], line);
    const agreed = await runSvc(args, { env, terminal: true, input: 'y\n' });
    assert.equal(agreed.code, 0, `${line}: ${agreed.stderr}`);
    assert.equal((await runSvc([...args, '-y'], { env })).code, 0, line);
    assert.deepEqual(changes(daemon), [request, request], line);
  }
});

test('fetching notes asks at a terminal only, so that scripts need no option', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [200, ANSWER]);
  const env = { SVC_API: daemon.api };
  for (const way of [[], ['--json'], ['-y']])
    assert.equal((await runSvc(['note', 'poll', aid, ...way], { env })).code, 0);
  assert.equal(changes(daemon).length, 3);
  const refused = await runSvc(['note', 'poll', aid], { env, terminal: true, input: 'n\n' });
  assert.equal(refused.code, 1);
  assert.deepEqual(changes(daemon), []);
});

test('deleting an agent explains how to restore it', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [200, { ok: true }]);
  const { stderr } = await runSvc(['agents', 'del', aid], {
    env: { SVC_API: daemon.api },
    terminal: true,
    input: 'n\n',
  });
  assert.match(stderr, /master key \(svc register --master-key <file>\).*svc agents export/);
});

test('an agent of another node is reported before the question', async (t) => {
  const message = 'This agent is not registered here.';
  const daemon = await AnsweringDaemon.start(t, () => [404, { error: 'not_found', message }]);
  const asked = { env: { SVC_API: daemon.api }, terminal: true, input: 'y\n' };
  const { code, stderr } = await runSvc(['agents', 'rm', aid], asked);
  assert.equal(code, 5);
  assert.match(stderr, /^svc: This agent is not registered here\. "svc agents" lists your agents\.\n$/);
  assert.deepEqual(changes(daemon), []);
});

test('removing an entry explains how to add it again', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [200, { ok: true }]);
  const asked = { env: { SVC_API: daemon.api }, terminal: true, input: 'n\n' };
  const agent = await runSvc(['agents', 'acl', 'del', aid, 'allow', ENTRY], asked);
  assert.match(agent.stderr, /a secret cannot be shown again.*"svc agents acl allow aid1\w+ <agent>"/);
  const node = await runSvc(['admin', 'del', 'deny', ENTRY], asked);
  assert.match(node.stderr, /The agent that it denies may call again\..*"svc admin deny <aid>"/);
});
