import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Callers,
  MAX_CALLERS_PER_SOURCE,
  MAX_CALLERS_TOTAL,
  type RefusedCall,
} from '../../../src/capabilities/access/callers.ts';
import { MAX_CALLERS } from '../../../src/foundation/domain/access.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import type { AccessRequest, Purpose } from '../../../src/network/links/types.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const AGENT = testAid(1);

function requestBy(caller: Aid, purpose: Purpose = 'http', more: Partial<AccessRequest> = {}): AccessRequest {
  return { caller, called: AGENT, purpose, accessToken: undefined, nodeKey: null, source: null, ...more };
}

function setUp(named: readonly Aid[] = []) {
  const clock = new TestClock();
  return { clock, callers: new Callers(clock, (_called, caller) => named.includes(caller)) };
}

test('lists accepted and refused callers with reasons, the most recent first', () => {
  const { clock, callers } = setUp();
  const refused: RefusedCall[] = [];
  const stop = callers.onRefused((call) => refused.push(call));
  const [bob, eve] = [testAid(2), testAid(3)];
  const since = clock.now();
  callers.entered(requestBy(bob));
  callers.entered(requestBy(bob));
  callers.entered(requestBy(bob, 'object'));
  clock.advance(1000);
  callers.refused(requestBy(eve, 'tcp'), 'access_denied');
  // Not caused by the caller, or not controlled by the access list.
  callers.refused(requestBy(eve), 'inbound_unreachable');
  callers.refused(requestBy(eve, 'note'), 'access_denied');
  callers.entered(requestBy(eve, 'group'));
  const now = clock.now();
  const lastRefusal = { at: now, kind: 'tunnel', code: 'access_denied' };
  assert.deepEqual(
    callers.list(AGENT).map(({ aid, entered, refused: times, firstAt, lastAt, lastRefusal: last }) => ({
      ...{ aid, entered, times, firstAt, lastAt, last },
    })),
    [
      { aid: eve, entered: { call: 0, tunnel: 0, object: 0 }, times: 1, firstAt: now, lastAt: now, last: lastRefusal },
      { aid: bob, entered: { call: 2, tunnel: 0, object: 1 }, times: 0, firstAt: since, lastAt: since, last: null },
    ],
  );
  assert.deepEqual(refused, [{ caller: eve, called: AGENT, kind: 'tunnel', code: 'access_denied' }]);
  stop();
  callers.refused(requestBy(eve), 'rate_limited');
  assert.equal(refused.length, 1);
  callers.drop(AGENT);
  assert.deepEqual(callers.list(AGENT), []);
});

test('links count refusals only', async () => {
  const { callers } = setUp();
  const bob = testAid(2);
  for (const purpose of ['http', 'object', 'tcp', 'tcp-probe'] as const)
    await callers.authorize(requestBy(bob, purpose), () => {});
  const deny = async (): Promise<void> => {
    throw new SvcError('access_denied');
  };
  for (const purpose of ['http', 'tcp-probe'] as const)
    await assert.rejects(callers.authorize(requestBy(bob, purpose), deny), { code: 'access_denied' });
  const [one] = callers.list(AGENT);
  assert.deepEqual([one?.entered, one?.refused], [{ call: 0, tunnel: 0, object: 0 }, 2]);
});

test('a stranger with many AIDs evicts only its own entries, and no caller on the access list', () => {
  const friend = testAid(9999);
  const { callers } = setUp([friend]);
  const bob = testAid(2);
  callers.entered(requestBy(friend, 'http', { source: '192.0.2.7' }));
  callers.entered(requestBy(bob, 'http', { source: '192.0.2.1' }));
  for (let i = 0; i < 2 * MAX_CALLERS; i++)
    callers.refused(requestBy(testAid(100 + i), 'http', { source: '192.0.2.7' }), 'access_denied');
  const known = callers.list(AGENT).map(({ aid }) => aid);
  assert.equal(known.length, MAX_CALLERS_PER_SOURCE + 2);
  assert.deepEqual(known.slice(-2), [bob, friend]);
  // Strangers from many addresses evict each other.
  for (let i = 0; i < 2 * MAX_CALLERS; i++)
    callers.refused(requestBy(testAid(1000 + i), 'http', { source: `198.51.${i >> 8}.${i & 255}` }), 'access_denied');
  const kept = callers.list(AGENT).map(({ aid }) => aid);
  assert.equal(kept.length, MAX_CALLERS);
  assert.ok(kept.includes(friend) && !kept.includes(bob));
});

test('the callers of all agents together are bounded', () => {
  const { callers } = setUp();
  const agents = Array.from({ length: MAX_CALLERS_TOTAL / MAX_CALLERS + 1 }, (_, i) => testAid(10_000 + i));
  const strangers = Array.from({ length: MAX_CALLERS }, (_, i) => testAid(2 + i));
  for (const called of agents) for (const one of strangers) callers.entered(requestBy(one, 'http', { called }));
  const held = agents.map((called) => callers.list(called).length);
  assert.equal(
    held.reduce((sum, one) => sum + one, 0),
    MAX_CALLERS_TOTAL,
  );
  assert.ok(Math.min(...held) > 0);
});
