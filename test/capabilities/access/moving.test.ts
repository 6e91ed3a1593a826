/** Export and import of access lists: complete, and invalid parts are rejected with their path. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_SECRETS } from '../../../src/capabilities/access/access-lists.ts';
import { exportAccess, importAccess } from '../../../src/capabilities/access/moving.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { AccessPart } from '../../../src/foundation/moving/agent-document.ts';
import { AccessRepository } from '../../../src/foundation/store/access.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';

const AGENT = testAid(1);
const hash = (n: number): string => n.toString(16).padStart(64, '0');

const PART: AccessPart = {
  default: 'deny',
  salt_hex: '0a'.repeat(16),
  allow: [
    { aid: testAid(2), label: 'a friend', created_at: 1000, expires_at: 9000 },
    { secret_hash_hex: hash(7), created_at: 2000 },
  ],
  deny: [{ aid: testAid(3), created_at: 3000 }],
};

function repository(): AccessRepository {
  return new AccessRepository(Store.open(':memory:', MIGRATIONS));
}

/** The path of the first invalid part. */
function refusal(part: AccessPart): unknown {
  try {
    importAccess(repository(), AGENT, part);
  } catch (error) {
    assert.ok(error instanceof SvcError && error.code === 'bad_file');
    return error.details?.['path'];
  }
  return 'nowhere';
}

test('an imported access list equals the exported one, except for its ids', () => {
  const there = repository();
  const keep = importAccess(there, AGENT, PART);
  assert.equal(there.load(AGENT), null, 'nothing is stored before the whole list is valid');
  keep();
  assert.deepEqual(exportAccess(there, AGENT), PART);
  const ids = there.load(AGENT)?.allow.map(({ id }) => id) ?? [];
  assert.equal(new Set(ids).size, 2);
});

test('an agent without settings exports no access list', () => {
  const there = repository();
  assert.equal(exportAccess(there, AGENT), undefined);
  importAccess(there, AGENT, undefined)();
  assert.equal(there.load(AGENT), null);
});

test('invalid parts are rejected with their path', () => {
  const [friend, secret] = PART.allow;
  assert.ok(friend && secret);
  const both = { ...friend, ...secret };
  assert.equal(refusal(PART), 'nowhere');
  assert.equal(refusal({ ...PART, allow: [{ created_at: 1 }] }), '/access/allow/0');
  assert.equal(refusal({ ...PART, allow: [friend, both] }), '/access/allow/1');
  assert.equal(refusal({ ...PART, allow: [{ ...friend, aid: 'aid1nonsense' }] }), '/access/allow/0/aid');
  assert.equal(refusal({ ...PART, deny: [{ aid: 'aid1nonsense', created_at: 1 }] }), '/access/deny/0/aid');
  assert.equal(refusal({ ...PART, allow: [secret, secret] }), '/access/allow');
  assert.equal(refusal({ ...PART, allow: [friend, friend] }), '/access/allow');
  assert.equal(refusal({ ...PART, deny: [...PART.deny, ...PART.deny] }), '/access/deny');
});

test('imports at most the maximum number of secrets', () => {
  const secrets = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ secret_hash_hex: hash(i), created_at: 1 }));
  const friends = [{ aid: testAid(2), created_at: 1 }];
  assert.equal(refusal({ ...PART, allow: [...secrets(MAX_SECRETS), ...friends] }), 'nowhere');
  assert.equal(refusal({ ...PART, allow: secrets(MAX_SECRETS + 1) }), '/access/allow');
});
