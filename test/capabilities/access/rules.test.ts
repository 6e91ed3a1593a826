import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { decide, initialPolicy, matchesSecret, nextExpiry, rulesOf } from '../../../src/capabilities/access/rules.ts';
import type { AidEntry, SecretEntry, StoredAccess } from '../../../src/foundation/store/access.ts';
import { testAid } from '../../support/agents.ts';

const NOW = 1_000_000;
const SUBJECT = testAid(0);

const expiry = fc.option(fc.constantFrom(NOW - 1, NOW, NOW + 1), { nil: null });
const aidEntry: fc.Arbitrary<AidEntry> = fc.record({
  id: fc.uuid(),
  aid: fc.integer({ min: 1, max: 4 }).map(testAid),
  label: fc.constant(null),
  createdAt: fc.constant(0),
  expiresAt: expiry,
  tools: fc.constant(null),
});
const secretEntry: fc.Arbitrary<SecretEntry> = fc.record({
  id: fc.uuid(),
  secretHash: fc.integer({ min: 1, max: 3 }).map((n) => new Uint8Array(32).fill(n)),
  label: fc.constant(null),
  createdAt: fc.constant(0),
  expiresAt: expiry,
});
const unique = <T>(arbitrary: fc.Arbitrary<T>, key: (entry: T) => string) =>
  fc.uniqueArray(arbitrary, { maxLength: 4, selector: key });
const stored: fc.Arbitrary<StoredAccess> = fc.record({
  policy: fc.constantFrom('public', 'deny'),
  policyBefore: fc.constant(null),
  salt: fc.constant(new Uint8Array(16)),
  allow: fc
    .tuple(
      unique(aidEntry, (entry) => entry.aid),
      unique(secretEntry, (entry) => String(entry.secretHash[0])),
    )
    .map(([aids, secrets]) => [...aids, ...secrets]),
  deny: unique(
    aidEntry.map((entry) => ({ ...entry, expiresAt: null })),
    (entry) => entry.aid,
  ),
  serviceCallers: fc.constant([]),
});
const caller = fc.integer({ min: 1, max: 5 }).map(testAid);

function live(entry: { readonly expiresAt: number | null }): boolean {
  return entry.expiresAt === null || entry.expiresAt > NOW;
}

test('the order is deny, allow by AID, allow by secret, default', () => {
  fc.assert(
    fc.property(stored, caller, (access, who) => {
      const aids = access.allow.filter((entry) => 'aid' in entry);
      const secrets = access.allow.filter((entry) => 'secretHash' in entry);
      let expected = 'deny';
      if (access.deny.some((entry) => entry.aid === who)) expected = 'deny';
      else if (aids.some((entry) => entry.aid === who && live(entry))) expected = 'allow';
      else if (access.policy === 'public') expected = 'allow';
      else if (secrets.some(live)) expected = 'secret';
      assert.equal(decide(rulesOf(SUBJECT, access), who, NOW), expected);
    }),
    { seed: 1, numRuns: 2000 },
  );
});

test('a hash matches only a secret that has not expired', () => {
  fc.assert(
    fc.property(stored, fc.integer({ min: 1, max: 4 }), (access, fill) => {
      const expected = access.allow.some(
        (entry) => 'secretHash' in entry && entry.secretHash[0] === fill && live(entry),
      );
      assert.equal(matchesSecret(rulesOf(SUBJECT, access), new Uint8Array(32).fill(fill), NOW), expected);
    }),
    { seed: 2, numRuns: 2000 },
  );
});

test('a hash of another length matches nothing', () => {
  const access: StoredAccess = {
    policy: 'deny',
    policyBefore: null,
    salt: new Uint8Array(16),
    allow: [{ id: 'a', secretHash: new Uint8Array(32), label: null, createdAt: 0, expiresAt: null }],
    deny: [],
    serviceCallers: [],
  };
  assert.equal(matchesSecret(rulesOf(SUBJECT, access), new Uint8Array(31), NOW), false);
});

test('the next expiry is the earliest future one', () => {
  fc.assert(
    fc.property(stored, (access) => {
      const coming = access.allow.flatMap(({ expiresAt }) =>
        expiresAt !== null && expiresAt > NOW ? [expiresAt] : [],
      );
      const expected = coming.length === 0 ? null : Math.min(...coming);
      assert.equal(nextExpiry(rulesOf(SUBJECT, access), NOW), expected);
    }),
    { seed: 3 },
  );
});

test('by default an agent is public and the administration of the node is closed', () => {
  assert.equal(initialPolicy(SUBJECT), 'public');
  assert.equal(initialPolicy('node'), 'deny');
  assert.equal(decide(rulesOf(SUBJECT, null), testAid(1), NOW), 'allow');
  assert.equal(decide(rulesOf('node', null), testAid(1), NOW), 'deny');
});
