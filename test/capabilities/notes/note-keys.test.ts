import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { NoteKeys } from '../../../src/capabilities/notes/note-keys.ts';
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
  const keys = new NoteKeys({
    vault,
    clock: new TestClock(),
    identity: (aid) => (aid === agent.aid ? localIdentity(agent) : null),
  });
  return { aid: agent.aid, vault, keys };
}

test('an export of keys is taken in whole, or not at all', () => {
  const { aid, keys } = setUp();
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
  assert.deepEqual(keys.export(aid), []);
  keys.import(aid, [good]);
  keys.import(aid, [good]);
  assert.deepEqual(keys.export(aid), [good]);
});

test('what is kept of keys is read again, and damage is said', () => {
  const { aid, vault, keys } = setUp();
  const { publicKey } = keys.current(aid);
  const [name = '', secret = new Uint8Array()] = [...vault.secrets][0] ?? [];
  vault.secrets.set(name, secret.subarray(0, secret.length - 1));
  assert.deepEqual(keys.current(aid).publicKey, publicKey, 'it is in memory');
  const again = new NoteKeys({ vault, clock: new TestClock(), identity: () => null });
  assert.throws(() => again.export(aid), { code: 'key_damaged' });
  assert.throws(() => again.current(aid), { code: 'not_found' });
});

test('a key is on the disk before the operational key goes from which it follows', async (t) => {
  const directory = join(temporaryDirectory(t), 'keys');
  const agent = newIdentity();
  const clock = new TestClock();
  const open = () => KeyStore.open({ directory }, { log: silentLog });
  const keysOf = (vault: KeyStore, identity: TestIdentity) =>
    new NoteKeys({ vault, clock, identity: () => localIdentity(identity) });
  const before = keysOf(await open(), agent);
  const { publicKey } = before.current(agent.aid);
  // As after a power cut: another process finds no file yet, and makes the same key again.
  assert.deepEqual(keysOf(await open(), agent).current(agent.aid).publicKey, publicKey);
  before.secure(agent.aid);
  const rotated = delegateAnew(agent.master, agent.delegation.issuedAt + 10);
  const after = keysOf(await open(), rotated);
  assert.notDeepEqual(after.current(agent.aid).publicKey, publicKey);
  assert.ok(after.opener(agent.aid, encryptionKeyId(publicKey)) !== null);
});
