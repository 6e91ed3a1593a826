import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentLog } from '../../../src/foundation/recent-log.ts';
import { processHandlers } from '../../../src/operations/handlers/process.ts';
import type { CallContext } from '../../../src/operations/operation.ts';

function setUp(managed: boolean) {
  const done: string[] = [];
  const handlers = processHandlers({
    log: new RecentLog(),
    pid: 7,
    stop: (reason) => done.push(`stop ${reason}`),
    restart: managed ? () => done.push('restart') : null,
  });
  const answered: (() => void)[] = [];
  const context: CallContext = {
    origin: 'local',
    signal: new AbortController().signal,
    requireToken: () => {},
    setStatus: () => {},
    onAnswered: (settled) => void answered.push(() => settled(true)),
  };
  return { done, handlers, answered, context };
}

test('a daemon that was started by hand stops after its response, and pages cannot stop it', async () => {
  const { done, handlers, answered, context } = setUp(false);
  await assert.rejects(async () => handlers.nodeStop({}, { ...context, fromPage: true }), { code: 'forbidden_origin' });
  await assert.rejects(async () => handlers.nodeRestart({}, context), { code: 'wrong_state' });
  assert.deepEqual(await handlers.nodeStop({}, context), { pid: 7 });
  assert.deepEqual(done, []);
  for (const settle of answered) settle();
  assert.deepEqual(done, ['stop asked']);
});

test('the system service restarts, also from the panel, and does not stop', async () => {
  const { done, handlers, answered, context } = setUp(true);
  await assert.rejects(async () => handlers.nodeStop({}, context), {
    code: 'wrong_state',
    message: /svcd service stop/,
  });
  assert.deepEqual(await handlers.nodeRestart({}, { ...context, fromPage: true }), { pid: 7 });
  for (const settle of answered) settle();
  assert.deepEqual(done, ['restart']);
  assert.deepEqual(await handlers.nodeLog({}, context), { lines: [], last_seq: 0 });
});
