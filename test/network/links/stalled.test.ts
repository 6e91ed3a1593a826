/**
 * A process that was stopped for a while, as on a sleeping laptop, does not mark nodes as unreachable and keeps its
 * links.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { REDIAL_MS, SILENCE_MS } from '../../../src/network/links/link-initiator.ts';
import { forkNode } from '../../support/link-process.ts';
import { AWAKE_MS, type Said } from './stalled-child.ts';

test('a node that was stopped for longer than the silence timeout keeps its links and its connections', async (t) => {
  const called = await forkNode(KeyPair.generate());
  t.after(() => called.child.kill('SIGKILL'));
  const caller = fork(new URL('stalled-child.ts', import.meta.url), { serialization: 'advanced' });
  t.after(() => caller.kill('SIGKILL'));
  // The result may arrive together with a sign of life.
  const outcome = new Promise<Said>((resolve) => {
    caller.on('message', (output: Said) => {
      if (output !== 'awake') resolve(output);
    });
  });
  const awake = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) assert.deepEqual(await once(caller, 'message'), ['awake', undefined]);
  };
  await awake(1);
  caller.send(called.location);
  await awake(1);
  // The called node no longer answers: the caller times out and dials again.
  called.child.kill('SIGSTOP');
  caller.send('open');
  await awake((1.5 * SILENCE_MS) / AWAKE_MS);
  caller.kill('SIGSTOP');
  // The test needs this time to pass.
  await sleep(REDIAL_MS + 500);
  caller.kill('SIGCONT');
  // By the next signs of life its overdue timers have fired.
  await awake(2);
  called.child.kill('SIGCONT');
  assert.deepEqual(await outcome, ['existing', 'opened']);
});
