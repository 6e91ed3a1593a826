/** Complete nodes in virtual time: equal seeds give equal events, and users get done what they want. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertHolds, SMALL_WORLD } from '../support/simulation.ts';

test('one seed gives one sequence of events, and users get done what they want', async () => {
  const [first, second, other] = await Promise.all([
    assertHolds([...SMALL_WORLD, '--seed', '1']),
    assertHolds([...SMALL_WORLD, '--seed', '1']),
    assertHolds([...SMALL_WORLD, '--seed', '2']),
  ]);
  assert.equal(first.eventHash, second.eventHash);
  assert.notEqual(first.eventHash, other.eventHash);
  for (const [name, count] of [
    ['notes', 'collected'],
    ['calls', 'answered'],
    ['chats', 'friends'],
    ['groups', 'appended'],
  ] as const)
    assert.ok(
      [first, other].some(({ users }) => (users[name]?.[count] ?? 0) > 0),
      `${name}: ${count}`,
    );
});

test('further seeds', async () => {
  for (const seed of [11, 12]) await assertHolds([...SMALL_WORLD, '--seed', `${seed}`]);
});

test('every trial', async () => {
  const options = ['--users', 'trials', '--nodes', '3', '--agents', '1', '--faults', 'none', '--actions', '1000'];
  await assertHolds([...options, '--days', '0.01', '--healing', '1', '--seed', '1']);
});
