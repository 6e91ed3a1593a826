import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_WEBHOOKS_PER_ORIGIN,
  PUSH_BOX_LIFE_MS,
  RECEIVED_IDS_LIFE_MS,
  WEBHOOK_LIFE_MS,
} from '../../../src/foundation/domain/push.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { OriginStore } from '../../../src/foundation/store/origins.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store, sha256Hex } from '../../../src/foundation/store/store.ts';
import { WebhookUrlStore } from '../../../src/foundation/store/webhook-urls.ts';
import { WebhookStore } from '../../../src/foundation/store/webhooks.ts';
import { testSecrets } from '../../support/stored-secrets.ts';
import { bytes, storeWithAgents } from './store-with-agents.ts';

const HERE = 'aid1here' as Aid;
const THERE = 'aid1there' as Aid;
const ORIGIN = { id: 'o1', localAid: HERE, remoteAid: THERE, accessToken: undefined, port: 4001, openedAt: 1 };

function webhook(n: number, purpose: string | null = null) {
  return { name: `w${n}`, originId: ORIGIN.id, url: 'http://127.0.0.1:1/hook', purpose };
}

function worldOf(store: Store) {
  const origins = new OriginStore(store, testSecrets());
  origins.save(ORIGIN);
  return {
    store,
    origins,
    webhooks: new WebhookStore(store, testSecrets()),
    boxes: new WebhookUrlStore(store, testSecrets()),
  };
}

test('webhooks are deleted with their local address and survive its changes', () => {
  const { store, origins, webhooks } = worldOf(Store.open(':memory:', MIGRATIONS));
  webhooks.register(webhook(1), 5);
  webhooks.addNotification({ webhook: 'w1', id: 'n1', headers: ['a', 'b'], body: bytes(7, 3) }, 6);
  origins.save({ ...ORIGIN, port: 4002, accessToken: 'secret' });
  assert.deepEqual(origins.list(), [{ ...ORIGIN, port: 4002, accessToken: 'secret' }]);
  assert.deepEqual(webhooks.origins(), [{ id: 'o1', localAid: HERE, remoteAid: THERE, accessToken: 'secret' }]);
  assert.deepEqual(webhooks.next('w1'), {
    seq: 1,
    webhook: 'w1',
    id: 'n1',
    headers: ['a', 'b'],
    body: bytes(7, 3),
    size: 3,
    at: 6,
  });
  assert.ok(webhooks.hasAny(HERE, THERE));
  assert.ok(!webhooks.hasAny(THERE, HERE));
  // Another address with the same port.
  origins.save({ ...ORIGIN, id: 'o2', remoteAid: 'aid1other' as Aid, port: 4002 });
  assert.deepEqual([webhooks.get('w1'), webhooks.waitingTotal().count, origins.list().length], [null, 0, 1]);
  store.close();
});

test('a webhook is registered once per purpose, and the least recently used one is evicted', () => {
  const { webhooks } = worldOf(Store.open(':memory:', MIGRATIONS));
  assert.equal(webhooks.register(webhook(1, 'task'), 1), 'w1');
  assert.equal(webhooks.register(webhook(2, 'task'), 2), 'w1');
  assert.equal(webhooks.register(webhook(3), 3), 'w3');
  for (let n = 4; n <= MAX_WEBHOOKS_PER_ORIGIN + 1; n++) webhooks.register(webhook(n), n);
  assert.equal(webhooks.list(2000).length, MAX_WEBHOOKS_PER_ORIGIN);
  webhooks.addNotification({ webhook: 'w1', id: 'n', headers: [], body: bytes(1) }, 2000);
  webhooks.register(webhook(5000), 2001);
  assert.deepEqual(
    [webhooks.get('w3'), webhooks.get('w1')?.usedAt, webhooks.get('w5000')?.url],
    [null, 2000, webhook(0).url],
  );
});

test('a notification is stored once, also after the webhook received it', () => {
  const { webhooks } = worldOf(Store.open(':memory:', MIGRATIONS));
  webhooks.register(webhook(1), 1);
  webhooks.register(webhook(2), 1);
  const of = (name: string, id: string) => ({ webhook: name, id, headers: [], body: bytes(1, 10) });
  assert.ok(webhooks.addNotification(of('w1', 'n1'), 2));
  assert.ok(!webhooks.addNotification(of('w1', 'n1'), 3));
  assert.ok(webhooks.addNotification(of('w1', 'n2'), 4));
  assert.ok(webhooks.addNotification(of('w2', 'n1'), 5));
  assert.deepEqual(
    webhooks
      .withPending()
      .map(({ name }) => name)
      .sort(),
    ['w1', 'w2'],
  );
  assert.deepEqual(webhooks.waitingFor('w1'), { count: 2, bytes: 20 });
  assert.deepEqual(webhooks.waitingForOrigin('o1'), { count: 3, bytes: 30 });
  const first = webhooks.next('w1');
  assert.ok(first?.id === 'n1');
  webhooks.settle(first.seq, true);
  webhooks.settle(first.seq, true);
  assert.equal(webhooks.get('w1')?.taken, 1);
  assert.ok(webhooks.isKnown('w1', 'n1'));
  assert.ok(!webhooks.addNotification(of('w1', 'n1'), 6));
  assert.equal(webhooks.next('w1')?.id, 'n2');
  assert.deepEqual(webhooks.waitingTotal(), { count: 2, bytes: 20 });
  webhooks.deleteExpired(2 + RECEIVED_IDS_LIFE_MS);
  assert.ok(!webhooks.isKnown('w1', 'n1'));
  assert.ok(webhooks.isKnown('w1', 'n2'), 'pending notifications are kept');
  webhooks.deleteExpired(5 + WEBHOOK_LIFE_MS);
  assert.deepEqual(webhooks.list(10), []);
  webhooks.register(webhook(3), 7);
  webhooks.deletePair(HERE, THERE);
  assert.equal(webhooks.get('w3'), null);
});

test('a webhook URL keeps the order of its notifications, and is deleted with its agent or when it expires', () => {
  const { store, aids } = storeWithAgents(2);
  const boxes = new WebhookUrlStore(store, testSecrets());
  const [called, other] = aids;
  assert.ok(called !== undefined && other !== undefined);
  boxes.open({
    id: 'b1',
    called,
    caller: THERE,
    tokenHash: sha256Hex('t1'),
    openedAt: 1,
    node: 'n',
    source: '192.0.2.1',
  });
  boxes.open({
    id: 'b2',
    called: other,
    caller: THERE,
    tokenHash: sha256Hex('t2'),
    openedAt: 1,
    node: 'n',
    source: '192.0.2.1',
  });
  assert.throws(() =>
    boxes.open({
      id: 'b3',
      called,
      caller: THERE,
      tokenHash: sha256Hex('t3'),
      openedAt: 1,
      node: 'n',
      source: '192.0.2.1',
    }),
  );
  assert.equal(boxes.byToken('t1')?.id, 'b1');
  assert.equal(boxes.byToken(sha256Hex('t1')), null);
  const leave = (box: string, name: string, id: string) =>
    boxes.leave(box, { webhook: name, id, headers: [], body: bytes(1, 5) }, 2);
  for (const [name, id] of [
    ['w1', 'n1'],
    ['w2', 'n2'],
    ['w1', 'n3'],
  ] as const)
    leave('b1', name, id);
  leave('b2', 'w1', 'n4');
  assert.deepEqual(boxes.withPending('b1'), [
    { box: 'b1', webhook: 'w1' },
    { box: 'b1', webhook: 'w2' },
  ]);
  assert.equal(boxes.withPending(null).length, 3);
  assert.deepEqual(boxes.waitingFor('b1', 'w1'), { count: 2, bytes: 10 });
  assert.deepEqual([boxes.waitingIn('b1').count, boxes.waitingTotal().count], [3, 4]);
  const first = boxes.next('b1', 'w1');
  assert.equal(first?.id, 'n1');
  boxes.deleteDelivered(first?.seq ?? 0);
  assert.equal(boxes.next('b1', 'w1')?.id, 'n3');
  boxes.drop('b1', 'w1');
  assert.deepEqual([boxes.next('b1', 'w1'), boxes.next('b1', 'w2')?.id], [null, 'n2']);
  new AgentStore(store).delete(called);
  assert.deepEqual([boxes.get('b1'), boxes.waitingTotal().count], [null, 1]);
  boxes.renew('b2', sha256Hex('t4'), 100);
  assert.deepEqual([boxes.byToken('t2'), boxes.byToken('t4')?.id], [null, 'b2']);
  boxes.deleteExpired(1 + PUSH_BOX_LIFE_MS);
  assert.equal(boxes.get('b2')?.renewedAt, 100);
  boxes.deleteExpired(100 + PUSH_BOX_LIFE_MS);
  assert.deepEqual([boxes.list(), boxes.waitingTotal().count], [[], 0]);
});
