import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TalkSlots } from '../../../src/capabilities/rooms/talk-slots.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { newIdentity } from '../../support/identities.ts';

function visitor(caller: Aid) {
  const made = {
    caller,
    isGone: false,
    destroy: (): void => {
      made.isGone = true;
    },
  };
  return made;
}

test('a crowd of silent strangers keeps no member out', () => {
  const slots = new TalkSlots();
  const [stranger, member] = [newIdentity().aid, newIdentity().aid];
  const crowd = Array.from({ length: 1000 }, () => visitor(stranger));
  for (const one of crowd) slots.knock(one);
  assert.equal(crowd.filter(({ isGone }) => !isGone).length, 64);
  const honest = visitor(member);
  slots.knock(honest);
  assert.ok(slots.enter(honest) && !honest.isGone);
  for (const one of crowd) slots.knock(one);
  assert.equal(honest.isGone, false);
});

test('one member takes no more than its part, and gets it back', () => {
  const slots = new TalkSlots();
  const greedy = newIdentity().aid;
  const talks = Array.from({ length: 100 }, () => visitor(greedy));
  const inside = talks.filter((talk) => {
    slots.knock(talk);
    return slots.enter(talk);
  });
  assert.equal(inside.length, 32);
  assert.ok(slots.enter(visitor(newIdentity().aid)));
  for (const talk of talks) slots.leave(talk);
  assert.ok(slots.enter(visitor(greedy)));
});
