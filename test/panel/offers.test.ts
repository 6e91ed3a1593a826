import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Offer, offersOf, SeenOffers, servicesToAsk } from '../../panel/src/lib/offers.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { testAid } from '../support/agents.ts';

const NOW = Date.UTC(2026, 0, 1);
const ANN = testAid(1);
const BEN = testAid(2);

function offer(aid: Aid, service: string, more: Partial<Offer> = {}): Offer {
  const expires_at = new Date(NOW + 3_600_000).toISOString();
  return { aid, service, name: '', brief: '', protocols: [], tags: [], meta: {}, seq: 1, expires_at, ...more };
}

test('the page of an agent knows what searches have found of it, until that expires', () => {
  const seen = new SeenOffers();
  const gone = { expires_at: new Date(NOW).toISOString() };
  seen.note([offer(ANN, 'lang.translate'), offer(BEN, 'lang.translate'), offer(ANN, 'lang.old', gone)]);
  seen.note([offer(ANN, 'lang.translate', { brief: 'newer' })]);
  assert.deepEqual(
    seen.of(ANN, NOW).map(({ service, brief }) => [service, brief]),
    [['lang.translate', 'newer']],
  );
  seen.note(Array.from({ length: 500 }, (_, n) => offer(BEN, `other.${n}`)));
  assert.deepEqual(seen.of(ANN, NOW), [], 'the oldest are forgotten');
  assert.equal(seen.of(BEN, NOW).length, 500);
});

test('searches each possible service once, with valid names and a limit', () => {
  assert.deepEqual(servicesToAsk(['lang.translate', 'Translate texts', '', 'lang.translate', 'chat']), [
    'lang.translate',
    'chat',
  ]);
  assert.equal(servicesToAsk(Array.from({ length: 40 }, (_, n) => `s${n}`)).length, 16);
});

test('lists offers found now, then earlier ones, of this agent only', () => {
  const found = [offer(ANN, 'b', { brief: 'now' }), offer(BEN, 'a')];
  const seen = [offer(ANN, 'b', { brief: 'before' }), offer(ANN, 'a')];
  assert.deepEqual(
    offersOf(ANN, found, seen).map(({ service, brief }) => [service, brief]),
    [
      ['a', ''],
      ['b', 'now'],
    ],
  );
  assert.deepEqual(offersOf(ANN, [], []), []);
});
