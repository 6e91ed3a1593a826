/** Other agents can read the card of an agent that moved here, even if the daemon was killed during the import. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { exportCard, importCard } from '../../../src/capabilities/cards/moving.ts';
import { OwnCards } from '../../../src/capabilities/cards/own-cards.ts';
import { ObjectService } from '../../../src/capabilities/objects/object-service.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
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
  const own = new OwnCards({
    clock,
    log: silentLog,
    store: cards,
    identity: (of) => (of === aid ? localIdentity(identity) : null),
    serviceOf: () => ({ host: '127.0.0.1', port: 8080, tunnels: null }),
    objects,
    setProfileCard: async (_aid, objectId) => {
      named.push(objectId);
      return { seq: named.length, replicas: 0 };
    },
  });
  const take = (text: string | undefined): void =>
    importCard({ store: cards, now: unixSeconds(clock), verifyDelegation }, aid, text, delegation)();
  return { cards, objects, named, own, take };
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
