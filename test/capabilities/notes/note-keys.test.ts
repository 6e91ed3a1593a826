import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoteKeys } from '../../../src/capabilities/notes/note-keys.ts';
import { MAX_KEPT_NOTE_KEYS } from '../../../src/foundation/domain/notes.ts';
import { MAX_UNIX_S } from '../../../src/foundation/domain/time.ts';
import { localIdentity, newIdentity } from '../../support/identities.ts';
import { MemorySecrets } from '../../support/mail-world.ts';
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
