/** Shrinking finds the few options that a failure needs, within a limited number of runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { argsOf, type Size, shrink, type Trial } from '../../sim/shrink.ts';

const SIZE: Size = {
  ...{ seed: 1, nodes: 6, liars: 1, days: 0.25, agents: 2, actions: 60 },
  ...{ users: ['notes', 'chats', 'calls', 'groups'], faults: ['loss', 'crash', 'power cut', 'restart'] },
  ...{ without: [], fixed: ['--healing', '10'] },
};
const FAULTS_PER_DAY = 72;

/** A world that breaks a guarantee at 0.1 days, if two friends chat and the fifth or sixth fault hits their node. */
function failsByPowerCut(onRun: (size: Size) => void): Trial {
  return async (size) => {
    onRun(size);
    const isBroken =
      size.nodes >= 3 &&
      size.days >= 0.1 &&
      size.users.includes('chats') &&
      size.faults.includes('power cut') &&
      !(size.without.includes(5) && size.without.includes(6));
    return isBroken ? { days: 0.1, lastFault: Math.floor(size.days * FAULTS_PER_DAY), kinds: size.faults } : null;
  };
}

test('a failure is reduced to the users, nodes and faults that it needs', async () => {
  let runs = 0;
  const trial = failsByPowerCut(() => runs++);
  const { days, without, ...rest } = await shrink(SIZE, { days: 0.1, lastFault: 18, kinds: SIZE.faults }, trial, 100);
  assert.deepEqual(rest, {
    ...{ seed: 1, nodes: 3, liars: 0, agents: 1, actions: 2, users: ['chats'], faults: ['power cut'] },
    fixed: ['--healing', '10'],
  });
  assert.ok(days > 0.1 && days < 0.102);
  assert.deepEqual(without, [1, 2, 3, 4, 5, 7]);
  assert.ok(runs <= 60, `${runs} runs`);
});

test('kinds of faults that did not occur are omitted first', async () => {
  const tried: Size[] = [];
  const trial: Trial = async (size) => {
    tried.push(size);
    return null;
  };
  await shrink(SIZE, { days: 0.25, lastFault: 1, kinds: ['crash'] }, trial, 1);
  assert.deepEqual(tried, [{ ...SIZE, faults: ['crash'] }]);
});

test('shrinking ends after the given number of runs, with options that fail', async () => {
  let runs = 0;
  const trial = failsByPowerCut(() => runs++);
  const size = await shrink(SIZE, { days: 0.1, lastFault: 18, kinds: SIZE.faults }, trial, 8);
  assert.equal(runs, 8);
  assert.notEqual(await trial(size), null);
  assert.ok(argsOf(size).join(' ').length < argsOf(SIZE).join(' ').length);
});

test('a failure that needs everything keeps its options', async () => {
  const trial: Trial = async () => null;
  assert.deepEqual(await shrink(SIZE, { days: 0.25, lastFault: 18, kinds: SIZE.faults }, trial, 200), SIZE);
});
