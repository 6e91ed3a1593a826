import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AgentCache } from '../../../src/capabilities/agents/agent-cache.ts';
import type { AgentChange } from '../../../src/foundation/agent-change.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { Listeners } from '../../../src/foundation/listeners.ts';
import { testAid } from '../../support/agents.ts';

const [one, two] = [testAid(1), testAid(2)];

function remembering() {
  const services = new Map<Aid, string>();
  const changes = new Listeners<[AgentChange]>();
  let asked = 0;
  const agents = new AgentCache({
    service: (aid) => {
      asked++;
      return services.get(aid) ?? '';
    },
    list: (limit) => {
      asked++;
      const window = { issuedAt: 0, expiresAt: 0 };
      const view = { serviceTcp: '', serviceBefore: null, serviceOk: null, heartbeatSecondsAgo: 0, window };
      return { agents: [...services.keys()].slice(0, limit).map((aid) => ({ aid, ...view })), nextCursor: null };
    },
    onChange: (listener) => changes.add(listener),
  });
  const change = (aid: Aid, kind: AgentChange['kind'], service?: string): void => {
    if (service === undefined) services.delete(aid);
    else services.set(aid, service);
    changes.notify({ aid, kind });
  };
  return { agents, change, asked: () => asked };
}

test('a service is looked up once, and again after each change of its agent', () => {
  const { agents, change, asked } = remembering();
  assert.equal(agents.service(one), null);
  for (const [kind, port] of [
    ['registered', 1],
    ['bound', 2],
    ['rotated', 3],
  ] as const) {
    change(one, kind, `127.0.0.1:${port}`);
    assert.deepEqual([agents.service(one)?.port, agents.service(one)?.port], [port, port]);
  }
  change(one, 'deleted');
  assert.equal(agents.service(one), null);
  assert.equal(asked(), 5);
});

test('the first agents are read again after an agent is added or deleted, or for another limit', () => {
  const { agents, change, asked } = remembering();
  assert.deepEqual(agents.first(2), []);
  change(one, 'registered', '');
  assert.deepEqual([agents.first(2), agents.first(2)], [[one], [one]]);
  change(two, 'registered', '');
  assert.deepEqual([agents.first(1), agents.first(2)], [[one], [one, two]]);
  change(one, 'deleted');
  assert.deepEqual(agents.first(2), [two]);
  assert.equal(asked(), 5);
});
