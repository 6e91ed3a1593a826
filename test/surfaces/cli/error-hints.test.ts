import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closestWord } from '../../../src/foundation/closest-word.ts';
import { ERRORS, SvcError } from '../../../src/foundation/errors.ts';
import { explainError, nextStepHint } from '../../../src/surfaces/cli/error-hints.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

function misfit(path: string, problem: string): SvcError {
  return new SvcError('invalid_request', {
    message: `Invalid body: ${path} ${problem}.`,
    details: { path, problem },
  });
}

test('translates schema errors to options', () => {
  assert.equal(explainError(misfit('/local_port', 'must be <= 65535')), '--local-port must be at most 65535.');
  assert.equal(explainError(misfit('/idle_timeout_sec', 'must be >= -1')), '--idle-timeout must be at least -1.');
  for (const [path, word] of [
    ['/wait_s', '--wait'],
    ['/before_seq', '--before'],
    ['/hint_aid', '--from'],
    ['/local_aid', '--as'],
    ['/scanned_to', 'the entry'],
  ] as const)
    assert.equal(explainError(misfit(path, 'must be <= 60')), `${word} must be at most 60.`);
  const names = new SvcError('bad_aid', { message: 'Pass local_aid or access_token.' });
  assert.equal(explainError(names), 'Pass --as or --access-token.');
  assert.match(explainError(misfit('/kind', 'must match pattern "^[a-z]$"')), /^--kind has the wrong format/);
  assert.match(explainError(misfit('/at', 'must match format "date-time"')), /^--at must be a time such as 2030/);
  assert.equal(explainError(misfit('/x', 'is missing')), 'Invalid body: /x is missing.');
  assert.equal(explainError(new SvcError('config_invalid', { message: 'request: a is b.' })), 'a is b.');
});

test('adds the next step to messages without one', () => {
  assert.match(nextStepHint(new SvcError('not_friends')) ?? '', /svc chat request/);
  const denied = new SvcError('access_denied');
  assert.equal(nextStepHint(denied, ['get', 'bob', '/']), undefined);
  assert.match(nextStepHint(denied, ['get', 'bob', '/', '--note', 'Ada']) ?? '', /note was not delivered: /);
  assert.match(nextStepHint(denied, ['get', '--note=Ada', '--wait', '9']) ?? '', /not delivered, unless/);
  assert.match(nextStepHint(new SvcError('local_aid_required')) ?? '', /svc use/);
  assert.equal(nextStepHint(new SvcError('no_inbound')), undefined, `it does: ${ERRORS.no_inbound.message}`);
  assert.equal(nextStepHint(new SvcError('self', { message: 'Say --aid.' })), undefined);
  assert.equal(
    nextStepHint(new SvcError('port_in_use', { message: 'Leave local_port out.' })),
    undefined,
    'as it is shown',
  );
});

test('suggests the nearest word, if one is near', () => {
  assert.equal(closestWord('loglevel', ['log_format', 'log_level']), 'log_level');
  assert.equal(closestWord('Log-Levl', ['log_format', 'log_level']), 'log_level');
  assert.equal(closestWord('mtu', ['mdns', 'network']), undefined);
  assert.equal(closestWord('x', []), undefined);
});

test('commands in groups have familiar aliases', async (t) => {
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
