import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Heartbeats } from '../../../src/capabilities/agents/heartbeats.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

test('many heartbeats are written in small batches', () => {
  const store = Store.open(':memory:', MIGRATIONS);
  const agents = new AgentStore(store);
  const clock = new TestClock();
  const heartbeats = new Heartbeats(agents, clock, silentLog);
  const identities = Array.from({ length: 1200 }, () => newIdentity());
  for (const [i, { delegation, aid }] of identities.entries()) {
    agents.put({ keyName: `k${i}`, delegation, serviceTcp: '', registeredAt: 0 });
    heartbeats.record(aid);
  }
  const at = clock.now();
  const written = (): number => agents.page(0, 2000).filter((row) => row.heartbeatAt === at).length;
  clock.advance(59_999);
  assert.equal(written(), 0);
  clock.advance(1);
  assert.equal(written(), 500);
  clock.advance(100);
  assert.equal(written(), 1200);
  assert.equal(clock.timers, 0);
  store.close();
});

test('no heartbeat is lost while the disk fails temporarily', () => {
  const store = Store.open(':memory:', MIGRATIONS);
  const agents = new AgentStore(store);
  const clock = new TestClock();
  const heartbeats = new Heartbeats(agents, clock, silentLog);
  const { delegation, aid } = newIdentity();
  agents.put({ keyName: 'k', delegation, serviceTcp: '', registeredAt: 0 });
  const at = clock.now();
  heartbeats.record(aid);
  store.one('PRAGMA query_only = ON');
  clock.advance(150_000);
  store.one('PRAGMA query_only = OFF');
  assert.equal(agents.get(aid)?.heartbeatAt, 0);
  clock.advance(60_000);
  assert.equal(agents.get(aid)?.heartbeatAt, at);
  assert.equal(clock.timers, 0);
  store.close();
});

test('a heartbeat counts before it is written, unless the agent was deleted meanwhile', () => {
  const store = Store.open(':memory:', MIGRATIONS);
  const clock = new TestClock();
  const heartbeats = new Heartbeats(new AgentStore(store), clock, silentLog);
  const { aid } = newIdentity();
  assert.equal(heartbeats.last(aid, 7), 7);
  heartbeats.record(aid);
  assert.equal(heartbeats.last(aid, 7), clock.now());
  heartbeats.forget(aid);
  assert.equal(heartbeats.last(aid, 7), 7);
  heartbeats.stop();
  assert.equal(clock.timers, 0);
  store.close();
});
