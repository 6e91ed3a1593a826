/** Replication at one node: the records it sends, the nodes it chooses, and the answers it trusts. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { ClosestNodes } from '../../../src/network/records/closest-nodes.ts';
import { closestTo, compareDistance, nodeId } from '../../../src/network/records/node-address.ts';
import type { StoreVerdict } from '../../../src/network/records/node-client.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { MIN_LIFE_LEFT_S, REST_S, Replication, SETTLE_MS } from '../../../src/network/records/replication.ts';
import { newIdentity } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { endpointRecord, largeRecord, type Published, removableNote } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const WIDTH = 16;
const DAY_S = 24 * 3600;
const KEPT: StoreVerdict = { code: 'kept', newer: null, token: null };

/** One node among simulated nodes. The records that it sends are logged. */
class World {
  readonly clock = new TestClock();
  readonly store = new RecordStore(
    { file: ':memory:', maxBytes: 64 * 1024 * 1024 },
    { clock: this.clock, log: silentLog },
  );
  readonly given: { readonly to: string; readonly record: SignedRecord }[] = [];
  readonly replication: Replication;
  /** The other nodes in the routing table. */
  nodes: Address[];
  searches = 0;
  /** Called when a lookup begins. */
  onSearch = (): void => {};
  /** The answer of each other node to a record. */
  verdict: (record: SignedRecord) => StoreVerdict | null = () => KEPT;

  /** @param earlier records in the store before the start */
  constructor(own = nodeAddress(0), nodes = [1, 2, 3].map(nodeAddress), earlier: readonly Published[] = []) {
    this.nodes = nodes;
    for (const one of earlier) this.keep(one);
    const located = () => this.nodes.map((node) => ({ ...node, id: nodeId(node) }));
    this.replication = new Replication({
      clock: this.clock,
      log: silentLog,
      store: this.store,
      random: () => 0,
      engine: {
        ...{ ownAddress: own, id: nodeId(own), closest: (key, max) => closestTo(key, located(), max) },
        isBehind: (key, id, max) => located().filter((node) => compareDistance(key, node.id, id) < 0).length > max,
      },
      searches: { forWrite: (target) => this.#search(target) },
      client: {
        find: async (to, id) => answerOf(to, id),
        ask: async () => null,
        store: async (at, _key, record) => {
          this.given.push({ to: at.address.host, record });
          return this.verdict(record);
        },
      },
    });
    this.replication.start();
  }

  #search(target: Uint8Array): ClosestNodes {
    this.searches++;
    this.onSearch();
    const options = { target, width: 20, parallel: 20, enough: 8, start: this.nodes };
    return new ClosestNodes(options, {
      clock: this.clock,
      health: new PeerHealth({ clock: this.clock }),
      ask: async (to, id) => answerOf(to, id),
      skips: () => false,
      isOwnHost: () => false,
    });
  }

  get now(): number {
    return unixSeconds(this.clock);
  }

  /** The stored records of a key, in hex. */
  held({ key }: Published): string[] {
    return this.store.page(key, { types: [] }, 0, 1 << 20).records.map(toHex);
  }

  note(token: Uint8Array = new Uint8Array(randomBytes(16)), ttl = 7 * DAY_S): Published {
    return removableNote(newIdentity(this.now), token, { timestamp: this.now, ttl });
  }

  /** Stores a record received from a host. */
  keep({ key, record }: Published, from = 'a host'): void {
    assert.equal(this.store.offer(key, record, from).code, 'kept');
  }

  /** Advances the clock in steps that leave time for pending work. */
  async pass(ms: number): Promise<void> {
    const step = Math.max(1000, ms / 50);
    for (let passed = 0; passed < ms; passed += step) {
      await this.clock.run(Math.min(step, ms - passed));
      await idle();
    }
  }

  async welcome(node: Address): Promise<void> {
    this.replication.onNode(node);
    this.nodes.push(node);
    await this.pass(3 * SETTLE_MS);
  }
}

test('a record rests after it was received or seen again, then it is sent to the nodes that should store it', async () => {
  const world = new World();
  const note = world.note();
  world.keep(note);
  await world.pass(REST_S * 1000 - 200_000);
  world.keep(note);
  await world.pass(400_000);
  assert.equal(world.searches, 0);
  await world.pass(REST_S * 1000);
  assert.equal(world.searches, 1);
  assert.deepEqual(world.given.map(({ to }) => to).sort(), world.nodes.map(({ host }) => host).sort());
});

test('a record that expires soon or is renewed hourly is not replicated', async () => {
  const world = new World(nodeAddress(0), [nodeAddress(1)]);
  world.keep(endpointRecord(newIdentity(world.now), { timestamp: world.now, ttl: 3600 }));
  world.keep(world.note(undefined, REST_S + MIN_LIFE_LEFT_S - 600));
  // Of two replicas, each sends it to the third node.
  await world.welcome(nodeAddress(9));
  assert.equal(world.given.length, 1);
  await world.pass(REST_S * 1000);
  assert.equal(world.given.length, 1);
});

test('a new node receives each record of its keys from two replicas, and no other records', async () => {
  const circle = Array.from({ length: 20 }, (_, i) => nodeAddress(i));
  const counts = new Map<string, number>();
  const model = new World();
  const notes = Array.from({ length: 30 }, () => model.note());
  const newcomer = nodeAddress(77);
  for (const own of circle) {
    const world = new World(
      own,
      circle.filter((node) => node !== own),
    );
    for (const note of notes) world.keep(note);
    await world.welcome(newcomer);
    for (const { record } of world.given)
      counts.set(toHex(recordDigest(record.encoded)), (counts.get(toHex(recordDigest(record.encoded))) ?? 0) + 1);
  }
  const id = nodeId(newcomer);
  const belongs = ({ key }: Published): boolean => {
    const ids = circle.map((node) => ({ id: nodeId(node) }));
    return closestTo(key, [...ids, { id }], WIDTH).some((one) => one.id === id);
  };
  assert.ok(notes.some(belongs) && !notes.every(belongs));
  for (const note of notes)
    assert.equal(counts.get(toHex(recordDigest(note.record.encoded))) ?? 0, belongs(note) ? 2 : 0);
});

test('a new node receives its records soon after a minute, whenever it came', async () => {
  const world = new World(nodeAddress(0), [nodeAddress(1)]);
  world.keep(world.note());
  await world.pass(SETTLE_MS / 2);
  world.replication.onNode(nodeAddress(9));
  await world.pass(SETTLE_MS + 2000);
  assert.deepEqual(
    world.given.map(({ to }) => to),
    [nodeAddress(9).host],
  );
});

test('of many nodes that come at the same time, each gets its records from a former node', async () => {
  const note = new World().note();
  // The node that has the record is the farthest of its key.
  const [own = assert.fail(), ...distant] = Array.from({ length: 64 }, (_, i) => nodeAddress(i)).sort((a, b) =>
    compareDistance(note.key, nodeId(b), nodeId(a)),
  );
  const newcomers = distant.toSorted((a, b) => a.host.localeCompare(b.host));
  const gone = distant.at(-1) ?? assert.fail();
  const closest = distant.slice(0, -1).slice(-WIDTH);
  const receiversOf = async (world: World): Promise<string[]> => {
    for (const node of newcomers) world.replication.onNode(node);
    world.replication.onLeft(gone);
    world.nodes = distant.slice(0, -1);
    await world.pass(3 * SETTLE_MS);
    return world.given.map(({ to }) => to).sort();
  };

  // The node and the others may have joined at about the same time.
  const fresh = new World(own, []);
  fresh.keep(note);
  const all = closest.map(({ host }) => host).sort();
  assert.deepEqual(await receiversOf(fresh), all);

  // After a restart, the nodes of the earlier run are found again first.
  assert.deepEqual(await receiversOf(new World(own, [], [note])), []);
  const restarted = new World(own, [], [note]);
  await restarted.pass(SETTLE_MS);
  assert.deepEqual(await receiversOf(restarted), all);
});

test('a host with changing nodes receives records three times, then once in ten minutes', async () => {
  const world = new World(nodeAddress(0), [nodeAddress(1)]);
  world.keep(world.note());
  for (let port = 1; port <= 6; port++) world.replication.onNode({ host: nodeAddress(9).host, port });
  await world.pass(3 * SETTLE_MS);
  assert.equal(world.given.length, 3);
  await world.pass(10 * 60_000);
  for (const port of [7, 8]) world.replication.onNode({ host: nodeAddress(9).host, port });
  await world.pass(3 * SETTLE_MS);
  assert.equal(world.given.length, 4);
});

test('a publisher with many records does not delay the records of others', async () => {
  const world = new World();
  for (let i = 0; i < 300; i++) world.keep(world.note(), 'flood');
  const other = world.note();
  world.keep(other, 'zoe');
  await world.pass(REST_S * 1000 + 70_000);
  const place = world.given.findIndex(({ record }) => record.aid === other.record.aid);
  assert.ok(place >= 0 && place <= 2 * world.nodes.length, `sent after ${place} others`);
});

test('replication sends a limited number of bytes per hour', async () => {
  const world = new World();
  const perHour = 3600 * 32 * 1024 + 4 * 1024 * 1024;
  for (let i = 0; i < 1500; i++) {
    const note = removableNote(newIdentity(world.now), new Uint8Array(16), { timestamp: world.now, ttl: 7 * DAY_S });
    world.keep(note, `host ${i}`);
  }
  world.verdict = () => ({ code: 'kept', newer: null, token: null });
  world.nodes = Array.from({ length: 16 }, (_, i) => nodeAddress(i + 1));
  await world.pass((REST_S + 3600) * 1000);
  const bytes = world.given.reduce((sum, { record }) => sum + record.encoded.length, 0);
  assert.ok(bytes <= perHour);
  // The other limit: one key per second.
  assert.ok(world.searches <= 3700);
});

test('a note is dropped if another node proves that it was removed, and kept if the proof is invalid', async () => {
  const world = new World();
  const token = new Uint8Array(randomBytes(16));
  const note = world.note(token);
  world.keep(note);
  world.verdict = () => ({ code: 'removed', newer: null, token: new Uint8Array(16) });
  await world.pass((REST_S + 200) * 1000);
  assert.equal(world.store.usage().records, 1);
  world.verdict = () => ({ code: 'removed', newer: null, token });
  await world.pass((REST_S + 200) * 1000);
  assert.equal(world.store.usage().records, 0);
  // The store now has the proof, and sends it to any node that offers the note again.
  const offer = world.store.offer(note.key, note.record, 'late');
  assert.ok(offer.code === 'removed' && Buffer.compare(offer.token, token) === 0);
});

test('a node that does not answer, or is full, does not receive the remaining records', async () => {
  const world = new World(nodeAddress(0), [nodeAddress(1)]);
  const recipient = newIdentity(world.now);
  const settings = { timestamp: world.now, ttl: 7 * DAY_S };
  for (let i = 0; i < 5; i++) world.keep(removableNote(recipient, new Uint8Array(randomBytes(16)), settings));
  world.verdict = () => null;
  await world.pass((REST_S + 200) * 1000);
  assert.equal(world.given.length, 1);
  world.verdict = () => ({ code: 'full', newer: null, token: null });
  await world.pass((REST_S + 200) * 1000);
  assert.equal(world.given.length, 2);
});

test('due records are processed at one key per second', async () => {
  const world = new World();
  for (let i = 0; i < 30; i++) world.keep(world.note());
  await world.pass((REST_S + 120) * 1000);
  assert.equal(world.searches, 30);
});

test('a newer version from another node replaces the stored one', async () => {
  const world = new World(nodeAddress(0), [nodeAddress(1)]);
  const owner = newIdentity(world.now);
  const [older, newer] = [1, 2].map((seq) => largeRecord(owner, { seq, timestamp: world.now, ttl: 7 * DAY_S }));
  assert.ok(older && newer);
  world.keep(older);
  world.verdict = () => ({ code: 'newer', newer: null, token: null });
  await world.pass((REST_S + 200) * 1000);
  assert.deepEqual(world.held(older), [toHex(older.record.encoded)]);
  world.verdict = () => ({ code: 'newer', newer: newer.record, token: null });
  await world.pass((REST_S + 200) * 1000);
  assert.deepEqual(world.held(older), [toHex(newer.record.encoded)]);
});

test('a newer version or the proof of a removal counts only with the verdict that it belongs to', async () => {
  const world = new World(nodeAddress(0), [nodeAddress(1)]);
  const token = new Uint8Array(randomBytes(16));
  const note = world.note(token);
  const owner = newIdentity(world.now);
  const [older, newer] = [1, 2].map((seq) => largeRecord(owner, { seq, timestamp: world.now, ttl: 7 * DAY_S }));
  assert.ok(older && newer);
  world.keep(note);
  world.keep(older);
  for (const verdict of [
    { code: 'kept', newer: newer.record, token },
    { code: 'removed', newer: newer.record, token: null },
    { code: 'newer', newer: null, token },
  ] as const) {
    world.verdict = () => verdict;
    const before = world.given.length;
    await world.pass((REST_S + 200) * 1000);
    assert.equal(world.given.length, before + 2, verdict.code);
    assert.deepEqual(world.held(older), [toHex(older.record.encoded)], verdict.code);
    assert.equal(world.held(note).length, 1, verdict.code);
  }
});

/** This node among 16 others, as the closest to a key or the furthest from it. */
function among({ key }: Published, place: 'closest' | 'furthest'): World {
  const nodes = Array.from({ length: WIDTH + 1 }, (_, i) => ({ ...nodeAddress(i), id: nodeId(nodeAddress(i)) }));
  const sorted = closestTo(key, nodes, nodes.length);
  const own = sorted.at(place === 'closest' ? 0 : -1);
  assert.ok(own);
  return new World(
    own,
    sorted.filter((node) => node !== own),
  );
}

test('a record is sent to the closest nodes of its key, including this node, a large record to fewer', async () => {
  const { now } = new World();
  const settings = { timestamp: now, ttl: 7 * DAY_S };
  const note = removableNote(newIdentity(now), new Uint8Array(16), settings);
  for (const [published, others] of [
    [note, 15],
    [largeRecord(newIdentity(now), settings), 9],
  ] as const) {
    const world = among(published, 'closest');
    world.keep(published);
    await world.pass((REST_S + 200) * 1000);
    const circle = world.nodes.slice(0, others).map(({ host }) => host);
    assert.deepEqual(new Set(world.given.map(({ to }) => to)), new Set(circle));
    assert.equal(world.given.length, others);
  }
});

test('a node beyond the closest rests for a day once all of these have the record', async () => {
  const note = new World().note();
  const searchesOf = async (place: 'closest' | 'furthest', verdict = KEPT): Promise<number[]> => {
    const world = among(note, place);
    world.verdict = () => verdict;
    world.keep(note);
    const searches: number[] = [];
    for (const hours of [7, 16, 8]) {
      await world.pass(hours * 3600_000);
      searches.push(world.searches);
    }
    return searches;
  };
  assert.deepEqual(await searchesOf('closest'), [1, 3, 5]);
  assert.deepEqual(await searchesOf('furthest'), [1, 1, 2]);
  assert.deepEqual(await searchesOf('furthest', { code: 'full', newer: null, token: null }), [1, 3, 5]);
});

test('a node that stops during a lookup sends nothing', async () => {
  const world = new World();
  world.keep(world.note());
  world.onSearch = () => world.replication.stop();
  await world.pass((REST_S + 200) * 1000);
  assert.equal(world.searches, 1);
  assert.deepEqual(world.given, []);
});
