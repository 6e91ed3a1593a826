import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { testAid } from '../../support/agents.ts';
import { storeWithAgents, testDelegation } from './store-with-agents.ts';

test('an agent is read as it was stored', () => {
  const agents = new AgentStore(storeWithAgents(0).store);
  const delegation = testDelegation(1, 1, 5000);
  agents.put({ keyName: 'key', delegation, serviceTcp: '127.0.0.1:80', registeredAt: 7 });
  assert.deepEqual(agents.get(testAid(1)), {
    id: 1,
    aid: testAid(1),
    keyName: 'key',
    operationalKey: delegation.operationalKey,
    delegation: encodeDelegation(delegation),
    window: { issuedAt: 100, expiresAt: 5000 },
    serviceTcp: '127.0.0.1:80',
    servicesBefore: [],
    registeredAt: 7,
    heartbeatAt: 7,
    isHeld: false,
  });
  assert.equal(agents.get(testAid(2)), null);
});

test('an agent that is stored again keeps its number and times, and gets the new key, delegation and service', () => {
  const agents = new AgentStore(storeWithAgents(1).store);
  const before = agents.get(testAid(1));
  const delegation = testDelegation(1, 2);
  agents.put({ keyName: 'new', delegation, serviceTcp: 'x:1', registeredAt: 99 });
  assert.deepEqual(agents.get(testAid(1)), {
    ...before,
    keyName: 'new',
    operationalKey: delegation.operationalKey,
    delegation: encodeDelegation(delegation),
    window: { issuedAt: 200, expiresAt: 0 },
    serviceTcp: 'x:1',
  });
  assert.equal(agents.count(), 1);
});

test('pages follow the order of registration', () => {
  const agents = new AgentStore(storeWithAgents(4).store);
  const ids = (after: number, limit: number) => agents.page(after, limit).map(({ id }) => id);
  assert.deepEqual(ids(0, 2), [1, 2]);
  assert.deepEqual(ids(2, 10), [3, 4]);
  const fourth = agents.get(testAid(4));
  assert.ok(fourth);
  const { id, aid, window, serviceTcp, servicesBefore, heartbeatAt } = fourth;
  assert.deepEqual(agents.page(3, 1), [{ id, aid, window, serviceTcp, servicesBefore, heartbeatAt }]);
  assert.equal(agents.count(), 4);
});

test('a cached page shows every kind of change', () => {
  const agents = new AgentStore(storeWithAgents(2).store);
  const shown = () =>
    agents.page(0, 9).map(({ id, window, serviceTcp, heartbeatAt }) => [id, window.issuedAt, serviceTcp, heartbeatAt]);
  const untouched = [2, 100, '', 2];
  assert.deepEqual(shown(), [[1, 100, '', 1], untouched]);
  assert.equal(agents.page(0, 9), agents.page(0, 9));
  agents.setService(testAid(1), 'a:1');
  assert.deepEqual(shown(), [[1, 100, 'a:1', 1], untouched]);
  agents.setHeartbeats([[testAid(1), 50]]);
  assert.deepEqual(shown(), [[1, 100, 'a:1', 50], untouched]);
  agents.put({ keyName: 'new', delegation: testDelegation(1, 2), serviceTcp: 'b:1', registeredAt: 99 });
  assert.deepEqual(shown(), [[1, 200, 'b:1', 50], untouched]);
  agents.delete(testAid(1));
  assert.deepEqual(shown(), [untouched]);
});

test('services and heartbeats belong to their agent', () => {
  const agents = new AgentStore(storeWithAgents(3).store);
  agents.setService(testAid(1), 'a:1');
  agents.setService(testAid(2), 'a:1');
  agents.setHeartbeats([
    [testAid(2), 50],
    [testAid(3), 60],
  ]);
  assert.deepEqual(
    agents.page(0, 9).map(({ serviceTcp, heartbeatAt }) => [serviceTcp, heartbeatAt]),
    [
      ['a:1', 1],
      ['a:1', 50],
      ['', 60],
    ],
  );
  assert.deepEqual(agents.boundServices(), ['a:1']);
});

test('reports whether there was an agent to delete', () => {
  const agents = new AgentStore(storeWithAgents(2).store);
  assert.equal(agents.delete(testAid(9)), false);
  assert.equal(agents.delete(testAid(1)), true);
  assert.equal(agents.delete(testAid(1)), false);
  assert.deepEqual([...agents.keyNames()], ['key-2']);
});

test('a key is retired until an agent uses it, and after it is replaced', () => {
  const agents = new AgentStore(storeWithAgents(1).store);
  agents.expectKey('key-1');
  assert.deepEqual(agents.retiredKeys(), [], 'used by an agent');
  agents.expectKey('next');
  agents.expectKey('next');
  assert.deepEqual(agents.retiredKeys(), ['next']);
  agents.put({ keyName: 'next', delegation: testDelegation(1, 2), serviceTcp: '', registeredAt: 1 });
  assert.deepEqual(agents.retiredKeys(), ['key-1']);
  agents.delete(testAid(1));
  assert.deepEqual(agents.retiredKeys(), ['key-1', 'next']);
  agents.removeRetiredKey('key-1');
  assert.deepEqual(agents.retiredKeys(), ['next']);
});

test('a transaction of agents is rolled back by an error and returns its result', () => {
  const agents = new AgentStore(storeWithAgents(1).store);
  assert.throws(() =>
    agents.transaction(() => {
      agents.delete(testAid(1));
      throw new Error('no');
    }),
  );
  assert.equal(
    agents.transaction(() => agents.count()),
    1,
  );
});

test('an agent that is registered is copied from the journal only if this changes whether it is held', () => {
  const { store } = storeWithAgents(1);
  const agents = new AgentStore(store);
  let checkpoints = 0;
  store.onCheckpoint(() => checkpoints++);
  for (const [isHeld, expected] of [
    [false, 0],
    [true, 1],
    [true, 1],
    [false, 2],
  ] as const) {
    agents.setHeld(testAid(1), isHeld);
    assert.equal(agents.get(testAid(1))?.isHeld, isHeld);
    assert.equal(checkpoints, expected);
  }
});
