import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Guesser, GuessLimits } from '../../../src/capabilities/access/guess-limits.ts';
import { lentSource } from '../../../src/foundation/quota.ts';
import { TestClock } from '../../support/test-clock.ts';

const guesser = (caller: string, node: string | null = null, source: string | null = null): Guesser => ({
  caller,
  node,
  source,
});

/** Guesses wrong until locked. Returns the number of guesses. */
function guess(limits: GuessLimits, who: Guesser, times: number, subject = 's'): number {
  let taken = 0;
  for (let i = 0; i < times; i++) {
    if (limits.wait(subject, who) > 0) continue;
    limits.charge(subject, who);
    taken++;
  }
  return taken;
}

test('the fifth wrong guess locks the caller, and each further one doubles the lock up to an hour', () => {
  const clock = new TestClock();
  const limits = new GuessLimits(clock);
  const who = guesser('a');
  assert.equal(guess(limits, who, 100), 5);
  const locks: number[] = [];
  for (let i = 0; i < 9; i++) {
    const wait = limits.wait('s', who);
    locks.push(wait / 1000);
    clock.advance(wait - 1);
    assert.equal(guess(limits, who, 1), 0);
    clock.advance(1);
    assert.equal(guess(limits, who, 10), 1);
  }
  assert.deepEqual(locks, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
});

test('a lock applies to one subject and not to other callers of the node or address', () => {
  const limits = new GuessLimits(new TestClock());
  guess(limits, guesser('a', 'n', '192.0.2.1'), 100);
  assert.equal(limits.wait('other', guesser('a', 'n', '192.0.2.1')), 0);
  assert.equal(limits.wait('s', guesser('b', 'n', '192.0.2.1')), 0, 'same node, other agent');
  assert.equal(limits.wait('s', guesser('b', 'm', '192.0.2.1')), 0, 'same address, other node');
});

test('new AIDs do not help a node, and new node keys do not help an address', () => {
  const limits = new GuessLimits(new TestClock());
  let taken = 0;
  for (let i = 0; i < 100; i++) taken += guess(limits, guesser(`a${i}`, 'n', '192.0.2.1'), 1);
  assert.equal(taken, 20);
  for (let i = 0; i < 100; i++) taken += guess(limits, guesser(`b${i}`, `m${i}`, '192.0.2.1'), 1);
  assert.equal(taken, 60);
  assert.ok(limits.wait('s', guesser('c', 'o', '192.0.2.1')) > 0);
  assert.equal(limits.wait('s', guesser('c', 'o', '192.0.2.2')), 0);
});

test('an address waits a few seconds at most, regardless of its guesses', () => {
  const clock = new TestClock();
  const limits = new GuessLimits(clock);
  for (let i = 0; i < 200; i++) {
    guess(limits, guesser(`a${i}`, `n${i}`, '192.0.2.1'), 1);
    clock.advance(5000);
  }
  assert.ok(limits.wait('s', guesser('b', 'o', '192.0.2.1')) <= 5000);
});

test('an IPv6 address counts as its /56', () => {
  const limits = new GuessLimits(new TestClock());
  for (let i = 0; i < 100; i++)
    guess(limits, guesser(`a${i}`, `n${i}`, `2001:db8:1:ab${i.toString(16).padStart(2, '0')}::${i}`), 1);
  assert.ok(limits.wait('s', guesser('b', 'o', '2001:db8:1:abff:1:2:3:4')) > 0);
  assert.equal(limits.wait('s', guesser('b', 'o', '2001:db8:1:ac00::1')), 0);
  assert.equal(limits.wait('s', guesser('b', 'o', '2001:db8::1')), 0);
});

test('the /56 networks of one IPv6 /48 share a limit', () => {
  const limits = new GuessLimits(new TestClock());
  for (let i = 0; i < 256; i++)
    guess(limits, guesser(`a${i}`, `n${i}`, `2001:db8:1:${i.toString(16).padStart(2, '0')}00::1`), 1);
  assert.ok(limits.wait('s', guesser('b', 'o', '2001:db8:1:2::1')) > 0);
  assert.equal(limits.wait('s', guesser('b', 'o', '2001:db8:2:2::1')), 0);
});

test('a trusted caller is locked by its own guesses only', () => {
  const limits = new GuessLimits(new TestClock());
  const friend = guesser('friend', 'n', '192.0.2.1');
  limits.trust('s', friend);
  for (let i = 0; i < 100; i++) guess(limits, guesser(`a${i}`, 'n', '192.0.2.1'), 1);
  assert.equal(limits.wait('s', friend), 0);
  assert.equal(guess(limits, friend, 100), 5);
});

test('concurrent guesses cannot exceed the limit, and a valid one refunds its charge', () => {
  const limits = new GuessLimits(new TestClock());
  const who = guesser('a', 'n', '192.0.2.1');
  const refunds = Array.from({ length: 5 }, () => limits.charge('s', who));
  assert.ok(limits.wait('s', who) > 0);
  for (const refund of refunds) refund();
  assert.equal(limits.wait('s', who), 0);
  assert.equal(guess(limits, who, 100), 5);
});

test('a valid guess clears the wrong guesses of its caller', () => {
  const limits = new GuessLimits(new TestClock());
  const who = guesser('a');
  guess(limits, who, 4);
  limits.trust('s', who);
  assert.equal(guess(limits, who, 100), 5);
});

test('wrong guesses expire after two hours without another one', () => {
  const clock = new TestClock();
  const limits = new GuessLimits(clock);
  guess(limits, guesser('a'), 4);
  clock.advance(2 * 3_600_000 + 1);
  assert.equal(guess(limits, guesser('a'), 100), 5);
});

test('ports of many helpers, and nodes without a known address, are one network each', () => {
  for (const sourceOf of [(n: number) => lentSource(`192.0.${n}.1`), (n: number) => `key ${n}`]) {
    const limits = new GuessLimits(new TestClock());
    let taken = 0;
    for (let i = 0; i < 1000; i++) taken += guess(limits, guesser(`a${i}`, `n${i}`, sourceOf(i % 100)), 1);
    assert.equal(taken, 240);
  }
});
