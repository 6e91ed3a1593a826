import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { exportCard, importCard } from '../../../src/capabilities/cards/moving.ts';
import { OwnCards } from '../../../src/capabilities/cards/own-cards.ts';
import { ObjectService } from '../../../src/capabilities/objects/object-service.ts';
import { MAX_CARD_BYTES } from '../../../src/foundation/cards/card.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { verifyDelegation } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { CardStore, UNSIGNED } from '../../../src/foundation/store/cards.ts';
import { ObjectRepository } from '../../../src/foundation/store/objects.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { delegateAnew, localIdentity, newIdentity, type TestIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const CARD = { protocolVersion: '0.3.0', url: 'http://127.0.0.1:8080/a2a', name: 'Mover', skills: [] };

/** A node with one agent. */
function homeOf(t: TestContext, identity: TestIdentity) {
  const clock = new TestClock();
  const store = Store.open(':memory:', MIGRATIONS);
  t.after(() => store.close());
  const { aid, delegation } = identity;
  new AgentStore(store).put({ keyName: 'key', delegation, serviceTcp: '', registeredAt: clock.now() });
  const cards = new CardStore(store);
  const objects = new ObjectService(
    { filesRoot: temporaryDirectory(t) },
    new ObjectRepository(store),
    clock,
    silentLog,
  );
  /** The object ID in the profile. */
  const named: (string | null)[] = [];
  const home = { fails: false };
  const own = new OwnCards({
    clock,
    log: silentLog,
    store: cards,
    identity: (of) => (of === aid ? localIdentity(identity) : null),
    serviceOf: () => ({ host: '127.0.0.1', port: 8080, tunnels: null }),
    objects,
    setProfileCard: async (_aid, objectId) => {
      if (home.fails) throw new SvcError('not_acknowledged');
      named.push(objectId);
      return { seq: named.length, replicas: 0 };
    },
  });
  const take = (text: string | undefined): void =>
    importCard({ store: cards, now: unixSeconds(clock), verifyDelegation }, aid, text, delegation)();
  return Object.assign(home, { clock, cards, objects, named, own, take });
}

test('a card without its object is stored as an object at the next start, and the profile does not change', async (t) => {
  const identity = newIdentity();
  const { aid } = identity;
  const old = homeOf(t, identity);
  const { objectId } = await old.own.set(aid, CARD);
  const home = homeOf(t, identity);
  home.take(exportCard(old.cards, aid));
  assert.equal(home.own.get(aid).objectId, objectId);
  assert.equal(home.objects.stat(aid, objectId), null);
  await home.own.start();
  await eventually('object stored', () => home.objects.stat(aid, objectId) !== null);
  assert.deepEqual(home.cards.own(aid), old.cards.own(aid));
  assert.deepEqual(home.named, []);
});

test('a card that an earlier key signed is signed again and named in the profile', async (t) => {
  const before = newIdentity();
  const { aid } = before;
  const old = homeOf(t, before);
  const { objectId } = await old.own.set(aid, CARD);
  const home = homeOf(t, delegateAnew(before.master, before.delegation.issuedAt + 1));
  home.take(exportCard(old.cards, aid));
  assert.equal(home.cards.own(aid)?.signedAt, UNSIGNED);
  await home.own.complete(aid);
  const there = home.own.get(aid);
  assert.notEqual(there.objectId, objectId);
  assert.deepEqual(home.named, [there.objectId]);
  assert.notEqual(home.objects.stat(aid, there.objectId), null);
  assert.deepEqual({ ...there.card, signatures: 0 }, { ...old.own.get(aid).card, signatures: 0 });
  // Only once: a complete card does not change.
  await home.own.complete(aid);
  assert.equal(home.named.length, 1);
});

test('a card is published with the address of the agent, and a new one replaces its object', async (t) => {
  const identity = newIdentity();
  const { aid } = identity;
  const { own, objects, named } = homeOf(t, identity);
  assert.equal(own.find(aid), null);
  assert.throws(() => own.get(aid), { code: 'not_found' });
  const foreign = { url: 'http://127.0.0.1:9999/x', protocolBinding: 'JSONRPC' };
  const first = await own.set(aid, { ...CARD, additionalInterfaces: [foreign] });
  assert.deepEqual([first.kind, first.seq, first.card['url']], ['a2a', 1, `svc://${aid}/a2a`]);
  assert.equal(first.left.length, 1, 'an interface of another service is removed');
  assert.notEqual(objects.stat(aid, first.objectId), null);
  const second = await own.set(aid, { ...CARD, name: 'Other' });
  assert.deepEqual(named, [first.objectId, second.objectId]);
  assert.equal(objects.stat(aid, first.objectId), null);
  assert.notEqual(objects.stat(aid, second.objectId), null);
  assert.equal(own.get(aid).objectId, second.objectId);
});

test('a card without a change keeps its object', async (t) => {
  const identity = newIdentity();
  const { aid } = identity;
  const { own, objects } = homeOf(t, identity);
  const { objectId } = await own.set(aid, CARD);
  assert.equal((await own.set(aid, CARD)).objectId, objectId);
  assert.notEqual(objects.stat(aid, objectId), null);
});

test('a deleted card leaves no object and no entry in the profile, even if the owner deleted the object', async (t) => {
  const identity = newIdentity();
  const { aid } = identity;
  const { own, objects, named } = homeOf(t, identity);
  const { objectId } = await own.set(aid, CARD);
  await own.delete(aid);
  assert.equal(objects.stat(aid, objectId), null);
  assert.equal(own.find(aid), null);
  assert.deepEqual(named, [objectId, null]);
  await assert.rejects(own.delete(aid), { code: 'not_found' });
  const again = await own.set(aid, CARD);
  objects.delete(aid, again.objectId);
  await own.delete(aid);
  assert.equal(own.find(aid), null);
});

test('only cards of known kinds and of registered agents are signed', async (t) => {
  const identity = newIdentity();
  const { own, named } = homeOf(t, identity);
  await assert.rejects(own.set(identity.aid, { name: 'x' }), { code: 'bad_card', status: 400 });
  await assert.rejects(own.set(newIdentity().aid, CARD), { code: 'not_found' });
  const large = { ...CARD, description: 'x'.repeat(MAX_CARD_BYTES - 4096) };
  await own.set(identity.aid, large);
  await assert.rejects(own.set(identity.aid, { ...large, description: 'x'.repeat(MAX_CARD_BYTES) }), {
    code: 'bad_card',
  });
  assert.equal(named.length, 1);
});

test('a new key signs the card again, and a failure does not reject', async (t) => {
  const identity = newIdentity();
  const { aid } = identity;
  const home = homeOf(t, identity);
  await home.own.resign(aid);
  assert.deepEqual(home.named, [], 'an agent without a card');
  await home.own.set(aid, CARD);
  home.clock.advance(1000);
  await home.own.resign(aid);
  assert.equal(home.own.get(aid).signedAt, unixSeconds(home.clock));
  assert.equal(home.named.length, 2);
  home.fails = true;
  await home.own.resign(aid);
  await home.own.complete(aid);
});

test('a card that is no card, or that another agent signed, is not imported', async (t) => {
  const [identity, other] = [newIdentity(), newIdentity()];
  const home = homeOf(t, identity);
  const foreign = homeOf(t, other);
  await foreign.own.set(other.aid, CARD);
  assert.equal(exportCard(home.cards, identity.aid), undefined);
  home.take(undefined);
  for (const text of ['nonsense', '{}', '{"name": "x"}', `${exportCard(foreign.cards, other.aid)} `])
    assert.throws(() => home.take(text), { code: 'bad_file' }, text.slice(0, 20));
  assert.throws(() => home.take(exportCard(foreign.cards, other.aid)), { code: 'bad_file' });
  assert.equal(home.cards.own(identity.aid), null);
});
