import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAddress, type NodeContact } from '../../../src/foundation/address.ts';
import { BootstrapNodes, MAX_ADDRESSES_PER_NAME, type Meeting } from '../../../src/network/records/bootstrap-nodes.ts';
import { TestClock } from '../../support/test-clock.ts';

const NODE_KEY = new Uint8Array(32).fill(1);
const PORT = 4121;

/** A list, a resolver and a network that the test changes. */
function setUp(bootstrap: readonly NodeContact[]) {
  const clock = new TestClock();
  const names = new Map<string, readonly string[]>();
  const there = new Map<string, 'met' | 'other_key'>();
  const asked: string[] = [];
  const nodes = new BootstrapNodes(bootstrap, clock, async (name) => {
    asked.push(name);
    const found = names.get(name);
    if (found === undefined) throw new Error('no such name');
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

test('all addresses of a name are turned to, and it is resolved again when none of them answers', async () => {
  const world = setUp([{ host: 'node.example', port: PORT }]);
  assert.deepEqual(await world.meet(), [false]);
  assert.deepEqual(world.states(), ['unresolved']);
  world.names.set('node.example', ['2001:db8::1', '192.0.2.1', '192.0.2.2']);
  assert.deepEqual(await world.meet(), [false]);
  assert.deepEqual(world.states(), ['silent']);
  world.names.set('node.example', ['192.0.2.3', '192.0.2.4']);
  world.there.set('192.0.2.4:4121', 'met');
  assert.deepEqual(await world.meet(), [true]);
  assert.deepEqual(world.states(), ['met']);
  assert.deepEqual(world.addresses(), ['192.0.2.3:4121', '192.0.2.4:4121']);
  await world.meet();
  assert.equal(world.asked.length, 3, 'what answered is used for a while');
  world.there.clear();
  world.names.clear();
  await world.meet();
  await world.meet();
  assert.equal(world.asked.length, 4, 'at once where it answered before, and then it is asked');
  assert.deepEqual(world.states(), ['silent']);
  assert.equal(world.addresses().length, 2, 'what it led to before stays where nothing comes');
});

test('a name is resolved again after a while though its node answers', async () => {
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

test('a name may lead to a few addresses, and only to those of IPv4', async () => {
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

test('a contact with a key is one only where it proves the key', async () => {
  const world = setUp([{ host: '192.0.2.1', port: PORT, nodeKey: NODE_KEY }]);
  assert.deepEqual(world.addresses(), [], 'not before');
  world.there.set('192.0.2.1:4121', 'other_key');
  assert.deepEqual(await world.meet(), [false]);
  assert.deepEqual([world.states(), world.addresses()], [['other_key'], []]);
  world.there.set('192.0.2.1:4121', 'met');
  assert.deepEqual(await world.meet(), [true]);
  assert.deepEqual([world.states(), world.addresses()], [['met'], ['192.0.2.1:4121']]);
  world.there.set('192.0.2.1:4121', 'other_key');
  await world.meet();
  assert.deepEqual(world.addresses(), [], 'nor where it proves another one later');
});

test('a contact that is joined stays where it was met, until it is forgotten', async () => {
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
