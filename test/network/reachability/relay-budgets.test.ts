import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS } from '../../../src/foundation/clock.ts';
import {
  MAX_STORED_BUDGETS,
  RESERVED_RELAY_PART,
  RelayBudgets,
} from '../../../src/network/reachability/relay-budgets.ts';
import { TestClock } from '../../support/test-clock.ts';

const LIMITS = {
  bytesPerSecond: 1_000_000_000,
  bytesPerSecondPerSource: 1_000_000,
  bytesPerDay: 1_000_000_000,
  bytesPerDayPerSource: 100,
};

function strangerAt(source: string) {
  return { source, named: false };
}

function hostOf(n: number): string {
  return `20.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
}

test('the usage of the day of many sources is stored, and the oldest without a session is evicted', () => {
  const budgets = new RelayBudgets(LIMITS, { clock: new TestClock() });
  const isUsedUp = (n: number): boolean => {
    const account = budgets.open(strangerAt(hostOf(n)));
    account?.close();
    return account === null;
  };
  const open = budgets.open(strangerAt(hostOf(0)));
  assert.equal(open?.spend(100), true);
  for (let n = 256; n < 256 + MAX_STORED_BUDGETS; n++) {
    const account = budgets.open(strangerAt(hostOf(n)));
    // Two sources of a network use up its budget.
    if (account === null) continue;
    assert.equal(account.spend(100), true);
    account.close();
  }
  assert.equal(isUsedUp(256 + MAX_STORED_BUDGETS - 255), true, 'the newest is stored');
  assert.equal(isUsedUp(0), true, 'a budget in use is stored');
  for (let n = 1_000_000; n < 1_000_000 + 256 * MAX_STORED_BUDGETS; n += 256) {
    const account = budgets.open(strangerAt(hostOf(n)));
    account?.spend(1);
    account?.close();
  }
  assert.equal(isUsedUp(256), false, 'the oldest is evicted');
  assert.equal(isUsedUp(0), true);
  assert.equal(open?.spend(1), false);
});

test('strangers of any number of addresses leave a part of the day to known nodes', () => {
  const clock = new TestClock();
  const bytesPerDay = 8000;
  const limits = { ...LIMITS, bytesPerDay, bytesPerDayPerSource: 1000 };
  const budgets = new RelayBudgets(limits, { clock });
  let spent = 0;
  for (let n = 0; n < 20; n++) {
    const account = budgets.open(strangerAt(`${20 + n}.1.1.1`));
    while (account?.spend(100) === true) spent += 100;
    account?.close();
  }
  assert.equal(spent, (1 - RESERVED_RELAY_PART) * bytesPerDay);
  assert.equal(budgets.open(strangerAt('99.1.1.1')), null);
  const known = budgets.open({ source: '20.1.1.1', named: true });
  for (let i = 0; i < 20; i++) assert.equal(known?.spend(100), true);
  assert.equal(known?.spend(100), false, 'the day has a limit for all');
  clock.advance(DAY_MS);
  assert.equal(known?.spend(100), true);
  assert.ok(budgets.open(strangerAt('99.1.1.1')) !== null);
});
