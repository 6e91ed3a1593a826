import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoteKeys } from '../../../src/capabilities/notes/note-keys.ts';
import { RecipientKeys } from '../../../src/capabilities/notes/note-links.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { encodeEncryptionKeysPayload } from '../../../src/foundation/records/payloads.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { localIdentity, newIdentity } from '../../support/identities.ts';
import { MemorySecrets } from '../../support/mail-world.ts';
import { testRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const { signal } = new AbortController();

/** The payload of a key record. */
function keyPayload(byte: number): Uint8Array {
  return encodeEncryptionKeysPayload([{ publicKey: new Uint8Array(32).fill(byte), createdAt: 1 }]);
}

/** The answers of other nodes, and the number of requests. */
interface World {
  records: SignedRecord[];
  answer: Uint8Array | null;
  asked: number;
  looks: number;
  newest: number;
  /** The error of a request to the recipient's node. */
  trouble: 'connect_failed' | 'network_unavailable';
}

/** Alice here, Bob elsewhere. */
function setUp() {
  const [alice, bob] = [newIdentity(), newIdentity()];
  const clock = new TestClock();
  const identity = (aid: string) => (aid === alice.aid ? localIdentity(alice) : null);
  const keys = new NoteKeys(new MemorySecrets(), clock, identity);
  const world: World = { records: [], answer: null, asked: 0, looks: 0, newest: 0, trouble: 'connect_failed' };
  const recipients = new RecipientKeys({
    keys,
    clock,
    identity,
    network: {
      list: async () => {
        world.looks++;
        return world.records;
      },
    },
    newestDelegation: () => world.newest,
    links: {
      askKeys: async () => {
        world.asked++;
        if (world.answer === null) throw new SvcError(world.trouble);
        return world.answer;
      },
    },
  });
  const find = async (anew = false) => (await recipients.find(alice.aid, bob.aid, anew, signal))[0];
  const published = (byte: number) => testRecord(bob, RECORD.encryptionKeys, { payload: keyPayload(byte) });
  return { alice, bob, clock, keys, recipients, world, find, published };
}

test('the published key is used, and cached for a while', async () => {
  const { clock, world, find, published } = setUp();
  world.records = [testRecord(newIdentity(), RECORD.encryptionKeys, { payload: keyPayload(9) }), published(1)];
  assert.equal(await find(), 1);
  world.records = [published(2)];
  clock.jump(10 * 60_000 - 1);
  assert.equal(await find(), 1);
  clock.jump(1);
  assert.equal(await find(), 2);
  assert.deepEqual([world.looks, world.asked], [2, 0]);
});

test('the keys of local agents are known', async () => {
  const { alice, keys, recipients, world } = setUp();
  const found = await recipients.find(alice.aid, alice.aid, false, signal);
  assert.deepEqual(found, keys.current(alice.aid).publicKey);
  assert.equal(world.looks, 0);
});

test('a key under a replaced delegation is not used, and the recipient names a changed key', async () => {
  const { bob, world, find, published } = setUp();
  world.records = [published(1)];
  world.answer = keyPayload(2);
  assert.equal(await find(true), 2);
  assert.equal(world.looks, 0);
  const other = setUp();
  other.world.records = [other.published(1)];
  other.world.newest = bob.delegation.issuedAt + 1;
  other.world.answer = keyPayload(3);
  assert.equal(await other.find(), 3);
});

test('an agent without a published key that does not answer gets no notes', async () => {
  const { world, find } = setUp();
  await assert.rejects(find(), { code: 'resolve_failed' });
  world.answer = new Uint8Array([1, 2, 3]);
  await assert.rejects(find(), { code: 'resolve_failed' });
  assert.equal(world.asked, 2);
});

test('a recipient is not reported as missing while the network does not answer', async () => {
  const { world, find } = setUp();
  world.trouble = 'network_unavailable';
  await assert.rejects(find(), { code: 'network_unavailable' });
});
