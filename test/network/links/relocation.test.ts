/** What nodes do that dial one which has started again at another port. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/foundation/log.ts';
import { NODE_DIAL_TIMEOUT_MS, type NodePlace, UNHELPED } from '../../../src/network/links/dial.ts';
import { SILENCE_MS } from '../../../src/network/links/link-initiator.ts';
import { LOOK_ELSEWHERE_MS, MAX_LOOKED_FOR, Relocation } from '../../../src/network/links/relocation.ts';
import { type LinkNode, LinkWorld, settle, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

function place(port: number, node = 1): NodePlace {
  return { nodeKey: new Uint8Array(32).fill(node), addresses: [{ host: '192.0.2.1', port }], ...UNHELPED };
}

/** Nodes that are looked for, and dialled where they are found. */
function searches(clock: TestClock) {
  const said = new Map<number, NodePlace>();
  const [asked, dialled]: [number[], number[]] = [[], []];
  let answers = Promise.resolve();
  const elsewhere = new Relocation({
    clock,
    log: silentLog,
    locate: async ([node = 0]) => {
      asked.push(node);
      await answers;
      return said.get(node) ?? null;
    },
    dial: async ({ addresses }) => void dialled.push(...addresses.map(({ port }) => port)),
  });
  const hold = () => {
    const held = Promise.withResolvers<void>();
    answers = held.promise;
    return held.resolve;
  };
  return { said, asked, dialled, elsewhere, hold };
}

test('a node that is dialled for long is looked for until it is reached, and dialled where it is found', async () => {
  const clock = new TestClock();
  const { said, asked, dialled, elsewhere } = searches(clock);
  said.set(1, place(1));
  const ends = [1, 2].map(() => elsewhere.seek(place(1), { relays: true, isLost: false }));
  await clock.run(LOOK_ELSEWHERE_MS - 1);
  assert.deepEqual(asked, []);
  await clock.run(LOOK_ELSEWHERE_MS);
  assert.deepEqual([asked.length, dialled], [1, []], 'once for all who wait, and it has said nothing new');
  said.set(1, place(2));
  ends[0]?.();
  await clock.run(3 * LOOK_ELSEWHERE_MS);
  assert.deepEqual([asked.length, dialled], [4, [2]], 'one place is dialled once');
  ends[1]?.();
  await clock.run(3 * LOOK_ELSEWHERE_MS);
  assert.equal(asked.length, 4);
});

test('one to which a connection has died is looked for at once, and once for all who notice', async () => {
  const clock = new TestClock();
  const { said, asked, dialled, elsewhere } = searches(clock);
  said.set(1, place(2));
  const ends = [1, 2, 3].map(() => elsewhere.seek(place(1), { relays: true, isLost: true }));
  await clock.run(0);
  assert.deepEqual([asked, dialled], [[1], [2]]);
  for (const end of ends) end();
});

test('where all nodes seem to be gone, few of them are looked for at once', async () => {
  const clock = new TestClock();
  const { asked, elsewhere, hold } = searches(clock);
  const answer = hold();
  const nodes = Array.from({ length: 2 * MAX_LOOKED_FOR }, (_, i) => i);
  const ends = nodes.map((node) => elsewhere.seek(place(1, node), { relays: true, isLost: true }));
  await clock.run(3 * LOOK_ELSEWHERE_MS);
  assert.equal(asked.length, MAX_LOOKED_FOR);
  answer();
  await clock.run(LOOK_ELSEWHERE_MS);
  assert.equal(new Set(asked).size, nodes.length, 'the others have their turn');
  for (const end of ends) end();
});

/** Has a node say to the network where another one is, as it does once it runs at another port. */
function says(from: LinkNode, node: LinkNode): Uint8Array[] {
  const asked: Uint8Array[] = [];
  from.pool.locateBy(async (nodeKey) => {
    asked.push(nodeKey);
    return { nodeKey, addresses: [node.endpoint.address], ...UNHELPED };
  });
  return asked;
}

test('a node that is back at another port is called there, while it is still dialled at the one before', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, before] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), before.host()];
  const location = before.location(called);
  world.network.silence(before.endpoint.address);
  const back = await world.node({ key: before.key });
  back.host(called);
  const inbox = back.inbox();
  world.directory.set(called.aid, location);
  const asked = says(a, back);
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  await clock.run(LOOK_ELSEWHERE_MS);
  (await opening).destroy();
  assert.deepEqual([asked, inbox.length], [[before.key.publicKey], 1]);
});

test('a connection to the life of a node before is left as soon as its new one is found', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, before] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), before.host()];
  before.echo();
  const held = await a.links.open(caller.aid, called.aid, 'tcp');
  const location = before.location(called);
  const first = a.pool.current(before.key.publicKey);
  assert.ok(first !== null);
  Object.assign(first.connection, { stats: () => ({ bytesSent: clock.now(), bytesReceived: 1 }) });
  world.network.silence(before.endpoint.address);
  const back = await world.node({ key: before.key });
  back.host(called);
  const inbox = back.inbox();
  world.directory.set(called.aid, location);
  says(a, back);
  before.authorize = () => new Promise(() => {});
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  await clock.run(SILENCE_MS);
  (await opening).destroy();
  assert.equal(inbox.length, 1);
  assert.ok(held.destroyed && first.closed, 'nothing of its former life is waited for');
});

test('who is nowhere else is refused as soon as before', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  world.network.silence(b.endpoint.address);
  const asked = says(a, b);
  const opening = assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('connect_failed'));
  await settle();
  for (let ms = 0; ms < NODE_DIAL_TIMEOUT_MS; ms += LOOK_ELSEWHERE_MS) await clock.run(LOOK_ELSEWHERE_MS);
  await opening;
  await clock.run(10 * LOOK_ELSEWHERE_MS);
  assert.ok(asked.length > 0 && asked.length <= NODE_DIAL_TIMEOUT_MS / LOOK_ELSEWHERE_MS, 'and looked for no longer');
});
