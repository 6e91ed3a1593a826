import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { AgentRegistry } from '../../../src/capabilities/agents/registry.ts';
import { renewalQueue } from '../../../src/capabilities/directory/directory.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { issueDelegation, selfDelegation } from '../../../src/foundation/identity/delegation.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { PublicationStore } from '../../../src/foundation/store/publications.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { DirectoryWorld } from '../../support/directory-world.ts';
import { MemoryVault } from '../../support/memory-vault.ts';
import { TestClock } from '../../support/test-clock.ts';

const AGENTS = 10_000;

function populate(store: Store): Aid[] {
  const agents = new AgentStore(store);
  const key = KeyPair.generate();
  const aids: Aid[] = [];
  store.transaction(() => {
    for (let i = 0; i < AGENTS; i++) {
      const seed = new Uint8Array(32);
      new DataView(seed.buffer).setUint32(0, i);
      const delegation = { ...issueDelegation(key, key.publicKey, 1_700_000_000), ...agentOf(seed) };
      agents.put({ keyName: `key-${i}`, delegation, serviceTcp: '', registeredAt: 0 });
      aids.push(delegation.agent);
    }
  });
  return aids;
}

function agentOf(seed: Uint8Array): { readonly agent: Aid } {
  return { agent: selfDelegation(KeyPair.fromSeed(seed)).agent };
}

test('ten thousand agents start quickly, and are renewed at a steady rate when all are due', async (t) => {
  const store = Store.open(':memory:', MIGRATIONS);
  const aids = populate(store);
  const clock = new TestClock();
  const started = performance.now();
  const registry = new AgentRegistry(
    { nodeAid: selfDelegation(KeyPair.generate()).agent },
    {
      agents: new AgentStore(store),
      vault: new MemoryVault(),
      clock,
      log: silentLog,
      own: { api: () => null, interfaces: () => [], lookup: async () => [] },
      checkTcp: async () => ({ ok: true, ms: 0 }),
    },
  );
  await registry.start();
  const world = new DirectoryWorld({ store, clock, autoPublish: true });
  await world.directory.start();
  t.diagnostic(`started in ${Math.round(performance.now() - started)} ms`);
  assert.ok(clock.timers < 10, `${clock.timers} timers`);
  assert.equal(registry.list(1000).agents.length, 1000);
  await world.directory.stop();
  await registry.stop();

  const publications = new PublicationStore(store);
  for (const aid of aids) publications.schedule(aid, { claim: false, state: 'active', dueAt: 0, failures: 0 });
  const asked = aids[7000] ?? world.nodeAid;
  publications.claim(asked, 0);
  const order: Aid[] = [];
  const perSecond = new Map<number, number>();
  let open = 0;
  let most = 0;
  const renewal = renewalQueue({
    random: () => 0,
    publications,
    clock,
    log: silentLog,
    renew: async (aid) => {
      open += 1;
      most = Math.max(most, open);
      await turn();
      open -= 1;
      const second = Math.floor(clock.now() / 1000);
      perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
      order.push(aid);
      publications.schedule(aid, { claim: false, state: 'active', dueAt: clock.now() + 1_800_000, failures: 0 });
    },
  });
  renewal.start();
  await clock.run(600_000);
  const agents = order.filter((aid) => aid !== world.nodeAid);
  assert.equal(agents.length, AGENTS);
  assert.equal(new Set(agents).size, AGENTS);
  assert.ok(order.slice(0, 2).includes(asked), 'the requested agent comes first');
  assert.ok(most <= 8, `${most} concurrently`);
  assert.ok(Math.max(...perSecond.values()) <= 31, `${Math.max(...perSecond.values())} per second`);
  assert.equal(clock.timers, 1);
  await renewal.stop();
  assert.equal(clock.timers, 0);
  store.close();
});

test('a database failure does not stop renewal', async () => {
  const clock = new TestClock();
  let broken = true;
  let renewed = 0;
  const renewal = renewalQueue({
    random: () => 0,
    publications: {
      publishers: {
        due: () => {
          if (broken) throw new Error('disk full');
          const item = selfDelegation(KeyPair.generate()).agent;
          return renewed === 0 ? [{ id: item, key: item, attempts: 0, item }] : [];
        },
        nextDue: () => null,
        postpone: () => {},
        makeDue: () => {},
      },
    },
    clock,
    log: silentLog,
    renew: async () => {
      renewed += 1;
    },
  });
  renewal.start();
  await clock.run(60_000);
  assert.equal(renewed, 0);
  broken = false;
  await clock.run(5000);
  assert.equal(renewed, 1);
  await renewal.stop();
});
