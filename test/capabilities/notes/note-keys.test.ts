import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { KEY_PERIOD_S, KEY_RETENTION_S, NoteKeys } from '../../../src/capabilities/notes/note-keys.ts';
import { MAX_KEPT_NOTE_KEYS } from '../../../src/foundation/domain/notes.ts';
import { MAX_UNIX_S } from '../../../src/foundation/domain/time.ts';
import { KeyStore } from '../../../src/foundation/keys/key-store.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { encryptionKeyId } from '../../../src/foundation/records/payloads.ts';
import { delegateAnew, localIdentity, newIdentity, type TestIdentity } from '../../support/identities.ts';
import { MemorySecrets } from '../../support/mail-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

function setUp() {
  const agent = newIdentity();
  const vault = new MemorySecrets();
  const clock = new TestClock();
  const keys = new NoteKeys(vault, clock, (aid) => (aid === agent.aid ? localIdentity(agent) : null));
  return { agent, aid: agent.aid, vault, clock, keys };
}

test('an export of keys is imported completely or not at all', () => {
  const { aid, vault, keys } = setUp();
  const good = { privateKeyHex: 'ab'.repeat(32), createdAt: MAX_UNIX_S };
  const bad = [
    { ...good, privateKeyHex: 'ab'.repeat(31) },
    { ...good, privateKeyHex: 'ab'.repeat(33) },
    { ...good, privateKeyHex: 'no hex' },
    { ...good, createdAt: -1 },
    { ...good, createdAt: MAX_UNIX_S + 1 },
  ];
  for (const one of bad) assert.throws(() => keys.import(aid, [good, one]), { code: 'bad_key' }, JSON.stringify(one));
  const many = Array.from({ length: MAX_KEPT_NOTE_KEYS + 1 }, () => good);
  assert.throws(() => keys.import(aid, many), { code: 'too_large' });
  assert.equal(vault.secrets.size, 0);
  const own = keys.export(aid);
  keys.import(aid, [good]);
  keys.import(aid, [good]);
  assert.deepEqual(keys.export(aid), [...own, good]);
});

test('stored keys are read again, and damage is reported', () => {
  const { aid, vault, clock, keys } = setUp();
  const derived = keys.export(aid);
  keys.secure(aid);
  const again = () => new NoteKeys(vault, clock, () => null);
  const stored = again().export(aid);
  // The oldest one may be past its retention.
  assert.ok(stored.length >= 2);
  assert.deepEqual(stored, derived.slice(0, stored.length));
  const [name = '', secret = new Uint8Array()] = [...vault.secrets][0] ?? [];
  vault.secrets.set(name, secret.subarray(0, secret.length - 1));
  assert.throws(() => again().export(aid), { code: 'key_damaged' });
  assert.throws(() => again().current(aid), { code: 'not_found' });
});

test('a key needs no file while it derives from the operational key', () => {
  const { agent, aid, vault, clock, keys } = setUp();
  const { publicKey } = keys.current(aid);
  assert.equal(vault.secrets.size, 0);
  const elsewhere = new NoteKeys(new MemorySecrets(), clock, () => localIdentity(agent));
  assert.deepEqual(elsewhere.current(aid).publicKey, publicKey);
  assert.ok(elsewhere.opener(aid, encryptionKeyId(publicKey)) !== null);
});

test('the key changes every period, and the keys of two earlier periods open notes', () => {
  const { agent, aid, vault, clock, keys } = setUp();
  const published: Uint8Array[] = [];
  for (let i = 0; i < 4; i++) {
    published.push(keys.current(aid).publicKey);
    clock.jump(KEY_PERIOD_S * 1000);
  }
  published.push(keys.current(aid).publicKey);
  const restarted = new NoteKeys(vault, clock, () => localIdentity(agent));
  assert.deepEqual(
    published.map((key) => restarted.opener(aid, encryptionKeyId(key)) !== null),
    [false, false, true, true, true],
  );
});

test('keys are on disk before their operational key is replaced, until no note can need them', async (t) => {
  const directory = join(temporaryDirectory(t), 'keys');
  const agent = newIdentity();
  const clock = new TestClock();
  const open = async (identity: TestIdentity) =>
    new NoteKeys(await KeyStore.open({ directory }, { log: silentLog }), clock, () => localIdentity(identity));
  const before = await open(agent);
  const earlier = before.current(agent.aid);
  clock.jump((earlier.createdAt + KEY_PERIOD_S) * 1000 - clock.now());
  const { publicKey } = before.current(agent.aid);
  before.secure(agent.aid);
  const rotated = delegateAnew(agent.master, agent.delegation.issuedAt + 10);
  const after = await open(rotated);
  assert.notDeepEqual(after.current(agent.aid).publicKey, publicKey);
  const opens = (key: Uint8Array): boolean => after.opener(agent.aid, encryptionKeyId(key)) !== null;
  assert.ok(opens(publicKey) && opens(earlier.publicKey));
  clock.jump(KEY_RETENTION_S * 1000);
  after.current(agent.aid);
  assert.ok(opens(publicKey));
  clock.jump(1000);
  after.current(agent.aid);
  assert.ok(!opens(publicKey) && !opens(earlier.publicKey));
});
