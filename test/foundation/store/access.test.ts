import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { type Delegation, encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { AccessRepository, type AidEntry, type SecretEntry } from '../../../src/foundation/store/access.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { newIdentity } from '../../support/identities.ts';

const SALT = new Uint8Array(16).fill(7);

function repository(): AccessRepository {
  return new AccessRepository(Store.open(':memory:', MIGRATIONS));
}

function entry(id: string, aid: number, more: Partial<AidEntry> = {}): AidEntry {
  return { id, aid: testAid(aid), label: null, createdAt: 1000, expiresAt: null, tools: null, ...more };
}

function secret(id: string, fill: number): SecretEntry {
  return { id, secretHash: new Uint8Array(32).fill(fill), label: null, createdAt: 2000, expiresAt: null };
}

test('a subject without changes has no row', () => {
  assert.equal(repository().load('s'), null);
});

test('finds the subjects with changes', () => {
  const access = repository();
  access.create('s', 'public', SALT);
  access.create('other', 'public', SALT);
  assert.deepEqual(access.changed(['never', 's']), new Set(['s']));
});

test('entries are read as they were stored, in the order of their creation', () => {
  const access = repository();
  access.create('s', 'public', SALT);
  const second = entry('b', 2, { createdAt: 1001, label: 'desk', expiresAt: 5000 });
  access.put('s', 'allow', second);
  access.put('s', 'allow', entry('a', 1));
  access.put('s', 'allow', secret('c', 1));
  access.put('s', 'deny', entry('d', 1));
  access.setPolicy('s', 'deny', null);
  assert.deepEqual(access.load('s'), {
    policy: 'deny',
    policyBefore: null,
    salt: SALT,
    allow: [entry('a', 1), second, secret('c', 1)],
    deny: [entry('d', 1)],
    serviceCallers: [],
  });
});

test('callers of services are stored apart, and deleted with their service', () => {
  const access = repository();
  access.create('s', 'public', SALT);
  const caller = (id: string, n: number, service: string) => {
    const { aid, createdAt } = entry(id, n);
    return { id, aid, createdAt, service, tools: ['read'] };
  };
  for (const one of [caller('a', 1, 'x'), caller('b', 1, 'y'), caller('c', 2, 'y')]) access.putServiceCaller('s', one);
  assert.equal(access.putServiceCaller('s', { ...caller('z', 1, 'x'), tools: null }).id, 'a');
  assert.deepEqual(access.load('s')?.serviceCallers, [
    { ...caller('a', 1, 'x'), tools: null },
    caller('b', 1, 'y'),
    caller('c', 2, 'y'),
  ]);
  assert.deepEqual([access.removeServiceCaller('s', 'c'), access.removeServiceCaller('s', 'c')], [true, false]);
  access.keepServiceCallers('s', ['y']);
  assert.deepEqual(access.load('s')?.serviceCallers, [caller('b', 1, 'y')]);
  access.removeSubject('s');
  assert.equal(access.load('s'), null);
});

test('a policy is stored', () => {
  const access = repository();
  assert.deepEqual(access.create('s', 'public', SALT), SALT);
  assert.equal(access.load('s')?.policy, 'public');
  access.setPolicy('s', 'deny', null);
  assert.equal(access.load('s')?.policy, 'deny');
});

test('creating a row again keeps its policy and salt', () => {
  const access = repository();
  access.create('s', 'deny', SALT);
  assert.deepEqual(access.create('s', 'public', new Uint8Array(16)), SALT);
  const none = { allow: [], deny: [], serviceCallers: [] };
  assert.deepEqual(access.load('s'), { policy: 'deny', policyBefore: null, salt: SALT, ...none });
});

test('the same AID or secret keeps its id and gets the new label and expiry', () => {
  const access = repository();
  access.create('s', 'public', SALT);
  access.put('s', 'allow', entry('a', 1));
  const again = access.put('s', 'allow', entry('z', 1, { label: 'new', expiresAt: 9, createdAt: 3000 }));
  assert.deepEqual(again, entry('a', 1, { label: 'new', expiresAt: 9 }));
  access.put('s', 'allow', secret('b', 1));
  assert.equal(access.put('s', 'allow', { ...secret('y', 1), label: 'x' }).id, 'b');
  assert.equal(access.load('s')?.allow.length, 2);
});

test('subjects are separate, and are deleted with all their entries', () => {
  const access = repository();
  for (const subject of ['s', 't']) {
    access.create(subject, 'public', SALT);
    access.put(subject, 'deny', entry(`d-${subject}`, 1));
  }
  assert.equal(access.remove('s', 'deny', 'd-t'), false);
  assert.equal(access.remove('t', 'allow', 'd-t'), false);
  access.removeSubject('s');
  assert.equal(access.load('s'), null);
  assert.equal(access.remove('t', 'deny', 'd-t'), true);
  assert.deepEqual(access.load('t')?.deny, []);
});

test('an entry requires the row of its subject', () => {
  assert.throws(() => repository().put('s', 'allow', entry('a', 1)));
});

/** Adds an agent to a database of any schema. */
function addAgent(store: Store, delegation: Delegation): void {
  const { agent, operationalKey, issuedAt, expiresAt } = delegation;
  store.run`
    INSERT INTO agents
      (aid, key_name, operational_key, delegation, issued_at, expires_at, service_tcp, registered_at, heartbeat_at)
    VALUES (${agent}, ${agent}, ${operationalKey}, ${encodeDelegation(delegation)}, ${issuedAt}, ${expiresAt},
      '', 1000, 1000)`;
}

/** Creates lists for the node and one of its agents. */
function nodeWithAgent(store: Store): { access: AccessRepository; agents: AgentStore; aid: Aid } {
  const access = new AccessRepository(store);
  const agents = new AgentStore(store);
  const { aid, delegation } = newIdentity();
  addAgent(store, delegation);
  for (const subject of [aid, 'node']) {
    access.create(subject, 'deny', SALT);
    access.put(subject, 'allow', entry(`a-${subject}`, 1));
  }
  return { access, agents, aid };
}

test('the list of an agent is deleted with it, in the same transaction', () => {
  const { access, agents, aid } = nodeWithAgent(Store.open(':memory:', MIGRATIONS));
  agents.delete(aid);
  assert.equal(access.load(aid), null);
  assert.equal(access.remove(aid, 'allow', `a-${aid}`), false);
  assert.equal(access.load('node')?.allow.length, 1);
});
