/** Mailboxes in a network with more nodes than a mailbox has replicas. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import { mailboxKey } from '../../../src/foundation/records/keys.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { partOf } from '../../../src/network/records/key-rows.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity, type TestIdentity } from '../../support/identities.ts';
import { NodeRequestHub } from '../../support/memory-node-requests.ts';
import { noteRecord, removableNote } from '../../support/records.ts';
import { DhtTestnet, dhtNode, reached } from '../../support/testnet-dht.ts';

test('every node lists the large notes of a mailbox, whether it stores them or not', async () => {
  await using net = await DhtTestnet.start(40);
  const recipient = newIdentity();
  const key = mailboxKey(recipient.aid);
  const notes = [];
  for (let i = 0; i < 3; i++) {
    const note = noteRecord(recipient, 3000);
    await eventually(
      'there are enough replicas',
      async () => (await net.at(i).dht.put(key, note.record)).replicas >= 8,
    );
    notes.push(note.record.aid);
    for (const { dht } of net.nodes)
      await eventually('the notes are listed', async () => (await dht.list(key, [RECORD.note])).length === i + 1);
  }
});

test('a removed note disappears from every node, and a reader that has all others fetches nothing', async () => {
  await using net = await DhtTestnet.start(14);
  const recipient = newIdentity();
  const key = mailboxKey(recipient.aid);
  const notes = Array.from({ length: 25 }, () => {
    const token = new Uint8Array(randomBytes(16));
    return { token, ...removableNote(recipient, token) };
  });
  const allKeep = (count: number): boolean => net.nodes.every(({ dht }) => dht.usage().records === count);
  // Records that a busy machine loses are sent again.
  await eventually('every node stores all notes', async () => {
    for (const [i, { record }] of notes.entries()) await net.at(i % 7).dht.put(key, record);
    return allKeep(notes.length);
  });
  const [first, ...others] = notes.map(({ record, token }) => ({ digest: recordDigest(record.encoded), token }));
  assert.ok(first);
  const reader = net.at(-1).dht;
  await eventually('no node stores the removed note', async () => {
    await reader.removeNotes(key, [first]);
    return allKeep(others.length);
  });
  for (const { dht } of net.nodes) assert.equal((await dht.list(key, [RECORD.note])).length, 24);
  const known = new Set(others.map(({ digest }) => toHex(digest)));
  const before = net.hub.answered;
  assert.deepEqual(await reader.list(key, [RECORD.note], { known }), []);
  assert.equal(net.hub.answered, before);
});

test('after a partition every node lists the notes of both sides, independent of the sizes of the sides', async () => {
  await using small = await DhtTestnet.start(2);
  await using large = await DhtTestnet.start(3);
  const recipient = newIdentity();
  const key = mailboxKey(recipient.aid);
  const fill = async (net: DhtTestnet, count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const { record } = noteRecord(recipient, 300);
      await eventually('every other node stores it', async () => {
        return (await net.at(0).dht.put(key, record)).replicas === net.nodes.length - 1;
      });
    }
  };
  await fill(small, 18);
  await fill(large, 20);
  small.at(0).dht.addNode(large.at(0).dht.address);
  for (const { dht } of [...small.nodes, ...large.nodes])
    await eventually('all notes are listed', async () => (await dht.list(key, [RECORD.note])).length === 38);
});

/**
 * Two notes for one recipient in the same one of 3,840 parts. A fetch of 18 notes begins with 15 parts and halves them.
 */
function notesOfOnePart(recipient: TestIdentity): [SignedRecord, SignedRecord] {
  const byPart = new Map<number, SignedRecord>();
  for (;;) {
    const { record } = noteRecord(recipient, 300);
    const part = partOf(record) % 3840;
    const other = byPart.get(part);
    if (other !== undefined) return [other, record];
    byPart.set(part, record);
  }
}

test('a reader limited to datagrams lists all notes, even if their part numbers are similar', async () => {
  await using net = await DhtTestnet.start(2);
  const recipient = newIdentity();
  const key = mailboxKey(recipient.aid);
  const others = Array.from({ length: 16 }, () => noteRecord(recipient, 300).record);
  for (const record of [...notesOfOnePart(recipient), ...others])
    await eventually('the other node stores it', async () => (await net.at(0).dht.put(key, record)).replicas === 1);
  // A node of another hub cannot connect to these.
  const reader = dhtNode(new NodeRequestHub(), { bootstrap: [net.at(0).dht.address] });
  await reader.dht.start();
  net.nodes.push(reader);
  await reached(reader.dht, ({ peers }) => peers === 2);
  assert.equal((await reader.dht.list(key, [RECORD.note])).length, 18);
});
