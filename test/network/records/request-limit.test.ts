import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lentSource } from '../../../src/foundation/quota.ts';
import { hostKeyOf } from '../../../src/network/records/node-address.ts';
import {
  REQUEST_RATE_PER_BLOCK,
  REQUEST_RATE_PER_HOST,
  requestLimit,
} from '../../../src/network/records/routing-admission.ts';
import { nodeAddress } from '../../support/named-nodes.ts';
import { TestClock } from '../../support/test-clock.ts';

test('an address has a burst of requests, then as many as its rate allows. Other addresses are not affected', () => {
  const clock = new TestClock();
  const admits = requestLimit({ clock });
  const burst = (n: number, port = 4121): number => {
    let count = 0;
    while (admits(hostKeyOf({ ...nodeAddress(n), port }), false)) count++;
    return count;
  };
  assert.equal(burst(1), 5000);
  assert.equal(burst(1, 9), 0, 'another port of the same host');
  assert.equal(burst(2), 5000);
  clock.advance(1000);
  assert.equal(burst(1), 500);
});

test('the addresses of one network share a rate, so that others still get answers', () => {
  const admits = requestLimit({ clock: new TestClock() });
  const burst = (host: string): number => {
    let count = 0;
    while (admits(host, false)) count++;
    return count;
  };
  const hosts = REQUEST_RATE_PER_BLOCK.burst / REQUEST_RATE_PER_HOST.burst;
  for (let i = 0; i < hosts; i++) assert.equal(burst(`192.0.2.${i}`), REQUEST_RATE_PER_HOST.burst);
  assert.equal(burst(`192.0.2.${hosts}`), 0);
  assert.equal(burst('198.51.100.1'), REQUEST_RATE_PER_HOST.burst);
});

test('the lent ports of all helpers share the rate of one network', () => {
  const admits = requestLimit({ clock: new TestClock() });
  let count = 0;
  for (let i = 0; i < 10; i++) while (admits(lentSource(`${20 + i}.1.2.3`), false)) count++;
  assert.equal(count, REQUEST_RATE_PER_BLOCK.burst);
});

test('a forger of an address does not use up the rate of its proven requests', () => {
  const admits = requestLimit({ clock: new TestClock() });
  while (admits('192.0.2.1', false));
  assert.equal(admits('192.0.2.1', true), true);
});
