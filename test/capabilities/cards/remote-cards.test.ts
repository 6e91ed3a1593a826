/** Verification and caching of cards from other nodes. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { CardAdmission, type ProfileCard, RemoteCards } from '../../../src/capabilities/cards/remote-cards.ts';
import { canonicalJson } from '../../../src/foundation/cards/canonical-json.ts';
import { type CardSigner, signCard } from '../../../src/foundation/cards/signature.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { verifyDelegation } from '../../../src/foundation/identity/delegation-verifier.ts';
import { CardStore } from '../../../src/foundation/store/cards.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { localIdentity, newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

const T0 = Date.UTC(2026, 0, 1) / 1000;
const alice = newIdentity();
const { signal } = new AbortController();

function objectOf(signer: CardSigner, name: string, signedAt: number): { id: string; bytes: Buffer } {
  const bytes = Buffer.from(canonicalJson(signCard({ name, skills: [{ id: 'x' }] }, signer, signedAt)));
  return { id: createHash('sha256').update(bytes).digest('hex'), bytes };
}

/** A network in which Alice's profile names a card or is unavailable. */
class World {
  readonly clock = new TestClock();
  readonly store = new CardStore(Store.open(':memory:', MIGRATIONS));
  named: ProfileCard | null = null;
  /** The response of Alice's node, or an error if it is unreachable. */
  held: Buffer | SvcError = new SvcError('connect_failed');
  newestDelegation = 0;
  readonly cards = new RemoteCards({
    clock: this.clock,
    store: this.store,
    own: () => null,
    admission: new CardAdmission({
      clock: this.clock,
      store: this.store,
      verifyDelegation,
      newestDelegation: () => this.newestDelegation,
      serviceOf: async () => null,
    }),
    profileCard: async () => this.named,
    read: async () => {
      if (this.held instanceof SvcError) throw this.held;
      return this.held;
    },
  });

  get() {
    return this.cards.get(alice.aid, alice.aid, signal);
  }

  offer({ id, bytes }: { readonly id: string; readonly bytes: Buffer }): void {
    [this.named, this.held] = [{ objectId: id }, bytes];
  }

  refuses(reason: string): Promise<void> {
    return assert.rejects(this.get(), (error) => {
      assert.ok(error instanceof SvcError, String(error));
      assert.deepEqual([error.code, error.details?.['reason']], ['bad_card', reason]);
      return true;
    });
  }
}

test('a card is fetched, cached while its node is unreachable, and dropped when the profile names none', async () => {
  const world = new World();
  await assert.rejects(world.get(), { code: 'not_found' });
  world.offer(objectOf(localIdentity(alice), 'Alice', T0));
  const { card, isCurrent } = await world.get();
  assert.deepEqual([card['name'], isCurrent], ['Alice', true]);
  // The same card is not fetched again.
  world.held = new SvcError('internal');
  assert.equal((await world.get()).isCurrent, true);
  world.named = null;
  assert.equal((await world.get()).isCurrent, false);
  world.named = { objectId: '1'.repeat(64) };
  world.held = new SvcError('connect_failed');
  assert.deepEqual([(await world.get()).card['name'], (await world.get()).isCurrent], ['Alice', false]);
  world.held = new SvcError('access_denied');
  await assert.rejects(world.get(), { code: 'access_denied' });
  world.named = { objectId: null };
  await assert.rejects(world.get(), { code: 'not_found' });
});

test('a replaced card, an older one and one of an old key are rejected, and a newer one is accepted', async () => {
  const world = new World();
  world.offer(objectOf(localIdentity(alice), 'Alice', T0 + 1));
  await world.get();
  world.offer(objectOf(localIdentity(newIdentity()), 'Mallory', T0 + 2));
  await world.refuses('swapped');
  world.offer(objectOf(localIdentity(alice), 'Alice before', T0));
  await world.refuses('replayed');
  world.offer(objectOf(localIdentity(alice), 'Alice after', T0 + 2));
  assert.equal((await world.get()).card['name'], 'Alice after');
  world.newestDelegation = T0 + 5;
  await world.refuses('replayed');
  world.named = null;
  await world.refuses('replayed');
});

test('invalid cards are rejected from every sender', async () => {
  const world = new World();
  for (const [text, reason] of [
    ['', 'not_a_card'],
    ['[]', 'not_a_card'],
    ['{}', 'unsigned'],
    [`{"a":"${'x'.repeat(70_000)}"}`, 'too_large'],
  ] as const) {
    world.offer({ id: '2'.repeat(64), bytes: Buffer.from(text) });
    await world.refuses(reason);
  }
  world.offer({ id: '3'.repeat(64), bytes: Buffer.from([0xff, 0xfe, 0x7b, 0, 0x7d, 0]) });
  await world.refuses('not_a_card');
});
