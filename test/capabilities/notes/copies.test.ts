/** The copies of notes that go out after their answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COPIES_FOLLOW_MS, GATHER_MS, MAX_COPIES } from '../../../src/capabilities/notes/note-copies.ts';
import { mailboxKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import type { TestIdentity } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { type MailNode, MailWorld } from '../../support/mail-world.ts';

const DAY_MS = 24 * 3600_000;
const waitingCopies = ({ store }: MailNode): number =>
  Number(store.one('SELECT count(*) AS n FROM note_copies')?.['n']);

interface Pair {
  readonly world: MailWorld;
  readonly a: MailNode;
  readonly b: MailNode;
  readonly alice: TestIdentity;
  readonly bob: TestIdentity;
}

async function pair(): Promise<Pair> {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  return { world, a, b, alice: await a.host(), bob: await b.host() };
}

function stored({ world, bob }: Pair): number {
  return world.hub.store.find(mailboxKey(bob.aid), { types: [RECORD.note] }, 100).length;
}

async function send({ world, a, alice, bob }: Pair, n: number, from: MailNode = a): Promise<string> {
  const sent = await world.during(from.notes.send(alice.aid, bob.aid, 1, Uint8Array.of(n >> 8, n)));
  assert.equal(sent.delivered, true);
  return sent.messageId;
}

test('copies for one mailbox are gathered, and go out over one search', async () => {
  const all = await pair();
  const { world, a } = all;
  const searches: number[] = [];
  const near = a.records.near.bind(a.records);
  const widths = new Set<number | undefined>();
  a.records.near = (key) => {
    searches.push(world.clock.now());
    const nodes = near(key);
    return {
      ...nodes,
      put: (record, options) => {
        widths.add(options.width);
        return nodes.put(record, options);
      },
    };
  };
  const began = world.clock.now();
  for (let i = 0; i < 10; i++) await send(all, i);
  assert.deepEqual([stored(all), waitingCopies(a)], [0, 10]);
  assert.equal(searches.splice(0).length, 1, 'a search beside the first lookup, in case the recipient is off');
  await world.until('all are out', () => stored(all) === 10 && waitingCopies(a) === 0);
  assert.equal(searches.length, 1);
  assert.deepEqual(widths, new Set([4]), 'the recipient has the notes, so four nodes are enough');
  assert.ok((searches[0] ?? 0) - began >= GATHER_MS, `${(searches[0] ?? 0) - began}`);
});

test('copies of an agent that sends without a pause are sent too', async () => {
  const all = await pair();
  const { world } = all;
  const began = world.clock.now();
  for (let i = 0; stored(all) === 0; i++) {
    await send(all, i);
    await world.clock.run(GATHER_MS / 10);
    assert.ok(world.clock.now() - began < 2 * GATHER_MS);
  }
  assert.ok(world.clock.now() - began >= GATHER_MS);
});

test('copies go out after a restart, and when the network is there again', async () => {
  const all = await pair();
  const { world, alice } = all;
  let { a } = all;
  a.records.setReachability({ ready: false });
  const ids = [await send(all, 1), await send(all, 2)];
  await world.clock.run(60_000);
  assert.deepEqual([stored(all), waitingCopies(a)], [0, 2]);
  a = await a.restart();
  a.records.setReachability({ ready: false });
  await idle();
  await world.clock.run(60_000);
  a.records.setReachability({ ready: true });
  await world.until('they are out', () => stored(all) === 2 && waitingCopies(a) === 0);
  const elsewhere = await world.node('elsewhere');
  elsewhere.register(all.bob);
  await world.until('another machine of the recipient has them', () => elsewhere.waiting(all.bob.aid).length === 2);
  assert.deepEqual(new Set(elsewhere.waiting(all.bob.aid)), new Set(ids));
  assert.notEqual(alice.aid, all.bob.aid);
});

test('a copy that no node stores is sent again until it expires', async () => {
  const all = await pair();
  const { world, a } = all;
  a.records.unreachable = true;
  await send(all, 1);
  await world.clock.run(3600_000);
  assert.deepEqual([stored(all), waitingCopies(a)], [0, 1]);
  a.records.unreachable = false;
  await world.until('it is out', () => stored(all) === 1 && waitingCopies(a) === 0);
  a.records.unreachable = true;
  await send(all, 2);
  await world.clock.run(8 * DAY_MS);
  assert.equal(waitingCopies(a), 0);
});

test('copies of a note that was read at once are removed when they are there', async () => {
  const all = await pair();
  const { world, b, bob } = all;
  await send(all, 1);
  assert.equal(b.poll(bob.aid).length, 1);
  await world.until('its copy is out', () => stored(all) === 1);
  const out = world.clock.now();
  await world.until('it is removed', () => stored(all) === 0);
  assert.ok(world.clock.now() - out < COPIES_FOLLOW_MS);
  await world.clock.run(120_000);
  assert.deepEqual(b.waiting(bob.aid), []);
});

test('if too many copies wait, the network stores the note before the answer', async () => {
  const all = await pair();
  const { world, a } = all;
  a.store.run(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MAX_COPIES})
     INSERT INTO note_copies (mailbox, record, until, due_at) SELECT x'00', x'00', ${world.clock.now() + DAY_MS}, 0 FROM n`,
  );
  const full = { ...all, a: await a.restart() };
  await send(full, 1);
  assert.equal(stored(all), 1);
});
