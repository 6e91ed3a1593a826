/** Which nodes stay in the routing table, and which are pinged. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Address, formatAddress } from '../../../../src/foundation/address.ts';
import { nodeId } from '../../../../src/network/records/node-address.ts';
import { QUESTIONABLE_MS, ROW_NODES, TableKeeper } from '../../../../src/network/records/rpc/table-keeper.ts';
import { TestClock } from '../../../support/test-clock.ts';

const ID = new Uint8Array(32);
const MINUTE_MS = 60_000;

/** Nodes in the row for the other half of the ids. */
function farNodes(count: number): Address[] {
  const nodes: Address[] = [];
  for (let port = 1024; nodes.length < count; port++) {
    const node = { host: '127.0.0.1', port };
    if ((nodeId(node)[0] ?? 0) >= 0x80) nodes.push(node);
  }
  return nodes;
}

class World {
  readonly clock = new TestClock();
  readonly silent = new Set<string>();
  readonly pinged: number[] = [];
  readonly log: string[] = [];
  isBusy = false;
  isStopped = false;
  readonly keeper: TableKeeper = new TableKeeper(ID, {
    clock: this.clock,
    random: () => 0,
    ping: async (node) => {
      this.pinged.push(node.port);
      if (this.isStopped) return null;
      const answers = !this.silent.has(formatAddress(node));
      if (answers) this.hear(node);
      return answers;
    },
    isBusy: () => this.isBusy,
    leavingFor: () => null,
    onAdd: ({ port }) => this.log.push(`+${port}`),
    onRemove: ({ port }) => this.log.push(`-${port}`),
    onRefresh: (id) => this.log.push(`refresh ${id[0]}`),
  });

  hear(...nodes: readonly Address[]): void {
    for (const node of nodes) this.keeper.heard(node, nodeId(node));
  }

  ports(): number[] {
    return this.keeper.table.nodes().map(({ port }) => port);
  }
}

test('a node enters the table once and leaves it once, each with an event', () => {
  const world = new World();
  const [node = assert.fail()] = farNodes(1);
  world.hear(node, node);
  world.keeper.remove(node);
  world.keeper.remove(node);
  assert.deepEqual(world.log, [`+${node.port}`, `-${node.port}`]);
});

test('the node itself is not in its table', () => {
  const world = new World();
  const [node = assert.fail()] = farNodes(1);
  world.keeper.table.moveTo(nodeId(node));
  world.hear(node);
  assert.deepEqual(world.ports(), []);
});

test('a node that does not answer a ping leaves the table, unless this node is stopping', async () => {
  const world = new World();
  const [dead = assert.fail(), live = assert.fail()] = farNodes(2);
  world.hear(dead, live);
  world.silent.add(formatAddress(dead));
  world.keeper.start();
  await world.clock.run(40_000);
  assert.deepEqual(world.ports(), [live.port]);
  world.isStopped = true;
  world.silent.add(formatAddress(live));
  await world.clock.run(40_000);
  assert.deepEqual(world.ports(), [live.port]);
  world.keeper.stop();
  assert.equal(world.clock.timers, 0);
});

test('the nodes silent for longest are pinged: few if all were heard recently, more otherwise', async () => {
  const world = new World();
  const nodes = farNodes(8);
  const ports = nodes.map(({ port }) => port);
  world.hear(...nodes);
  world.keeper.start();
  await world.clock.run(40_000);
  assert.deepEqual(world.pinged.splice(0), ports.slice(0, 2));
  world.clock.jump(MINUTE_MS);
  world.hear(nodes[0] ?? assert.fail());
  await world.clock.run(0);
  assert.deepEqual(world.pinged.splice(0), ports.slice(2, 7));
  world.clock.jump(MINUTE_MS);
  world.isBusy = true;
  await world.clock.run(0);
  assert.equal(world.pinged.length, 3);
  world.keeper.stop();
});

test('in a full row, only a node that was silent for 15 minutes is pinged, and replaced if it is unreachable', async () => {
  const world = new World();
  const nodes = farNodes(ROW_NODES + 3);
  const row = nodes.slice(0, ROW_NODES);
  const [first = assert.fail(), second = assert.fail()] = row;
  const [tooEarly = assert.fail(), rejected = assert.fail(), accepted = assert.fail()] = nodes.slice(ROW_NODES);
  const mayGetPlace = (node: Address): boolean => world.keeper.mayGetPlace(node, nodeId(node));
  assert.ok(mayGetPlace(first));
  world.hear(...row);
  await world.clock.run(QUESTIONABLE_MS - 1);
  world.hear(...row.slice(2), tooEarly);
  await world.clock.run(0);
  assert.deepEqual(world.pinged, []);
  assert.ok(!mayGetPlace(tooEarly));
  await world.clock.run(1);
  assert.ok(mayGetPlace(rejected));
  world.hear(rejected);
  await world.clock.run(0);
  assert.deepEqual(world.pinged, [first.port]);
  assert.ok(!world.ports().includes(rejected.port));
  world.silent.add(formatAddress(second));
  world.hear(accepted);
  await world.clock.run(0);
  assert.deepEqual(world.pinged, [first.port, second.port]);
  assert.ok(world.ports().includes(accepted.port) && !world.ports().includes(second.port));
  assert.equal(world.ports().length, ROW_NODES);
  assert.ok(!mayGetPlace(rejected));
});

test('a new id of this node rearranges the rows, and drops nodes that do not fit', () => {
  const world = new World();
  const { table } = world.keeper;
  table.moveTo(Uint8Array.of(0x80, ...ID.subarray(1)));
  world.hear(...farNodes(50));
  assert.equal(table.size, 50, 'several rows');
  table.moveTo(ID);
  assert.equal(table.size, ROW_NODES, 'one row');
});

test('a refresh starts every five minutes, near a known node', async () => {
  const world = new World();
  world.keeper.start();
  await world.clock.run(300_000);
  assert.deepEqual(world.log, [], 'an empty table has no node to ask');
  const [node = assert.fail()] = farNodes(1);
  world.hear(node);
  await world.clock.run(300_000);
  assert.deepEqual(world.log, [`+${node.port}`, `refresh ${nodeId(node)[0]}`]);
  world.keeper.stop();
});
