import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../src/foundation/errors.ts';
import { type UpdateView, updateAndFollow } from '../../src/operations/update-client.ts';

const BEFORE: UpdateView = {
  current_version: '1.0.0',
  latest_version: '1.1.0',
  update_available: true,
  state: 'idle',
  last_check_at: null,
  managed: true,
};
const AFTER: UpdateView = { ...BEFORE, current_version: '1.1.0', update_available: false, state: 'ok' };

/** A daemon with the given responses, in order. */
function daemon(...answers: (UpdateView | SvcError)[]) {
  let applied = 0;
  const client = {
    updateStatus: async (): Promise<UpdateView> => {
      const answer = answers.shift();
      if (answer === undefined) throw new Error('too many requests');
      if (answer instanceof SvcError) throw answer;
      return answer;
    },
    updateApply: async () => {
      applied++;
      return { message: '' };
    },
  };
  return { client, applied: () => applied, left: answers };
}

test('it follows the daemon over its restart to the end', async () => {
  const away = new SvcError('daemon_unreachable');
  const applying: UpdateView = { ...BEFORE, state: 'applying' };
  const { client, applied, left } = daemon(
    BEFORE,
    { ...BEFORE, state: 'checking' },
    applying,
    away,
    away,
    applying,
    AFTER,
  );
  assert.deepEqual(await updateAndFollow(client, 1), AFTER);
  assert.equal(applied(), 1);
  assert.deepEqual(left, []);
});

test('an error that does not come from a restart stops it', async () => {
  const { client } = daemon(BEFORE, new SvcError('unauthorized'));
  await assert.rejects(updateAndFollow(client, 1), { code: 'unauthorized' });
});

test('nothing is applied without a release, or without the service', async () => {
  for (const view of [AFTER, { ...BEFORE, managed: false }, { ...BEFORE, warning: 'A checkout.' }]) {
    const { client, applied } = daemon(view);
    assert.deepEqual(await updateAndFollow(client, 1), view);
    assert.equal(applied(), 0);
  }
});
