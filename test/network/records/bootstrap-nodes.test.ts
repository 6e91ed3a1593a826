import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Address, formatAddress, type NodeContact } from '../../../src/foundation/address.ts';
import {
  BootstrapNodes,
  MAX_ADDRESSES_PER_NAME,
  MET_AGAIN,
  type Meeting,
} from '../../../src/network/records/bootstrap-nodes.ts';
import { TestClock } from '../../support/test-clock.ts';

const NODE_KEY = new Uint8Array(32).fill(1);
const PORT = 4121;

/** Bootstrap nodes with a list, a resolver and a network that the test changes. */
function setUp(bootstrap: readonly NodeContact[]) {
  const clock = new TestClock();
  const names = new Map<string, readonly string[]>();
  const there = new Map<string, 'met' | 'other_key'>();
  const asked: string[] = [];
  const nodes = new BootstrapNodes(bootstrap, clock, async (name) => {
    asked.push(name);
    const found = names.get(name);
    if (found === undefined) throw new Error('Name not found.');
    return found;
  });
  const meeting: Meeting = {
    greet: async (address) => there.has(formatAddress(address)),
    prove: async (address) => there.get(formatAddress(address)) ?? 'silent',
  };
  const meet = async (): Promise<boolean[]> => await Promise.all(nodes.meet(meeting));
  const states = () => nodes.contacts().map(({ state }) => state);
  const addresses = () => nodes.addresses().map(formatAddress);
  return { nodes, clock, names, there, asked, meeting, meet, states, addresses };
}

test('a node dials all addresses of a bootstrap name, and resolves the name again if no address answers', async () => {
  const world = setUp([{ host: 'node.example', port: PORT }]);
  assert.deepEqual(await world.meet(), [false]);
  assert.deepEqual(world.states(), ['unresolved']);
  world.names.set('node.example', ['2001:db8::1', '192.0.2.1', '192.0.2.2']);
  assert.deepEqual(await world.meet(), [false]);
  assert.deepEqual(world.states(), ['silent']);
  assert.deepEqual(
    world.nodes.contacts().map(({ hasAnswered }) => hasAnswered),
    [false],
  );
  world.names.set('node.example', ['192.0.2.3', '192.0.2.4']);
  world.there.set('192.0.2.4:4121', 'met');
  assert.deepEqual(await world.meet(), [true]);
  assert.deepEqual(world.states(), ['met']);
  assert.deepEqual(world.addresses(), ['192.0.2.3:4121', '192.0.2.4:4121']);
  await world.meet();
  assert.equal(world.asked.length, 3, 'cached: this address answered');
  world.there.clear();
  world.names.clear();
  await world.meet();
  await world.meet();
  assert.equal(world.asked.length, 4, 'first the address that answered before, then a new resolution');
  assert.deepEqual(world.states(), ['silent']);
  assert.deepEqual(
    world.nodes.contacts().map(({ hasAnswered }) => hasAnswered),
    [true],
    'it has answered before',
  );
  assert.equal(world.addresses().length, 2, 'a failed resolution keeps the earlier addresses');
});

test('a bootstrap name is resolved again after a while even if its node answers', async () => {
  const world = setUp([{ host: 'node.example', port: PORT }]);
  world.names.set('node.example', ['192.0.2.1']);
  world.there.set('192.0.2.1:4121', 'met');
  await world.meet();
  await world.meet();
  assert.equal(world.asked.length, 1);
  world.clock.advance(300_001);
  await world.meet();
  assert.equal(world.asked.length, 2);
});

test('only a few addresses of a bootstrap name are used, and only IPv4 addresses', async () => {
  const world = setUp([
    { host: 'many.example', port: PORT },
    { host: 'six.example', port: PORT },
    { host: '2001:db8::1', port: PORT },
  ]);
  world.names.set(
    'many.example',
    Array.from({ length: 20 }, (_, i) => `192.0.2.${i}`),
  );
  world.names.set('six.example', ['2001:db8::2']);
  await world.meet();
  assert.equal(world.addresses().length, MAX_ADDRESSES_PER_NAME);
  assert.deepEqual(world.states(), ['silent', 'ipv6', 'ipv6']);
});

test('a contact with an IPv6 address is used at the IPv4 address that it turns out to have', async () => {
  const world = setUp([{ host: '2001:db8::2', port: PORT }]);
  assert.deepEqual(await world.meet(), [false]);
  assert.deepEqual(world.states(), ['ipv6']);
  world.names.set('2001:db8::2', ['192.0.2.1']);
  world.there.set('192.0.2.1:4121', 'met');
  assert.deepEqual(await world.meet(), [true]);
  assert.deepEqual(world.addresses(), ['192.0.2.1:4121']);
});

test('a contact with a key is used only after it has proven the key', async () => {
  const world = setUp([{ host: '192.0.2.1', port: PORT, nodeKey: NODE_KEY }]);
  assert.deepEqual(world.addresses(), [], 'the key is not proven yet');
  world.there.set('192.0.2.1:4121', 'other_key');
  assert.deepEqual(await world.meet(), [false]);
  assert.deepEqual([world.states(), world.addresses()], [['other_key'], []]);
  world.there.set('192.0.2.1:4121', 'met');
  assert.deepEqual(await world.meet(), [true]);
  assert.deepEqual([world.states(), world.addresses()], [['met'], ['192.0.2.1:4121']]);
  world.there.set('192.0.2.1:4121', 'other_key');
  await world.meet();
  assert.deepEqual(world.addresses(), [], 'a later proof of another key removes it');
});

test('a contact that lost one answer responds while the routing table has it', async () => {
  const contact = { host: '192.0.2.1', port: PORT, nodeKey: NODE_KEY };
  const world = setUp([contact]);
  const seen = (...inTable: readonly string[]) =>
    world.nodes.contacts(({ host }) => inTable.includes(host)).map(({ state }) => state);
  await world.meet();
  assert.deepEqual(seen(contact.host), ['silent'], 'the key is not proven yet');
  world.there.set('192.0.2.1:4121', 'met');
  await world.meet();
  world.there.clear();
  await world.meet();
  assert.deepEqual(seen(), ['silent']);
  assert.deepEqual(seen('192.0.2.2'), ['silent']);
  assert.deepEqual(seen(contact.host), ['met']);
  world.there.set('192.0.2.1:4121', 'other_key');
  await world.meet();
  assert.deepEqual(seen(contact.host), ['other_key']);

  const { nodes, meet } = setUp([{ host: '192.0.2.1', port: PORT }]);
  await meet();
  assert.equal(nodes.contacts()[0]?.hasAnswered, false);
  assert.equal(nodes.contacts(() => true)[0]?.hasAnswered, true, 'it entered the table by another way');
});

test('the last nodes that left are met again each time, and other known nodes in turn', async () => {
  const { nodes } = setUp([]);
  const address = (i: number) => ({ host: `192.0.2.${i}`, port: PORT });
  const met = async (): Promise<number[]> => {
    const hosts: string[] = [];
    const greet = async ({ host }: Address): Promise<boolean> => hosts.push(host) > 0;
    await Promise.all(nodes.meetAgain({ greet, prove: async () => 'silent' }, ({ host }) => host === '192.0.2.2'));
    return hosts.map((host) => Number(host.split('.').at(-1)));
  };
  for (let i = 1; i <= MET_AGAIN; i++) nodes.add(address(i));
  assert.deepEqual(new Set(await met()), new Set([1, 3, 4, 5, 6, 7, 8]));
  for (let i = 1; i <= 10; i++) nodes.left(address(10 + i));
  nodes.left(address(5));
  const rounds = [await met(), await met(), await met()];
  for (const round of rounds) assert.deepEqual(round.slice(0, MET_AGAIN / 2), [5, 20, 19, 18]);
  const others = rounds.flatMap((round) => round.slice(MET_AGAIN / 2));
  assert.deepEqual(others, [17, 16, 15, 14, 13, 12, 11, 8, 7, 6, 4, 3]);
  assert.deepEqual((await met()).slice(MET_AGAIN / 2), [1, 17, 16, 15]);
});

test('nodes that left the table are contacted when it is empty, each once', async () => {
  const { nodes, there, meet, meeting } = setUp([]);
  const [left, both] = [
    { host: '192.0.2.1', port: PORT },
    { host: '192.0.2.2', port: PORT },
  ];
  nodes.add(both);
  for (const node of [left, both]) nodes.left(node);
  there.set(formatAddress(left), 'met');
  assert.deepEqual(await meet(), [false, true]);
  const greeted: string[] = [];
  const greet = async ({ host }: Address): Promise<boolean> => greeted.push(host) === 0;
  await Promise.all(nodes.meet({ ...meeting, greet }));
  assert.deepEqual(greeted.sort(), [left.host, both.host]);
});

test('contacts that did not answer the last time are not likely to, but are remembered with those that left', async () => {
  const { nodes, there, meet } = setUp([
    { host: '192.0.2.1', port: PORT },
    { host: '192.0.2.2', port: PORT },
  ]);
  nodes.add({ host: '192.0.2.3', port: PORT });
  nodes.add({ host: '192.0.2.4', port: PORT });
  nodes.left({ host: '192.0.2.5', port: PORT });
  const likely = (): string[] => nodes.likely().map(({ host }) => host);
  assert.deepEqual(likely(), ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']);
  for (const host of ['192.0.2.2', '192.0.2.4']) there.set(`${host}:${PORT}`, 'met');
  await meet();
  assert.deepEqual(likely(), ['192.0.2.2', '192.0.2.4']);
  assert.deepEqual(
    nodes.remembered().map(({ host }) => host),
    ['192.0.2.3', '192.0.2.4', '192.0.2.5'],
  );
});

test('a joined contact stays at its address until it is forgotten', async () => {
  const world = setUp([]);
  const contact = { host: '192.0.2.1', port: PORT, nodeKey: NODE_KEY };
  assert.equal(await world.nodes.join(contact, world.meeting), 'silent');
  assert.deepEqual(world.states(), []);
  world.there.set('192.0.2.1:4121', 'met');
  assert.equal(await world.nodes.join(contact, world.meeting), 'met');
  assert.equal(await world.nodes.join({ ...contact }, world.meeting), 'met');
  assert.deepEqual(world.states(), ['met']);
  world.nodes.forget({ ...contact });
  assert.deepEqual([world.states(), world.addresses()], [[], []]);
});
