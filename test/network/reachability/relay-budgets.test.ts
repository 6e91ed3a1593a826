import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_STORED_BUDGETS, RelayBudgets } from '../../../src/network/reachability/relay-budgets.ts';
import { TestClock } from '../../support/test-clock.ts';

const LIMITS = {
  bytesPerSecond: 1_000_000_000,
  bytesPerSecondPerSource: 1_000_000,
  bytesPerDay: 1_000_000_000,
  bytesPerDayPerSource: 100,
};

function hostOf(n: number): string {
  return `20.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
}

test('the usage of the day of many sources is stored, and the oldest without a session is evicted', () => {
  const budgets = new RelayBudgets(LIMITS, { clock: new TestClock() });
  const isUsedUp = (n: number): boolean => {
    const account = budgets.open(hostOf(n));
    account?.close();
    return account === null;
  };
  const open = budgets.open(hostOf(0));
  assert.equal(open?.spend(100), true);
  for (let n = 256; n < 256 + MAX_STORED_BUDGETS; n++) {
    const account = budgets.open(hostOf(n));
    // Two sources of a network use up its budget.
    if (account === null) continue;
    assert.equal(account.spend(100), true);
    account.close();
  }
  assert.equal(isUsedUp(256 + MAX_STORED_BUDGETS - 255), true, 'the newest is stored');
  assert.equal(isUsedUp(0), true, 'a budget in use is stored');
  for (let n = 1_000_000; n < 1_000_000 + 256 * MAX_STORED_BUDGETS; n += 256) {
    const account = budgets.open(hostOf(n));
    account?.spend(1);
    account?.close();
  }
  assert.equal(isUsedUp(256), false, 'the oldest is evicted');
  assert.equal(isUsedUp(0), true);
  assert.equal(open?.spend(1), false);
});
