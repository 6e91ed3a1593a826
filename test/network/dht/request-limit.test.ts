import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestLimit } from '../../../src/network/dht/request-limit.ts';
import { nodeAddress } from '../../support/named-nodes.ts';
import { TestClock } from '../../support/test-clock.ts';

test('an address has so many requests answered at once, then as many as flow back; others lose nothing', () => {
  const clock = new TestClock();
  const admits = requestLimit({ clock });
  const burst = (n: number, port = 4121): number => {
    let count = 0;
    while (admits({ ...nodeAddress(n), port })) count++;
    return count;
  };
  assert.equal(burst(1), 5000);
  assert.equal(burst(1, 9), 0, 'another port is the same host');
  assert.equal(burst(2), 5000);
  clock.advance(1000);
  assert.equal(burst(1), 500);
});
