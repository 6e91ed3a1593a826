import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detach, onDetachedError } from '../../src/foundation/detached.ts';

test('a detached failure reaches the current handler', async () => {
  const heard: unknown[] = [];
  const leave = onDetachedError((error) => heard.push(error));
  const late = Promise.withResolvers<void>();
  detach(Promise.resolve(1));
  detach(undefined);
  detach(Promise.reject(new Error('at once')));
  detach(late.promise);
  await Promise.resolve();
  const leaveSecond = onDetachedError((error) => heard.push(['second', error]));
  leave();
  late.reject('late');
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(heard, [new Error('at once'), ['second', 'late']]);
  leaveSecond();
});
