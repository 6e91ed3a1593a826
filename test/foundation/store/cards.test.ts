import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { CardStore, MAX_SEEN_CARDS } from '../../../src/foundation/store/cards.ts';
import { storeWithAgents } from './store-with-agents.ts';

const CARD = { card: '{}', objectId: '0'.repeat(64), signedAt: 7 };

test('a card is deleted with its agent', () => {
  const { store, aids } = storeWithAgents(2);
  const cards = new CardStore(store);
  for (const aid of aids) cards.putOwn(aid, CARD);
  const [first, second] = aids;
  assert.ok(first !== undefined && second !== undefined);
  new AgentStore(store).delete(first);
  assert.deepEqual([cards.own(first), cards.own(second)], [null, { ...CARD, aid: second }]);
  cards.putOwn(second, { ...CARD, signedAt: 8 });
  assert.equal(cards.own(second)?.signedAt, 8);
  cards.deleteOwn(second);
  assert.equal(cards.own(second), null);
});

test('the least recently seen cards of other agents are evicted', () => {
  const { store } = storeWithAgents(0);
  const cards = new CardStore(store);
  // Not real AIDs, because generating the keys would take seconds.
  const agent = (n: number) => `aid1${n}` as Aid;
  for (let n = 0; n <= MAX_SEEN_CARDS; n++) cards.putSeen(agent(n), CARD, n);
  assert.deepEqual([cards.seen(agent(0)), cards.seen(agent(1))], [null, { ...CARD, aid: agent(1), seenAt: 1 }]);
  cards.putSeen(agent(1), { ...CARD, signedAt: 9 }, MAX_SEEN_CARDS + 1);
  cards.putSeen(agent(0), CARD, MAX_SEEN_CARDS + 2);
  assert.deepEqual([cards.seen(agent(1))?.signedAt, cards.seen(agent(2))], [9, null]);
});
