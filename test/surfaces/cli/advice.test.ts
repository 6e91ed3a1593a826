import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS, SvcError } from '../../../src/foundation/errors.ts';
import { inPlainWords, whatNext } from '../../../src/surfaces/cli/advice.ts';
import { closest } from '../../../src/surfaces/cli/closest.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

function misfit(path: string, problem: string): SvcError {
  return new SvcError('invalid_request', {
    message: `Invalid body: ${path} ${problem}.`,
    details: { path, problem },
  });
}

test('what a schema says is said in the words of what was typed', () => {
  assert.equal(inPlainWords(misfit('/local_port', 'must be <= 65535')), '--local-port is 65535 at most.');
  assert.equal(inPlainWords(misfit('/idle_timeout_sec', 'must be >= -1')), '--idle-timeout is -1 at least.');
  assert.match(inPlainWords(misfit('/kind', 'must match pattern "^[a-z]$"')), /^--kind is not written as it has to be/);
  assert.match(inPlainWords(misfit('/at', 'must match format "date-time"')), /^--at is a time such as 2030/);
  assert.equal(inPlainWords(misfit('/x', 'is missing')), 'Invalid body: /x is missing.');
  assert.equal(inPlainWords(new SvcError('config_invalid', { message: 'request: a is b.' })), 'a is b.');
});

test('the next step is named where the message names none', () => {
  assert.match(whatNext(new SvcError('not_friends')) ?? '', /svc chat request/);
  assert.equal(whatNext(new SvcError('no_inbound')), undefined, `it does: ${ERRORS.no_inbound.message}`);
  assert.equal(whatNext(new SvcError('self', { message: 'Say --aid.' })), undefined);
  assert.equal(
    whatNext(new SvcError('port_in_use', { message: 'Leave local_port out.' })),
    undefined,
    'as it is shown',
  );
});

test('the word that was meant is the nearest one, and none where none is near', () => {
  assert.equal(closest('loglevel', ['log_format', 'log_level']), 'log_level');
  assert.equal(closest('Log-Levl', ['log_format', 'log_level']), 'log_level');
  assert.equal(closest('mtu', ['mdns', 'network']), undefined);
  assert.equal(closest('x', []), undefined);
});

test('commands in groups have the names that people know from elsewhere', async (t) => {
  const { aid } = newIdentity();
  const daemon = await AnsweringDaemon.start(t, () => [
    200,
    { tunnels: [], closed: [], agents: [], allow: [], deny: [] },
  ]);
  for (const [line, request] of [
    ['agents ls', 'GET /agents'],
    [`agents rm ${aid} -y`, `DELETE /agents/${aid}`],
    ['tunnel ls', 'GET /tunnel'],
    ['tunnel list', 'GET /tunnel'],
    ['tunnel rm 0123456789abcdef', 'DELETE /tunnel/0123456789abcdef'],
  ] as const) {
    const { code, stderr } = await runSvc(line.split(' '), { env: { SVC_API: daemon.api } });
    assert.deepEqual([code, stderr, daemon.asked.splice(0)], [0, '', [request]], line);
  }
  const shown = await runSvc(['agents', 'show', aid, '--json'], { env: { SVC_API: daemon.api } });
  assert.deepEqual([shown.code, daemon.asked], [0, [`GET /agents/${aid}`]]);
});
