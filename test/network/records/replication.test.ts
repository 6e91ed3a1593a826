/** Records outlive the nodes that stored them first: a network with nodes that join and leave. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import { agentKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { MAX_NOTES_PER_SENDER } from '../../../src/network/records/record-store.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import { endpointRecord, largeRecord, type Published, removableNote, testRecord } from '../../support/records.ts';
import { scaled } from '../../support/scale.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { DhtTestnet, type TestNode } from '../../support/testnet-dht.ts';

const HOUR_MS = 3600_000;
const DAY_S = 24 * 3600;
/** More than the interval of the replication. */
const LOOK_MS = 61_000;
/** Replicas of a record in a large network. */
const REPLICAS = 8;
/** Nodes that receive a record. In a larger network, some nodes do not. */
const CIRCLE = 16;
/** Nodes of the network, all of which are replaced. */
const NODES = scaled(18, 24);

/** How many of these nodes store a record. */
function copies(nodes: readonly TestNode[], { record }: Published): number {
  const digest = recordDigest(record.encoded);
  return nodes.filter(({ storeFile }) => {
    using database = new DatabaseSync(storeFile, { readOnly: true });
    return database.prepare('SELECT 1 FROM records WHERE digest = ?').get(digest) !== undefined;
  }).length;
}

function rows(nodes: readonly TestNode[]): number {
  return nodes.reduce((sum, { dht }) => sum + dht.usage().records, 0);
}

/** Time between two looks if this process has nothing else to do, milliseconds, and looks that may come later. */
const ON_TIME_MS = 30;
const MAX_LATE_LOOKS = 20;

/**
 * Advances the clock in steps until the condition is true. Each step waits until the answers to the requests of the last
 * one were handled, because it lets open requests time out.
 */
async function advanceUntil(clock: LeapClock, what: string, holds: () => boolean): Promise<void> {
  let lookedAt = performance.now();
  let lateLooks = 0;
  await eventually(what, () => {
    if (holds()) return true;
    const isLate = performance.now() - lookedAt > ON_TIME_MS;
    lateLooks = isLate ? lateLooks + 1 : 0;
    if (!isLate || lateLooks > MAX_LATE_LOOKS) {
      lateLooks = 0;
      clock.leap(LOOK_MS);
    }
    lookedAt = performance.now();
    return false;
  });
}

async function replace(net: DhtTestnet, node: TestNode, clock: LeapClock, storeIn: string): Promise<void> {
  await net.add({ clock, storeIn, bootstrap: [net.at(-1).dht.address] });
  await net.kill(node);
}

async function isFound({ dht }: TestNode, { key, record }: Published): Promise<boolean> {
  const found = await dht.list(key, [record.type]);
  return found.some((one) => Buffer.compare(one.encoded, record.encoded) === 0);
}

test('notes and records of an absent publisher outlive every node that stored them, and a removed note stays removed', async (t) => {
  const clock = new LeapClock();
  const timestamp = Math.floor(clock.now() / 1000);
  const storeIn = temporaryDirectory(t);
  await using net = await DhtTestnet.start(NODES, { clock, storeIn });
  const owner = newIdentity(timestamp - 60);
  const recipient = newIdentity(timestamp - 60);
  const week = { timestamp, ttl: 7 * DAY_S };
  const token = new Uint8Array(randomBytes(16));
  const removed = removableNote(recipient, token, week);
  const keys = testRecord(owner, RECORD.encryptionKeys, { timestamp, ttl: 30 * DAY_S, payload: new Uint8Array(50) });
  const lasting: Published[] = [
    removableNote(recipient, new Uint8Array(randomBytes(16)), week),
    { key: agentKey(owner.aid), record: keys },
    largeRecord(owner, { timestamp, ttl: 14 * DAY_S }),
  ];
  const publisher = net.at(3);
  for (const { key, record } of [...lasting, removed]) assert.ok((await publisher.dht.put(key, record)).replicas > 0);
  const first = [...net.nodes];
  await net.kill(publisher);
  for (const [i, node] of first.filter((one) => one !== publisher).entries()) {
    await replace(net, node, clock, storeIn);
    if (i === 4) {
      const removal = { digest: recordDigest(removed.record.encoded), token };
      assert.ok((await net.at(-1).dht.removeNotes(removed.key, [removal])) > 0);
    }
    // The waits below advance the clock too, but all must end within the week of the notes.
    clock.leap(4 * HOUR_MS);
    await advanceUntil(clock, `enough replicas of each after ${i + 1} nodes`, () =>
      lasting.every((one) => copies(net.nodes, one) >= REPLICAS),
    );
  }
  assert.ok(net.nodes.every((node) => !first.includes(node)));
  for (const reader of [net.at(0), net.at(-1)]) {
    for (const one of lasting) assert.ok(await isFound(reader, one), `type ${one.record.type} is lost`);
    assert.ok(!(await isFound(reader, removed)));
  }
});

test('a node that was offline when a note was removed receives the removal, and no node accepts its copy', async (t) => {
  const clock = new LeapClock();
  const timestamp = Math.floor(clock.now() / 1000);
  const storeFile = join(temporaryDirectory(t), 'records.db');
  await using net = await DhtTestnet.start(10, { clock });
  const sleeper = await net.add({ clock, storeFile });
  const token = new Uint8Array(randomBytes(16));
  const note = removableNote(newIdentity(timestamp - 60), token, { timestamp, ttl: 7 * DAY_S });
  await net.at(0).dht.put(note.key, note.record);
  await advanceUntil(clock, 'all nodes store the note', () => rows(net.nodes) === 11);
  await net.kill(sleeper);
  const removal = { digest: recordDigest(note.record.encoded), token };
  assert.ok((await net.at(0).dht.removeNotes(note.key, [removal])) > 0);
  const back = await net.add({ clock, storeFile });
  assert.equal(rows([back]), 1);
  clock.leap(6 * HOUR_MS);
  await advanceUntil(clock, 'no node stores the note, even if it missed the removal', () => rows(net.nodes) === 0);
});

test('a new node receives a full mailbox from all its replicas, and no short-lived records', async () => {
  const clock = new LeapClock();
  const timestamp = Math.floor(clock.now() / 1000);
  const settings = { timestamp, ttl: 7 * DAY_S };
  await using net = await DhtTestnet.start(CIRCLE - 1, { clock });
  const recipient = newIdentity(timestamp - 60);
  // More notes than one sending node may store for one recipient.
  const each = 8;
  const notes = each * net.nodes.length;
  assert.ok(notes > MAX_NOTES_PER_SENDER);
  for (let i = 0; i < each; i++) {
    const puts = net.nodes.map(({ dht }) => {
      const { key, record } = removableNote(recipient, new Uint8Array(randomBytes(16)), settings);
      return dht.put(key, record);
    });
    for (const { replicas } of await Promise.all(puts)) assert.ok(replicas > 0);
  }
  const short = endpointRecord(newIdentity(timestamp - 60), { timestamp, ttl: 3600 });
  await net.at(0).dht.put(short.key, short.record);
  const newcomer = await net.add({ clock });
  clock.leap(6 * HOUR_MS);
  await advanceUntil(clock, 'the new node stores the notes', () => rows([newcomer]) >= notes);
  assert.equal(rows([newcomer]), notes);
});
