import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ProfileCard, profilePublication, readProfile } from '../../../src/capabilities/directory/cards.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';

const CARD: ProfileCard = {
  name: 'Ada',
  brief: 'Counts.',
  protocols: ['http'],
  skills: ['sums'],
  modalities: ['text'],
  cardHash: 'ab'.repeat(32),
  meta: { x: 1 },
};

test('a decoded card equals the encoded one, also with only one field', () => {
  const { type, name, payload } = profilePublication(CARD);
  assert.deepEqual([type, name], [RECORD.profile, '']);
  assert.deepEqual(readProfile(payload), CARD);
  for (const [member, value] of Object.entries(CARD)) {
    const one: ProfileCard = { [member]: value };
    assert.deepEqual(readProfile(profilePublication(one).payload), one, member);
  }
});

test('an empty or invalid card is null', () => {
  assert.equal(readProfile(profilePublication({}).payload), null);
  assert.equal(readProfile(profilePublication({ meta: {}, skills: [] }).payload), null);
  assert.equal(readProfile(new Uint8Array([1, 2, 3])), null);
});

test('a card that is too large for a record is rejected', () => {
  const meta = { text: 'x'.repeat(10_000) };
  assert.throws(() => profilePublication({ meta }), { code: 'too_large' });
});
