import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid } = newIdentity();
const ID = 'ab'.repeat(32);

const COMMANDS: readonly (readonly [line: string, request: string])[] = [
  [`agents del ${aid}`, `DELETE /agents/${aid}`],
  [`object del ${ID} --aid ${aid}`, `DELETE /agents/${aid}/cas/${ID}`],
  [`group leave ${ID} --aid ${aid}`, `POST /agents/${aid}/groups/${ID}/leave`],
  [`group retract ${ID} ${ID} --aid ${aid}`, 'POST /mcp/call'],
  [`chat remove ${aid} --aid ${aid}`, 'POST /mcp/call'],
  [`chat block ${aid} --aid ${aid}`, 'POST /mcp/call'],
];

test('what cannot be undone is done only once somebody has agreed', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [200, { ok: true, seq: 1, entry_id: ID, at: '' }]);
  const env = { SVC_API: daemon.api };
  for (const [line, request] of COMMANDS) {
    const args = line.split(' ');
    for (const way of [[], ['--json'], ['--quiet']]) {
      const { code, stderr } = await runSvc([...args, ...way], { env });
      assert.equal(code, 2, line);
      assert.match(stderr, /Nothing was done.*Say -y/, line);
    }
    const refused = await runSvc(args, { env, terminal: true, input: 'n\n' });
    assert.equal(refused.code, 1, line);
    assert.match(refused.stderr, /\? \[y\/N\] [^]*Nothing was done\./, line);
    assert.deepEqual(daemon.asked.splice(0), [], line);
    const agreed = await runSvc(args, { env, terminal: true, input: 'y\n' });
    assert.equal(agreed.code, 0, `${line}: ${agreed.stderr}`);
    assert.equal((await runSvc([...args, '-y'], { env })).code, 0, line);
    assert.deepEqual(daemon.asked.splice(0), [request, request], line);
  }
});

test('whoever deletes an agent is told what brings it back', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [200, { ok: true }]);
  const { stderr } = await runSvc(['agents', 'del', aid], {
    env: { SVC_API: daemon.api },
    terminal: true,
    input: 'n\n',
  });
  assert.match(stderr, /master key \(svc register --master-key <file>\).*svc agents export/);
});
