import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EvidenceSetting } from '../../../src/capabilities/agents/evidence-setting.ts';
import type { AgentChange } from '../../../src/foundation/agent-change.ts';
import { noSuchAgent } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { Listeners } from '../../../src/foundation/listeners.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { storeWithAgents, testDelegation } from '../../foundation/store/store-with-agents.ts';
import { testAid } from '../../support/agents.ts';

const [one, two, stranger] = [testAid(1), testAid(2), testAid(3)];

function settingWorld() {
  const agents = new AgentStore(storeWithAgents(2).store);
  const changes = new Listeners<[AgentChange]>();
  const registry = {
    get: (aid: Aid) => {
      const row = agents.get(aid);
      if (row === null) throw noSuchAgent(aid);
      return { ...row, serviceBefore: null, serviceOk: null, heartbeatSecondsAgo: 0 };
    },
    onChange: (listener: (change: AgentChange) => void) => changes.add(listener),
  };
  return { agents, changes, setting: () => new EvidenceSetting(agents, registry) };
}

test('evidence is off until it is switched on for one agent, and the setting is stored', () => {
  const { setting, agents } = settingWorld();
  const first = setting();
  assert.deepEqual([first.get(one), first.isOn(stranger)], [false, false]);
  first.set(one, true);
  assert.deepEqual([first.isOn(one), first.isOn(two)], [true, false]);
  // A new key does not change the agent.
  agents.put({ keyName: 'new', delegation: testDelegation(1, 2), serviceTcp: '', registeredAt: 1 });
  const later = setting();
  assert.equal(later.isOn(one), true);
  later.set(one, false);
  assert.equal(setting().isOn(one), false);
});

test('an unknown agent has no setting, and an agent that is registered again starts without it', () => {
  const { setting, agents, changes } = settingWorld();
  const evidence = setting();
  assert.throws(() => evidence.get(stranger), { code: 'not_found' });
  assert.throws(() => evidence.set(stranger, true), { code: 'not_found' });
  evidence.set(one, true);
  assert.equal(evidence.isOn(one), true);
  agents.delete(one);
  changes.notify({ aid: one, kind: 'deleted' });
  assert.equal(evidence.isOn(one), false);
  agents.put({ keyName: 'k', delegation: testDelegation(1, 1), serviceTcp: '', registeredAt: 1 });
  changes.notify({ aid: one, kind: 'registered' });
  assert.equal(evidence.isOn(one), false);
});
