/** Which nodes a lookup asks, and when it ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { ClosestNodes, type NodeAnswer } from '../../../src/network/records/closest-nodes.ts';
import { closestTo, compareDistance, nodeId } from '../../../src/network/records/node-address.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { idle } from '../../support/idle.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { TestClock } from '../../support/test-clock.ts';

const TARGET = new Uint8Array(32).fill(7);
const OWN_HOST = '198.52.100.9';

type Ask = (to: Address, id: Uint8Array) => Promise<NodeAnswer | null>;

function setUp(
  start: readonly Address[],
  options: { ask?: Ask; width?: number; parallel?: number; enough?: number } = {},
) {
  const clock = new TestClock();
  const health = new PeerHealth({ clock });
  const asked: Address[] = [];
  const heard: NodeAnswer[] = [];
  const { ask = async (to, id) => answerOf(to, id), width = 20, parallel = 20, enough = 8 } = options;
  const lookup = () => {
    const search = new ClosestNodes(
      { target: TARGET, width, parallel, enough, start },
      {
        clock,
        health,
        ask: (to, id) => {
          asked.push(to);
          return ask(to, id);
        },
        skips: ({ port }) => port === 9999,
        isOwnHost: (host) => host === OWN_HOST,
      },
    );
    search.onAnswer((answer) => heard.push(answer));
    return search;
  };
  return { clock, health, asked, heard, lookup };
}

function portsOf(host: string, count: number): Address[] {
  return Array.from({ length: count }, (_, i) => ({ host, port: 4121 + i }));
}

test('a lookup queries up to 3 nodes of a public host, and any number on this machine or in its LAN', async () => {
  for (const [host, places] of [
    [nodeAddress(1).host, 3],
    ['127.0.0.1', 10],
    ['192.168.1.5', 10],
    [OWN_HOST, 10],
  ] as const) {
    const { asked, lookup } = setUp(portsOf(host, 10));
    await lookup().finished;
    assert.equal(asked.length, places, host);
  }
});

test('the limit per host also applies to nodes named in answers, and a public node cannot name private addresses', async () => {
  const named = [...portsOf(nodeAddress(2).host, 10), { host: '192.168.1.5', port: 4121 }, nodeAddress(3)];
  const { asked, lookup } = setUp([nodeAddress(1)], { ask: async (to, id) => answerOf(to, id, { nodes: named }) });
  await lookup().finished;
  assert.deepEqual(
    asked.map(({ host }) => host).sort(),
    [1, 2, 2, 2, 3].map((n) => nodeAddress(n).host),
  );
});

test('a lookup does not query named nodes at well-known service ports', async () => {
  const { host } = nodeAddress(2);
  const named = [53, 443, 1023].map((port) => ({ host, port }));
  const { asked, lookup } = setUp([nodeAddress(1)], { ask: async (to, id) => answerOf(to, id, { nodes: named }) });
  await lookup().finished;
  assert.deepEqual(asked, [nodeAddress(1), { host, port: 443 }]);
});

test('a lookup queries each node once, and skips this node and nodes that failed twice recently', async () => {
  const { health, asked, lookup } = setUp([
    nodeAddress(1),
    nodeAddress(1),
    { host: nodeAddress(2).host, port: 9999 },
    nodeAddress(3),
  ]);
  for (let i = 0; i < 2; i++) health.failed(nodeAddress(3));
  await lookup().finished;
  assert.deepEqual(asked, [nodeAddress(1)]);
});

test('a lookup is conclusive if half of the queried nodes answered, or no other node is known', async () => {
  const nodes = [1, 2, 3, 4].map(nodeAddress);
  const isHeard = async (answering: number, failed: readonly Address[] = []): Promise<boolean> => {
    const isThere = (to: Address): boolean => nodes.findIndex(({ host }) => host === to.host) < answering;
    const { health, lookup } = setUp(nodes, { ask: async (to, id) => (isThere(to) ? answerOf(to, id) : null) });
    for (const node of [...failed, ...failed]) health.failed(node);
    const search = lookup();
    await search.finished;
    return search.isHeard;
  };
  assert.deepEqual([await isHeard(0), await isHeard(1), await isHeard(2)], [false, false, true]);
  assert.equal(await isHeard(1, nodes.slice(1, 3)), true, 'nodes that failed before are not queried');
  assert.equal(await isHeard(4, nodes), false, 'no known node was queried');
  const own = { host: nodeAddress(1).host, port: 9999 };
  for (const start of [[], [own]]) {
    const search = setUp(start).lookup();
    await search.finished;
    assert.equal(search.isHeard, true);
  }
  const ended = setUp(nodes, { ask: () => new Promise(() => {}) }).lookup();
  ended.stop();
  assert.equal(ended.isHeard, false, 'the time limit of a read may end it early');
});

test('a lookup queries the closest nodes first, up to 5 in parallel and 160 in total', async () => {
  const nodes = Array.from({ length: 300 }, (_, n) => ({ ...nodeAddress(n), id: nodeId(nodeAddress(n)) }));
  const waiting = setUp(nodes, { ask: () => new Promise(() => {}), parallel: 5 });
  waiting.lookup();
  assert.deepEqual(
    waiting.asked.map(({ host }) => host),
    closestTo(TARGET, nodes, 5).map(({ host }) => host),
  );
  const silent = setUp(nodes, { ask: async () => null });
  await silent.lookup().finished;
  assert.equal(silent.asked.length, 160);
});

test('a lookup ends when the closest nodes have answered, and ranks only nodes that did not fail', async () => {
  const nodes = Array.from({ length: 30 }, (_, n) => ({ ...nodeAddress(n), id: nodeId(nodeAddress(n)) }));
  const near = closestTo(TARGET, nodes, 30);
  const [first, second, third] = near;
  assert.ok(first && second && third);
  const ask: Ask = async (to, id) => (to.host === first.host ? null : answerOf(to, id));
  const { heard, lookup } = setUp(nodes, { ask, width: 10 });
  const search = lookup();
  await search.finished;
  assert.deepEqual(
    search.closest(2).map(({ address }) => address.host),
    [second.host, third.host],
  );
  assert.deepEqual(
    search.within(2).map(({ address }) => address.host),
    [second.host, third.host],
    'a failed node does not count',
  );
  assert.ok(heard.length >= 10);
});

test('a lookup does not wait for slow nodes after enough answers, and waits 300 ms longer before', async () => {
  const nodes = Array.from({ length: 4 }, (_, n) => nodeAddress(n));
  const ask: Ask = (to, id) =>
    to.host === nodeAddress(0).host ? new Promise(() => {}) : Promise.resolve(answerOf(to, id));
  const ends = async (enough: number): Promise<number> => {
    const { clock, lookup } = setUp(nodes, { ask, enough });
    const state = { ended: false };
    void lookup().finished.then(() => {
      state.ended = true;
    });
    const started = clock.now();
    await idle();
    while (!state.ended && clock.now() - started < 5000) await clock.run(10);
    assert.equal(clock.timers, state.ended && enough > 3 ? 0 : 1);
    return clock.now() - started;
  };
  const soon = await ends(3);
  const late = await ends(4);
  assert.ok(soon > 0 && soon <= 500, `${soon} ms`);
  assert.equal(late, soon + 300);
});

test('a lookup does not wait for a node that failed recently', async () => {
  const { health, clock, lookup } = setUp([nodeAddress(1)], { ask: () => new Promise(() => {}), enough: 1 });
  health.failed(nodeAddress(1));
  const search = lookup();
  await clock.run(300);
  await search.finished;
});

test('a stopped lookup sends no request and reports no answer', async () => {
  const answer = Promise.withResolvers<void>();
  const ask: Ask = async (to, id) => {
    await answer.promise;
    return answerOf(to, id, { nodes: [nodeAddress(7)] });
  };
  const { asked, heard, lookup } = setUp([nodeAddress(1)], { ask });
  const search = lookup();
  search.stop();
  await search.finished;
  answer.resolve();
  await idle();
  assert.deepEqual([asked.length, heard.length, search.closest(5).length], [1, 0, 0]);
});

/** Nodes in blocks that `nodeAddress` does not use, as close to the target as possible. */
function nearer(blocks: number, perBlock: number): Address[] {
  const ids = Array.from({ length: blocks * 256 }, (_, n) => {
    const address = { host: `60.${n % blocks}.${(n / blocks) & 255}.1`, port: 4121 };
    return { ...address, id: nodeId(address) };
  });
  return Array.from({ length: blocks }, (_, block) => {
    const ofBlock = ids.filter(({ host }) => host.startsWith(`60.${block}.`));
    return closestTo(TARGET, ofBlock, perBlock).map(({ host, port }) => ({ host, port }));
  }).flat();
}

test('a block with many addresses near the key counts once, and receives at most 4 requests', async () => {
  const honest = Array.from({ length: 40 }, (_, n) => nodeAddress(n));
  const crowd = nearer(1, 50);
  const ask: Ask = async (to, id) => answerOf(to, id, { nodes: to.host.startsWith('60.') ? crowd : honest });
  const { asked, lookup } = setUp([...crowd.slice(0, 10), ...honest.slice(0, 10)], { ask });
  const search = lookup();
  await search.finished;
  const blocks = search.closest(search.beyond(16)).map(({ address }) => address.host.split('.').slice(0, 2).join('.'));
  assert.equal(blocks.filter((block) => block === '60.0').length, 1);
  assert.equal(new Set(blocks).size, blocks.length);
  assert.ok(asked.filter(({ host }) => host.startsWith('60.')).length <= 4);
});

test('if many blocks are closer than the other nodes, more nodes count as closest', async () => {
  const honest = Array.from({ length: 60 }, (_, n) => nodeAddress(n));
  const crowd = nearer(16, 4);
  const ask: Ask = async (to, id) => answerOf(to, id, { nodes: to.host.startsWith('60.') ? crowd : honest });
  const attacked = setUp([...crowd, ...honest.slice(0, 4)], { ask, width: 24 }).lookup();
  await attacked.finished;
  assert.equal(attacked.beyond(16), 48);
  const near = attacked.closest(attacked.beyond(16)).map(({ address }) => address.host);
  assert.ok(near.filter((host) => !host.startsWith('60.')).length >= 24);
  const calm = setUp(honest, { ask, width: 24 }).lookup();
  await calm.finished;
  assert.equal(calm.beyond(16), 16);
});

test('if all nodes are in one block, a lookup finds the closest of them', async () => {
  const nodes = Array.from({ length: 30 }, (_, n) => ({ host: `61.7.${n}.1`, port: 4121 }));
  const located = nodes.map((node) => ({ ...node, id: nodeId(node) }));
  const { lookup } = setUp(nodes.slice(0, 3), { ask: async (to, id) => answerOf(to, id, { nodes }), width: 10 });
  const search = lookup();
  await search.finished;
  assert.deepEqual(
    new Set(search.closest(10).map(({ address }) => address.host)),
    new Set(closestTo(TARGET, located, 10).map(({ host }) => host)),
  );
});

/** Addresses without a node, each closer to the target than any node of the test. */
function phantoms(count: number): Address[] {
  return Array.from({ length: count * 20 }, (_, n) => {
    const address = { host: `${45 + ((n >> 8) & 3)}.${n & 255}.77.${1 + (n >> 10)}`, port: 4121 };
    return { ...address, id: nodeId(address) };
  })
    .sort((a, b) => compareDistance(TARGET, a.id, b.id))
    .slice(0, count)
    .map(({ host, port }) => ({ host, port }));
}

test('a lookup soon ignores a node that names unreachable nodes, and finds the reachable ones', async () => {
  const honest = Array.from({ length: 60 }, (_, n) => nodeAddress(n));
  const named = phantoms(200);
  const unreachable = new Set(named.map(({ host }) => host));
  const liar = { host: '60.1.0.1', port: 4121 };
  const ask: Ask = async (to, id) => {
    if (unreachable.has(to.host)) return null;
    return answerOf(to, id, { nodes: to.host === liar.host ? named : honest });
  };
  const { asked, lookup } = setUp([liar, ...honest.slice(0, 5)], { ask, width: 24 });
  const search = lookup();
  await search.finished;
  const located = honest.map((node) => ({ ...node, id: nodeId(node) }));
  const found = new Set(search.closest(24).map(({ address }) => address.host));
  for (const { host } of closestTo(TARGET, located, 20)) assert.ok(found.has(host), host);
  assert.equal(asked.filter(({ host }) => unreachable.has(host)).length, 6);
});

test('if a third of the named nodes are unreachable, a lookup still finds all others', async () => {
  const nodes = Array.from({ length: 90 }, (_, n) => nodeAddress(n));
  const unreachable = new Set(nodes.filter((_, n) => n % 3 === 0).map(({ host }) => host));
  const ask: Ask = async (to, id) => (unreachable.has(to.host) ? null : answerOf(to, id, { nodes }));
  const { lookup } = setUp(nodes.slice(0, 20), { ask, width: 24 });
  const search = lookup();
  await search.finished;
  const alive = nodes.filter(({ host }) => !unreachable.has(host)).map((node) => ({ ...node, id: nodeId(node) }));
  assert.deepEqual(
    search.closest(20).map(({ address }) => address.host),
    closestTo(TARGET, alive, 20).map(({ host }) => host),
  );
});
