/** How addresses are grouped, because an attacker gets many addresses in one network. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  apartFirst,
  blockOf,
  closestApart,
  compareDistance,
  leavingFor,
  nodeId,
  voterOf,
} from '../../../src/network/records/node-address.ts';
import { ROW_NODES, TableKeeper } from '../../../src/network/records/rpc/table-keeper.ts';
import { TestClock } from '../../support/test-clock.ts';

const at = (host: string, port = 4121) => ({ host, port });

test('a block is a /16 of public addresses. Hosts of the owner and private hosts belong to no block', () => {
  const own = (host: string): boolean => host === '45.1.0.9';
  const blockOfHost = (host: string) => blockOf(at(host), own);
  assert.equal(blockOfHost('45.1.0.1'), blockOfHost('45.1.255.1'));
  assert.notEqual(blockOfHost('45.1.0.1'), blockOfHost('45.2.0.1'));
  assert.notEqual(blockOfHost('4.51.0.1'), blockOfHost('45.1.0.1'));
  for (const host of ['45.1.0.9', '127.0.0.1', '192.168.1.5', '10.0.0.1']) assert.equal(blockOfHost(host), null);
});

test('the first node of each block comes first, then the remaining nodes, each in the given order', () => {
  const nodes = ['45.1.0.1', '45.1.0.2', '192.168.1.1', '45.2.0.1', '192.168.1.2', '45.2.0.2'].map((host) => at(host));
  const hosts = apartFirst(nodes, () => false).map(({ host }) => host);
  const first = (max: number) => apartFirst(nodes, () => false, max).map(({ host }) => host);
  for (const max of [0, 1, 3, 5]) assert.deepEqual(first(max), hosts.slice(0, max));
  assert.deepEqual(hosts, ['45.1.0.1', '192.168.1.1', '45.2.0.1', '192.168.1.2', '45.1.0.2', '45.2.0.2']);
});

test('the closest nodes of different blocks come first, also if one block has most of the close nodes', () => {
  const target = nodeId(at('9.9.9.9'));
  const nodes = Array.from({ length: 400 }, (_, n) => {
    const node = at(n % 4 === 0 ? `45.${n / 4}.0.1` : `46.1.${n % 250}.${Math.floor(n / 250)}`);
    return { ...node, id: nodeId(node) };
  });
  for (const some of [nodes, nodes.slice(0, 30), nodes.filter((_, n) => n % 4 !== 0)]) {
    const sorted = some.toSorted((a, b) => compareDistance(target, a.id, b.id));
    for (const max of [0, 1, 16, 60, 400])
      assert.deepEqual(
        closestApart(target, some, () => false, max),
        apartFirst(sorted, () => false, max),
      );
  }
});

test('a vote counts per block for public nodes, per host in a LAN, and per port on this machine', () => {
  const voters = (...nodes: { host: string; port: number }[]) => new Set(nodes.map(voterOf)).size;
  assert.equal(voters(at('45.1.0.1'), at('45.1.9.9'), at('45.1.0.1', 5)), 1);
  assert.equal(voters(at('45.1.0.1'), at('45.2.0.1')), 2);
  assert.equal(voters(at('192.168.1.1'), at('192.168.1.1', 5), at('192.168.1.2')), 2);
  assert.equal(voters(at('127.0.0.1', 1), at('127.0.0.1', 2)), 2);
});

const never = (): boolean => false;

test('a node of another block replaces the last node of a block that has several', () => {
  const row = ['45.1.0.1', '45.2.0.1', '45.1.0.2', '45.2.0.2', '45.3.0.1', '192.168.1.1'].map((host) => at(host));
  assert.deepEqual(leavingFor(at('45.4.0.1'), row, never), at('45.2.0.2'));
  assert.deepEqual(leavingFor(at('127.0.0.1'), row, never), at('45.2.0.2'));
  assert.equal(leavingFor(at('45.3.0.9'), row, never), null, 'its block is already in the row');
  assert.equal(leavingFor(at('45.4.0.1'), row.slice(4), never), null, 'no block is in the row twice');
  assert.equal(leavingFor(at('45.4.0.1'), row, (host) => host === '45.2.0.2')?.host, '45.1.0.2');
});

/** Nodes with ids that differ from `id` in the first bit, so they are all in one row of its table. */
function rowMates(id: Uint8Array, count: number, hostOf: (n: number) => string): { host: string; port: number }[] {
  const mates: { host: string; port: number }[] = [];
  for (let n = 0; mates.length < count; n++) {
    const node = at(hostOf(n));
    if ((((nodeId(node)[0] ?? 0) ^ (id[0] ?? 0)) & 0x80) !== 0) mates.push(node);
  }
  return mates;
}

test('a full row of the routing table replaces nodes until each block has one', () => {
  const id = new Uint8Array(32);
  const keeper = new TableKeeper(id, {
    clock: new TestClock(),
    random: () => 0,
    ping: async () => true,
    isBusy: () => false,
    leavingFor: (newcomer, row) => leavingFor(newcomer, row, never),
    onAdd: () => {},
    onRemove: () => {},
    onRefresh: () => {},
  });
  const blocks = () => keeper.table.nodes().map((node) => blockOf(node, never));
  for (const node of rowMates(id, 60, (n) => `45.1.${n >> 8}.${n & 255}`)) keeper.heard(node, nodeId(node));
  assert.equal(blocks().length, ROW_NODES);
  for (const node of rowMates(id, 50, (n) => `46.${n}.0.1`)) keeper.heard(node, nodeId(node));
  assert.equal(blocks().length, ROW_NODES);
  assert.equal(new Set(blocks()).size, ROW_NODES);
});
