import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import type { LookupAnswer } from '../../../src/network/records/lookup.ts';
import { Lookups, SEARCH_WIDTH } from '../../../src/network/records/lookups.ts';
import { decodeFindRequest, type FindRequest } from '../../../src/network/records/messages.ts';
import { closestTo, nodeId } from '../../../src/network/records/node-address.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEY = new Uint8Array(32).fill(7);
const OWN_ID = new Uint8Array(32).fill(1);

interface Asked {
  readonly host: string;
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** Lookups among nodes that answer when the test says so. */
function setUp(table: number, bootstrapNodes: readonly Address[] = []) {
  const clock = new TestClock();
  const nodes = Array.from({ length: table }, (_, n) => ({ ...nodeAddress(n), id: nodeId(nodeAddress(n)) }));
  const asked: Asked[] = [];
  let answers: (address: Address, id: Uint8Array) => Promise<LookupAnswer | null> = () => new Promise(() => {});
  const lookups = new Lookups({
    clock,
    health: new PeerHealth({ clock }),
    engine: {
      id: OWN_ID,
      closest: (key, max) => closestTo(key, nodes, max),
      canReach: () => true,
      isOwn: ({ host }) => host === nodeAddress(300).host,
      drop: () => {},
    },
    bootstrapNodes: { addresses: () => [...bootstrapNodes] },
    client: {
      find: (address, id, key, value) => {
        asked.push({ host: address.host, key, value });
        return answers(address, id);
      },
    },
    isOwnHost: () => false,
    proveKey: async () => true,
  });
  const hosts = (): Set<string> => new Set(asked.map(({ host }) => host));
  return { lookups, clock, asked, hosts, nodes, answer: (how: typeof answers) => void (answers = how) };
}

test('a read asks fewer nodes at once than a write', () => {
  const request = { types: [RECORD.profile], wantsRecords: true };
  const read = setUp(30);
  read.lookups.forRead(KEY, request, () => {});
  assert.equal(read.asked.length, 8);
  const write = setUp(30);
  write.lookups.forWrite(KEY, request);
  assert.equal(write.asked.length, SEARCH_WIDTH);
  for (const { key, value } of [...read.asked, ...write.asked]) {
    assert.equal(key, KEY);
    assert.deepEqual(decodeFindRequest(value), { ...request, asksVersion: true });
  }
});

test('nobody is taken for slow who was not heard while this node stalled', () => {
  const { lookups, asked, clock } = setUp(30);
  lookups.forRead(KEY, { types: [], wantsRecords: true }, () => {});
  clock.jump(60_000);
  clock.advance(0);
  assert.equal(asked.length, 8);
  clock.advance(150);
  assert.equal(asked.length, 16, 'others are asked instead of those who are slow');
});

test('it begins at the nodes of the table and the contacts that are closest to the key', () => {
  const contacts = [nodeAddress(200), nodeAddress(201)];
  const { lookups, hosts, nodes } = setUp(60, contacts);
  lookups.survey(KEY);
  const known = [...nodes, ...contacts.map((contact) => ({ ...contact, id: nodeId(contact) }))];
  assert.deepEqual(hosts(), new Set(closestTo(KEY, known, SEARCH_WIDTH).map(({ host }) => host)));
});

test('where nobody of those answers, others of the table are asked', async () => {
  const { lookups, hosts, nodes, answer } = setUp(60);
  const silent = new Set(closestTo(KEY, nodes, SEARCH_WIDTH).map(({ host }) => host));
  answer(async (address, id) => (silent.has(address.host) ? null : answerOf(address, id)));
  await lookups.survey(KEY).finished;
  assert.equal(hosts().size, 2 * SEARCH_WIDTH);
});

test('contacts are asked where the table holds too few nodes, and never this node itself', () => {
  const { lookups, hosts } = setUp(2, [nodeAddress(200), nodeAddress(300)]);
  lookups.survey(KEY);
  assert.deepEqual(hosts(), new Set([0, 1, 200].map((n) => nodeAddress(n).host)));
});

test('a survey asks only who is near, and follows what it is told', async () => {
  const { lookups, asked, hosts, answer } = setUp(1);
  answer(async (address, id) =>
    answerOf(address, id, address.host === nodeAddress(0).host ? { nodes: [nodeAddress(9)] } : {}),
  );
  const lookup = lookups.survey(KEY);
  await lookup.finished;
  assert.deepEqual(hosts(), new Set([0, 9].map((n) => nodeAddress(n).host)));
  for (const { value } of asked)
    assert.deepEqual(decodeFindRequest(value), { types: [], wantsRecords: false, asksVersion: true });
  assert.equal(lookup.closest(SEARCH_WIDTH).length, 2);
});

const GIVING = { types: [], wantsRecords: false };
const OTHER = new Uint8Array(32).fill(8);

/** Searches for who is to be given something, or runs on with a fresh list of who was asked. */
async function giving(world: ReturnType<typeof setUp>, key: Uint8Array, request: FindRequest = GIVING) {
  world.asked.length = 0;
  const told: LookupAnswer[] = [];
  const lookup = world.lookups.forGiving(key, request, (answer) => told.push(answer));
  await lookup.finished;
  return { asked: world.asked.length, told, near: lookup.closest(SEARCH_WIDTH) };
}

test('the nodes around a key are not asked twice within two seconds, whatever was asked of them', async () => {
  const world = setUp(60);
  world.answer(async (address, id) => answerOf(address, id, { count: 3, records: [new Uint8Array(500)] }));
  const first = await giving(world, KEY, { types: [RECORD.endpoints], wantsRecords: true });
  assert.ok(first.asked >= SEARCH_WIDTH);
  world.clock.advance(1999);
  const again = await giving(world, KEY);
  assert.equal(again.asked, 0);
  assert.deepEqual(
    again.near.map(({ address }) => address),
    first.near.map(({ address }) => address),
  );
  assert.deepEqual(again.told[0]?.reply, { ...first.told[0]?.reply, count: 0, records: [] });
  assert.deepEqual(again.told[0]?.token, first.told[0]?.token);
  assert.ok((await giving(world, KEY, { types: [RECORD.endpoints], wantsRecords: true })).asked > 0, 'what they hold');
});

test('what was remembered is not remembered anew by who used it', async () => {
  const world = setUp(10);
  world.answer(async (address, id) => answerOf(address, id));
  await giving(world, KEY);
  world.clock.advance(1500);
  assert.equal((await giving(world, KEY)).asked, 0);
  world.clock.advance(500);
  assert.equal((await giving(world, KEY)).asked, 10, 'their tokens would be too old');
  world.clock.advance(-3000);
  assert.equal((await giving(world, KEY)).asked, 10, 'the clock was set back');
});

test('in a network of few nodes they are not asked around another key either, but for those that are new', async () => {
  const few = setUp(10);
  few.answer(async (address, id) => answerOf(address, id));
  await giving(few, KEY);
  assert.equal((await giving(few, OTHER)).asked, 0);
  few.nodes.push({ ...nodeAddress(50), id: nodeId(nodeAddress(50)) });
  const later = await giving(few, OTHER);
  assert.deepEqual([later.asked, later.near.length], [1, 11]);
  const many = setUp(SEARCH_WIDTH);
  many.answer(async (address, id) => answerOf(address, id));
  await giving(many, KEY);
  assert.equal((await giving(many, OTHER)).asked, SEARCH_WIDTH);
});

test('a search that was ended says nothing of who is there', async () => {
  const world = setUp(10);
  world.answer(async (address, id) => answerOf(address, id));
  world.lookups.forGiving(KEY, GIVING, () => {}).stop();
  assert.equal((await giving(world, KEY)).asked, 10);
});

test('who searches is told of each answer', async () => {
  const { lookups, answer } = setUp(3);
  answer(async (address, id) => answerOf(address, id));
  const heard: string[] = [];
  const request = { types: [], wantsRecords: true };
  await lookups.forRead(KEY, request, ({ address }) => heard.push(address.host)).finished;
  assert.deepEqual(new Set(heard), new Set([0, 1, 2].map((n) => nodeAddress(n).host)));
});

test('a greeting asks one node for those closest to us, and says whether it answers', async () => {
  const { lookups, asked, answer } = setUp(5);
  answer(async (address, id) => answerOf(address, id));
  assert.equal(await lookups.greet(nodeAddress(8)), true);
  answer(async () => null);
  assert.equal(await lookups.greet(nodeAddress(8)), false);
  assert.deepEqual(
    asked.map(({ host, key }) => [host, key]),
    [
      [nodeAddress(8).host, OWN_ID],
      [nodeAddress(8).host, OWN_ID],
    ],
  );
});
