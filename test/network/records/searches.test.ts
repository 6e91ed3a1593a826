import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import type { NodeAnswer } from '../../../src/network/records/closest-nodes.ts';
import { partNumber } from '../../../src/network/records/key-rows.ts';
import { decodeFindRequest, MAX_PARTS } from '../../../src/network/records/messages.ts';
import { closestTo, nodeId } from '../../../src/network/records/node-address.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { CLOSEST_HEARD, SEARCH_WIDTH, Searches } from '../../../src/network/records/searches.ts';
import { testAid } from '../../support/agents.ts';
import { newIdentity } from '../../support/identities.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { testRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEY = new Uint8Array(32).fill(7);
const OWN_ID = new Uint8Array(32).fill(1);

interface Asked {
  readonly host: string;
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** Lookups among nodes that answer when the test decides. */
function setUp(table: number, bootstrapNodes: readonly Address[] = []) {
  const clock = new TestClock();
  const nodes = Array.from({ length: table }, (_, n) => ({ ...nodeAddress(n), id: nodeId(nodeAddress(n)) }));
  const asked: Asked[] = [];
  let answers: (address: Address, id: Uint8Array) => Promise<NodeAnswer | null> = () => new Promise(() => {});
  const searches = new Searches({
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
  return { searches, clock, asked, hosts, nodes, answer: (how: typeof answers) => void (answers = how) };
}

test('a read queries fewer nodes concurrently than a write', () => {
  const request = { types: [RECORD.profile], wantsRecords: true };
  const read = setUp(30);
  read.searches.forRead(KEY, request);
  assert.equal(read.asked.length, CLOSEST_HEARD);
  const write = setUp(30);
  write.searches.forWrite(KEY, request);
  assert.equal(write.asked.length, SEARCH_WIDTH);
  for (const { key, value } of [...read.asked, ...write.asked]) {
    assert.equal(key, KEY);
    assert.deepEqual(decodeFindRequest(value), request);
  }
});

test('a brief read ends with the few closest nodes', async () => {
  const { searches, hosts, nodes, answer } = setUp(60);
  answer(async (address, id) => answerOf(address, id));
  await searches.forRead(KEY, { types: [RECORD.note], wantsRecords: true }, true).finished;
  assert.deepEqual(hosts(), new Set(closestTo(KEY, nodes, 4).map(({ host }) => host)));
});

test('a node that was silent while this node stalled does not count as slow', () => {
  const { searches, asked, clock } = setUp(30);
  searches.forRead(KEY, { types: [], wantsRecords: true });
  clock.jump(60_000);
  clock.advance(0);
  assert.equal(asked.length, CLOSEST_HEARD);
  clock.advance(150);
  assert.equal(asked.length, 2 * CLOSEST_HEARD, 'the lookup queries other nodes in addition to the slow ones');
});

test('a lookup begins at the closest nodes of the routing table and contacts', () => {
  const contacts = [nodeAddress(200), nodeAddress(201)];
  const { searches, hosts, nodes } = setUp(60, contacts);
  searches.forWrite(KEY);
  const known = [...nodes, ...contacts.map((contact) => ({ ...contact, id: nodeId(contact) }))];
  assert.deepEqual(hosts(), new Set(closestTo(KEY, known, SEARCH_WIDTH).map(({ host }) => host)));
});

test('if these do not answer, the lookup queries other nodes of the routing table', async () => {
  const { searches, hosts, nodes, answer } = setUp(60);
  const silent = new Set(closestTo(KEY, nodes, SEARCH_WIDTH).map(({ host }) => host));
  answer(async (address, id) => (silent.has(address.host) ? null : answerOf(address, id)));
  await searches.forWrite(KEY).finished;
  assert.equal(hosts().size, 2 * SEARCH_WIDTH);
});

test('a lookup queries contacts if the routing table has too few nodes, and never this node itself', () => {
  const { searches, hosts } = setUp(2, [nodeAddress(200), nodeAddress(300)]);
  searches.forWrite(KEY);
  assert.deepEqual(hosts(), new Set([0, 1, 200].map((n) => nodeAddress(n).host)));
});

test('a survey queries only the closest nodes, and follows the nodes that they name', async () => {
  const { searches, asked, hosts, answer } = setUp(1);
  answer(async (address, id) =>
    answerOf(address, id, address.host === nodeAddress(0).host ? { nodes: [nodeAddress(9)] } : {}),
  );
  const lookup = searches.forWrite(KEY);
  await lookup.finished;
  assert.deepEqual(hosts(), new Set([0, 9].map((n) => nodeAddress(n).host)));
  for (const { value } of asked) assert.deepEqual(decodeFindRequest(value), { types: [], wantsRecords: false });
  assert.equal(lookup.closest(SEARCH_WIDTH).length, 2);
});

test('a lookup reports each answer', async () => {
  const { searches, answer } = setUp(3);
  answer(async (address, id) => answerOf(address, id));
  const heard: string[] = [];
  const request = { types: [], wantsRecords: true };
  const search = searches.forRead(KEY, request);
  search.onAnswer(({ address }) => heard.push(address.host));
  await search.finished;
  assert.deepEqual(new Set(heard), new Set([0, 1, 2].map((n) => nodeAddress(n).host)));
});

test('only nodes that have the record of the agent, or do not describe it, are holders', async () => {
  const { searches, asked, answer } = setUp(6);
  const owner = newIdentity();
  const [aid, other] = [owner.aid, testAid(2)];
  const [early, late] = [2, 4].map((seq) => testRecord(owner, RECORD.service, { seq }));
  assert.ok(early !== undefined && late !== undefined);
  const summary = { ...late, issuedAt: late.delegation.issuedAt, digest: recordDigest(late.encoded) };
  const hosts = Array.from({ length: 6 }, (_, n) => nodeAddress(n).host);
  const replies = [
    {},
    { count: 1, records: [early.encoded] },
    { count: 1, summaries: [{ ...summary, seq: 2 }] },
    { count: 1, records: [late.encoded] },
    { count: 1, summaries: [summary] },
    { count: 1 },
  ];
  answer(async (address, id) => answerOf(address, id, replies[hosts.indexOf(address.host)]));
  assert.deepEqual(await searches.holders(KEY, RECORD.service, aid, 3), { answered: 6, holding: 3 });
  const request = decodeFindRequest(asked[0]?.value ?? new Uint8Array());
  assert.ok(request?.part !== undefined);
  const isSelected = (one: Aid): boolean => partNumber(RECORD.service, one) % MAX_PARTS === request.part?.index;
  assert.deepEqual([request.types, isSelected(aid), isSelected(other)], [[RECORD.service], true, false]);
});

test('a greeting requests the nodes closest to this node from one node, and returns whether it answered', async () => {
  const { searches, asked, answer } = setUp(5);
  answer(async (address, id) => answerOf(address, id));
  assert.equal(await searches.greet(nodeAddress(8)), true);
  answer(async () => null);
  assert.equal(await searches.greet(nodeAddress(8)), false);
  assert.deepEqual(
    asked.map(({ host, key }) => [host, key]),
    [
      [nodeAddress(8).host, OWN_ID],
      [nodeAddress(8).host, OWN_ID],
    ],
  );
});
