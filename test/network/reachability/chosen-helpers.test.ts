import assert from 'node:assert/strict';
import { test } from 'node:test';
import { abortable } from '../../../src/foundation/deadline.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import {
  ChosenHelpers,
  HELPER_HELLO_MS,
  LONG_KNOWN_MS,
  MAX_IDENTIFIED_NODES,
  MAX_LOST_AVOID_MS,
  NEW_NODE_PENALTY_MS,
  TARGET_HELPERS,
} from '../../../src/network/reachability/chosen-helpers.ts';
import type { StoredHelper } from '../../../src/network/reachability/helper-store.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Longer than any delay between two searches for helpers. */
const LONG_MS = 10 * 60_000;

const peer = (host: string, firstSeen = 0) => ({ host, port: 4121, firstSeen });
/** The key of the node at a host. */
const keyOf = (host: string): Uint8Array => new Uint8Array(Buffer.from(host.padEnd(32)));

interface WorldOptions {
  readonly peers: readonly string[];
  /** By host: milliseconds until the node answers. */
  readonly answersAfter?: Readonly<Record<string, number>>;
  /** By host: when the node entered the routing table. */
  readonly firstSeen?: Readonly<Record<string, number>>;
  /** The keys of hosts that do not have their default key. */
  readonly keys?: Readonly<Record<string, Uint8Array>>;
  /** The stored helpers of the previous run. */
  readonly stored?: readonly StoredHelper[];
}

function world(
  t: { after(end: () => Promise<void>): void },
  { peers, answersAfter = {}, keys = {}, firstSeen = {}, stored = [] }: WorldOptions,
) {
  const clock = new TestClock();
  const state = {
    isNeeded: true,
    silent: new Set<string>(),
    mute: new Set<string>(),
    /** Milliseconds until a hello is answered. */
    helloMs: 0,
    hellos: [] as string[],
    searches: 0,
  };
  const kept: string[] = [];
  const memory = { all: stored, keep: (helpers: readonly StoredHelper[]) => void (memory.all = helpers) };
  const reported: string[][] = [];
  const helpers = new ChosenHelpers({
    clock,
    log: silentLog,
    random: () => 0,
    nodeKey: keyOf('own'),
    isNeeded: () => state.isNeeded,
    nodes: () => peers.map((host) => peer(host, firstSeen[host] ?? -LONG_KNOWN_MS)),
    isOwnHost: () => false,
    findNodes: async () => void state.searches++,
    identify: async ({ host }) => {
      if (state.mute.has(host)) return null;
      const ms = answersAfter[host] ?? 0;
      if (ms > 0) await new Promise<void>((resolve) => clock.after(ms, resolve));
      return { nodeKey: keys[host] ?? keyOf(host), address: { host, port: 4122 } };
    },
    hello: async ({ address: { host } }, signal) => {
      state.hellos.push(host);
      if (state.silent.has(host)) throw new SvcError('connect_failed');
      const { helloMs } = state;
      if (helloMs > 0) await abortable(new Promise<void>((resolve) => clock.after(helloMs, resolve)), signal);
      if (state.mute.has(host)) await abortable(new Promise<never>(() => {}), signal);
    },
    keep: (nodeKey) => {
      const host = Buffer.from(nodeKey).toString().trim();
      kept.push(host);
      return () => void kept.splice(kept.indexOf(host), 1);
    },
    store: memory,
    onHelpers: (chosen) => void reported.push(chosen.map(({ address: { host } }) => host)),
  });
  const begin = async (): Promise<void> => {
    await helpers.start();
    await clock.run(LONG_MS / 10);
  };
  t.after(() => helpers.stop());
  return {
    clock,
    state,
    reported,
    kept,
    helpers,
    begin,
    memory,
    hosts: () => helpers.current.map(({ address }) => address.host),
  };
}

test('a node that strangers can reach has no helpers, and drops existing ones', async (t) => {
  const { state, begin, hosts, helpers, clock, reported } = world(t, { peers: ['198.51.100.1'] });
  state.isNeeded = false;
  await begin();
  assert.deepEqual(hosts(), []);
  state.isNeeded = true;
  helpers.onReachability();
  await clock.run(LONG_MS);
  assert.deepEqual(hosts(), ['198.51.100.1']);
  state.isNeeded = false;
  helpers.onReachability();
  await clock.run(LONG_MS);
  assert.deepEqual(hosts(), []);
  assert.deepEqual(reported, [['198.51.100.1'], []]);
});

test('a silent helper does not delay the search for a missing one', async (t) => {
  const { state, begin, hosts, helpers, clock } = world(t, { peers: ['198.51.100.1', '203.0.113.1'] });
  await begin();
  state.silent.add('203.0.113.1');
  helpers.onLost(keyOf('203.0.113.1'));
  await clock.run(1);
  assert.deepEqual(hosts(), ['198.51.100.1']);
  // One is back, and the other one no longer answers.
  state.silent.clear();
  state.mute.add('198.51.100.1');
  await clock.run(5_000);
  assert.deepEqual(hosts(), ['198.51.100.1', '203.0.113.1']);
});

test('a helper is replaced although the disk rejects the new ones', async (t) => {
  const { state, begin, hosts, helpers, clock, memory } = world(t, { peers: ['198.51.100.1', '203.0.113.1'] });
  await begin();
  memory.keep = () => {
    throw new SvcError('not_writable');
  };
  state.silent.add('203.0.113.1');
  helpers.onLost(keyOf('203.0.113.1'));
  await clock.run(1);
  assert.deepEqual(hosts(), ['198.51.100.1']);
});

test('the helpers with the shortest round trip are chosen, one per network if possible', async (t) => {
  const peers = ['198.51.100.1', '198.51.100.2', '203.0.113.3', '192.0.2.4', '100.200.1.5'];
  const answersAfter = { '198.51.100.1': 30, '198.51.100.2': 5, '203.0.113.3': 40, '192.0.2.4': 10, '100.200.1.5': 20 };
  const { begin, hosts } = world(t, { peers, answersAfter });
  await begin();
  assert.deepEqual(hosts(), ['198.51.100.2', '192.0.2.4', '100.200.1.5']);
});

test('a long-known node is preferred despite a slightly longer round trip', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2', '192.0.2.3', '100.200.1.4'];
  const now = Number.MAX_SAFE_INTEGER;
  const firstSeen = { '198.51.100.1': now, '100.200.1.4': now };
  const answersAfter = {
    '203.0.113.2': NEW_NODE_PENALTY_MS - 1,
    '192.0.2.3': NEW_NODE_PENALTY_MS + 20,
    '100.200.1.4': 10,
  };
  const { begin, hosts } = world(t, { peers, answersAfter, firstSeen });
  await begin();
  assert.deepEqual(hosts(), ['203.0.113.2', '198.51.100.1', '100.200.1.4']);
});

test('the connection to a helper is kept until it is replaced', async (t) => {
  const { begin, hosts, kept, state, helpers, clock } = world(t, { peers: ['198.51.100.1', '203.0.113.2'] });
  await begin();
  assert.deepEqual([...kept].sort(), [...hosts()].sort());
  state.silent.add('203.0.113.2');
  await clock.run(HELPER_HELLO_MS);
  assert.deepEqual([kept, hosts()], [['198.51.100.1'], ['198.51.100.1']]);
  await helpers.stop();
  assert.deepEqual(kept, []);
});

test('a helper with a lost connection that does not answer is replaced within two seconds', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2', '192.0.2.3', '100.200.1.4'];
  const { begin, hosts, state, helpers, clock } = world(t, { peers });
  await begin();
  const [first = ''] = hosts();
  state.mute.add(first);
  helpers.onLost(keyOf(first));
  await clock.run(2000);
  assert.equal(hosts().length, TARGET_HELPERS);
  assert.ok(!hosts().includes(first));
});

test('a lost helper that has left the routing table is a helper again half a minute after its return', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2'];
  const { begin, hosts, state, helpers, clock } = world(t, { peers });
  await begin();
  state.mute.add('203.0.113.2');
  peers.pop();
  helpers.onLost(keyOf('203.0.113.2'));
  await clock.run(LONG_MS);
  assert.deepEqual(hosts(), ['198.51.100.1']);
  state.mute.clear();
  await clock.run(MAX_LOST_AVOID_MS);
  assert.deepEqual([...hosts()].sort(), ['198.51.100.1', '203.0.113.2']);
});

test('a helper that is lost several times returns as fast as after the first time', async (t) => {
  const { begin, hosts, state, helpers, clock } = world(t, { peers: ['198.51.100.1', '203.0.113.2'] });
  await begin();
  for (let losses = 0; losses < 5; losses++) {
    state.silent.add('203.0.113.2');
    helpers.onLost(keyOf('203.0.113.2'));
    await clock.run(3_000);
    assert.deepEqual(hosts(), ['198.51.100.1']);
    state.silent.clear();
    await clock.run(10_000);
    assert.deepEqual([...hosts()].sort(), ['198.51.100.1', '203.0.113.2'], `loss ${losses}`);
  }
});

test('if a helper is missing, a node that refused gets the next request within seconds, then at growing intervals', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2', '192.0.2.3'];
  const { begin, hosts, state, clock } = world(t, { peers });
  state.silent.add('192.0.2.3');
  await begin();
  assert.deepEqual(hosts(), ['198.51.100.1', '203.0.113.2']);
  const asked = (): number => state.hellos.filter((host) => host === '192.0.2.3').length;
  const inTheFirstMinute = asked();
  assert.ok(inTheFirstMinute >= 3, `asked ${inTheFirstMinute} times per minute`);
  await clock.run(6 * LONG_MS);
  assert.ok(asked() - inTheFirstMinute <= 10, `asked ${asked() - inTheFirstMinute} times per hour`);
  assert.ok(
    state.hellos.length <= 2 * (3_600_000 / HELPER_HELLO_MS) + 2 * 10 + asked(),
    `${state.hellos.length} hellos`,
  );
  state.silent.clear();
  await clock.run(LONG_MS);
  assert.equal(hosts().length, TARGET_HELPERS);
});

test('a node that refuses at first becomes a helper within seconds after it accepts', async (t) => {
  const { helpers, hosts, state, clock } = world(t, { peers: ['198.51.100.1', '203.0.113.2', '192.0.2.3'] });
  state.silent.add('192.0.2.3');
  await helpers.start();
  await clock.run(1500);
  assert.equal(hosts().length, 2);
  state.silent.clear();
  await clock.run(4000);
  assert.equal(hosts().length, TARGET_HELPERS);
});

test('a node that enters the routing table is the missing helper within seconds, also after many searches', async (t) => {
  const peers = ['198.51.100.1'];
  const { begin, helpers, hosts, clock } = world(t, { peers });
  await begin();
  await clock.run(LONG_MS);
  peers.push('203.0.113.2');
  helpers.onNode(peer('203.0.113.2'));
  await clock.run(2_000);
  assert.deepEqual(hosts(), ['198.51.100.1', '203.0.113.2']);
});

test('after a node has entered, missing answers cost seconds again', async (t) => {
  const peers = ['198.51.100.1'];
  const { begin, helpers, hosts, clock, state } = world(t, { peers });
  await begin();
  await clock.run(LONG_MS);
  peers.push('203.0.113.2');
  state.mute.add('203.0.113.2');
  helpers.onNode(peer('203.0.113.2'));
  await clock.run(5_000);
  state.mute.clear();
  await clock.run(5_000);
  assert.deepEqual(hosts(), ['198.51.100.1', '203.0.113.2']);
});

test('a node that enters causes no requests if it refuses, or if no helper is missing', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2', '192.0.2.3'];
  const { begin, helpers, clock, state, hosts } = world(t, { peers });
  state.silent.add('192.0.2.3');
  await begin();
  await clock.run(30_000);
  const asked = state.hellos.length;
  helpers.onNode(peer('192.0.2.3'));
  await clock.run(2_000);
  assert.equal(state.hellos.length, asked);
  state.silent.clear();
  await clock.run(LONG_MS);
  assert.equal(hosts().length, TARGET_HELPERS);
  state.hellos.length = 0;
  helpers.onNode(peer('100.200.1.4'));
  await clock.run(2_000);
  assert.deepEqual(state.hellos, []);
});

test('nodes that enter again and again cause few searches', async (t) => {
  const { begin, helpers, clock, state } = world(t, { peers: ['198.51.100.1'] });
  await begin();
  await clock.run(LONG_MS);
  const before = state.searches;
  for (let i = 0; i < 1800; i++) {
    helpers.onNode(peer(`203.0.${i % 250}.2`));
    await clock.run(2_000);
  }
  const searches = state.searches - before;
  assert.ok(searches >= 10 && searches <= 300, `${searches} searches in an hour`);
});

test('if helpers are missing and no node is left to try, other nodes are searched at growing intervals', async (t) => {
  const { begin, clock, state } = world(t, { peers: ['198.51.100.1'] });
  await begin();
  assert.ok(state.searches >= 3, `${state.searches} searches`);
  const inTheFirstMinute = state.searches;
  await clock.run(6 * LONG_MS);
  assert.ok(state.searches - inTheFirstMinute <= 3_600_000 / HELPER_HELLO_MS + 3, `${state.searches} searches`);
  const complete = world(t, { peers: ['198.51.100.1', '203.0.113.2', '192.0.2.3'] });
  await complete.begin();
  assert.equal(complete.state.searches, 0);
  const many = Array.from({ length: MAX_IDENTIFIED_NODES }, (_, i) => `100.${200 + i}.1.1`);
  const mute = world(t, { peers: many });
  for (const host of many) mute.state.mute.add(host);
  await mute.begin();
  assert.equal(mute.state.searches, 0, 'nodes are left to try');
});

test('nodes in private networks become helpers only if there are no public ones', async (t) => {
  const mixed = world(t, { peers: ['192.168.1.2', '198.51.100.1'] });
  await mixed.begin();
  assert.deepEqual(mixed.hosts(), ['198.51.100.1']);
  const lan = world(t, { peers: ['192.168.1.2'] });
  await lan.begin();
  assert.deepEqual(lan.hosts(), ['192.168.1.2']);
});

test('this node is not its own helper, and a node with two addresses counts once', async (t) => {
  const keys = { '203.0.113.2': keyOf('own'), '192.0.2.3': keyOf('198.51.100.1') };
  const { begin, hosts } = world(t, { peers: ['198.51.100.1', '203.0.113.2', '192.0.2.3'], keys });
  await begin();
  assert.deepEqual(hosts(), ['198.51.100.1']);
});

test('if a node refuses, another one is used', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2', '192.0.2.3', '100.200.1.4'];
  const { begin, hosts, state } = world(t, { peers });
  state.silent.add('198.51.100.1');
  await begin();
  assert.equal(hosts().length, TARGET_HELPERS);
  assert.ok(!hosts().includes('198.51.100.1'));
});

test('a lost helper is replaced', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2', '192.0.2.3', '100.200.1.4'];
  const { begin, hosts, state, helpers, clock } = world(t, { peers });
  await begin();
  const [first = '', second, third] = hosts();
  state.silent.add(first);
  helpers.onLost(keyOf(first));
  await clock.run(0);
  assert.deepEqual(hosts().slice(0, 2), [second, third]);
  assert.equal(hosts().length, TARGET_HELPERS);
  assert.ok(!hosts().includes(first));
});

test('only helpers regularly receive a hello', async (t) => {
  const { begin, hosts, state, clock } = world(t, {
    peers: ['198.51.100.1', '203.0.113.2', '192.0.2.3', '100.200.1.4'],
  });
  await begin();
  state.hellos.length = 0;
  await clock.run(HELPER_HELLO_MS);
  assert.deepEqual(state.hellos.sort(), [...hosts()].sort());
});

test('without helpers a search is retried soon, then at growing intervals', async (t) => {
  const { begin, state, clock, hosts } = world(t, { peers: ['198.51.100.1'] });
  state.silent.add('198.51.100.1');
  await begin();
  const soon = state.hellos.length;
  await clock.run(LONG_MS / 10);
  assert.ok(soon > state.hellos.length - soon && soon > 1, `${soon} of ${state.hellos.length}`);
  state.silent.clear();
  await clock.run(2 * LONG_MS);
  assert.deepEqual(hosts(), ['198.51.100.1']);
});

test('a node that never accepts gets requests at growing intervals, even if helpers are missing', async (t) => {
  const { begin, state, clock } = world(t, { peers: ['198.51.100.1', '203.0.113.2'] });
  state.silent.add('198.51.100.1');
  await begin();
  await clock.run(6 * LONG_MS);
  const asked = (host: string): number => state.hellos.filter((one) => one === host).length;
  assert.ok(asked('198.51.100.1') < asked('203.0.113.2') / 2, `${state.hellos.length} hellos`);
});

/** The stored data of a helper. */
const storedHelper = (host: string): StoredHelper => ({
  host,
  port: 4121,
  at: { nodeKey: keyOf(host), address: { host, port: 4122 } },
  tlsPorts: [],
});
const STORED = ['192.0.2.3', '203.0.113.2', '100.200.1.4'];
/** Nodes with a shorter round trip, which would be chosen otherwise. */
const NEAR = ['198.51.100.1', '198.18.0.1', '192.88.99.1'];

test('stored helpers are used again, in their order and when needed, and no other node gets a request', async (t) => {
  const options = { peers: [...NEAR, ...STORED], stored: STORED.map(storedHelper) };
  const { clock, state, reported, helpers, hosts, memory } = world(t, options);
  state.isNeeded = false;
  await helpers.start();
  await clock.run(300);
  assert.deepEqual([hosts(), state.hellos], [[], STORED]);
  state.isNeeded = true;
  helpers.onReachability();
  await clock.run(0);
  assert.deepEqual(hosts(), STORED);
  await clock.run(LONG_MS / 10);
  assert.deepEqual([hosts(), reported.length], [STORED, 1]);
  assert.deepEqual(new Set(state.hellos), new Set(STORED));
  assert.deepEqual(
    memory.all.map(({ host }) => host),
    STORED,
  );
});

test('unreachable stored helpers are replaced as fast as without stored helpers', async (t) => {
  const [stopped = '', hangs = '', there = ''] = STORED;
  const without = world(t, { peers: NEAR });
  const { clock, state, helpers, hosts, memory } = world(t, { peers: NEAR, stored: STORED.map(storedHelper) });
  state.silent.add(stopped);
  state.mute.add(hangs);
  await Promise.all([without.helpers.start(), helpers.start()]);
  await Promise.all([without.clock.run(1_000), clock.run(1_000)]);
  assert.equal(without.hosts().length, TARGET_HELPERS);
  assert.equal(hosts().length, TARGET_HELPERS);
  assert.equal(hosts()[0], there);
  assert.deepEqual(
    memory.all.map(({ host }) => host),
    hosts(),
  );
});

test('stored helpers whose connections are slow at first are chosen before nearer nodes, in their order', async (t) => {
  const answersAfter = Object.fromEntries(STORED.map((host) => [host, 50]));
  const { state, hosts, begin, reported } = world(t, {
    peers: [...NEAR, ...STORED],
    stored: STORED.map(storedHelper),
    answersAfter,
  });
  state.helloMs = 3_000;
  await begin();
  assert.deepEqual(hosts(), STORED);
  assert.equal(reported.length, 1);
});

test('stored helpers are tried again if there was no network at first', async (t) => {
  const { clock, state, helpers, hosts } = world(t, { peers: NEAR, stored: STORED.map(storedHelper) });
  state.isNeeded = false;
  for (const host of STORED) state.silent.add(host);
  await helpers.start();
  await clock.run(LONG_MS);
  state.silent.clear();
  state.isNeeded = true;
  helpers.onReachability();
  await clock.run(1_000);
  assert.deepEqual(hosts(), STORED);
});

test('helpers are stored during a network outage, and removed if strangers can reach the node', async (t) => {
  const { clock, state, helpers, hosts, memory, begin } = world(t, { peers: STORED });
  await begin();
  const chosen = hosts();
  for (const host of STORED) state.silent.add(host);
  await clock.run(HELPER_HELLO_MS);
  assert.deepEqual(hosts(), []);
  assert.ok(memory.all.length > 0 && memory.all.every(({ host }) => chosen.includes(host)));
  state.silent.clear();
  await clock.run(LONG_MS);
  state.isNeeded = false;
  helpers.onReachability();
  await clock.run(1_000);
  assert.deepEqual(memory.all, []);
});

test('a stored helper in a private network is not used if the routing table has public nodes', async (t) => {
  const { begin, hosts } = world(t, { peers: NEAR, stored: [storedHelper('192.168.1.7')] });
  await begin();
  assert.deepEqual(new Set(hosts()), new Set(NEAR));
});
