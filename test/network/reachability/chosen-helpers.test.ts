import assert from 'node:assert/strict';
import { test } from 'node:test';
import { abortable } from '../../../src/foundation/deadline.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import {
  ChosenHelpers,
  HELPER_HELLO_MS,
  LONG_KNOWN_MS,
  NEW_NODE_PENALTY_MS,
  TARGET_HELPERS,
} from '../../../src/network/reachability/chosen-helpers.ts';
import type { StoredHelper } from '../../../src/network/reachability/helper-store.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Longer than any pause of one that looks for helpers. */
const LONG_MS = 10 * 60_000;

const peer = (host: string, firstSeen = 0) => ({ host, port: 4121, firstSeen });
/** The key of the node at a host. */
const keyOf = (host: string): Uint8Array => new Uint8Array(Buffer.from(host.padEnd(32)));

interface WorldOptions {
  readonly peers: readonly string[];
  /** By host: milliseconds until it says who it is. */
  readonly answersAfter?: Readonly<Record<string, number>>;
  /** By host: since when it is in the table. */
  readonly firstSeen?: Readonly<Record<string, number>>;
  /** The keys of hosts, where they are not their own. */
  readonly keys?: Readonly<Record<string, Uint8Array>>;
  /** Its helpers before it was started. */
  readonly remembered?: readonly StoredHelper[];
}

function world(
  t: { after(end: () => Promise<void>): void },
  { peers, answersAfter = {}, keys = {}, firstSeen = {}, remembered = [] }: WorldOptions,
) {
  const clock = new TestClock();
  const state = { isNeeded: true, silent: new Set<string>(), mute: new Set<string>(), hellos: [] as string[] };
  const kept: string[] = [];
  const memory = { all: remembered, keep: (helpers: readonly StoredHelper[]) => void (memory.all = helpers) };
  const told: string[][] = [];
  const helpers = new ChosenHelpers({
    clock,
    log: silentLog,
    random: () => 0,
    nodeKey: keyOf('own'),
    isNeeded: () => state.isNeeded,
    nodes: () => peers.map((host) => peer(host, firstSeen[host] ?? -LONG_KNOWN_MS)),
    isOwnHost: () => false,
    identify: async ({ host }) => {
      const ms = answersAfter[host] ?? 0;
      if (ms > 0) await new Promise<void>((resolve) => clock.after(ms, resolve));
      return { nodeKey: keys[host] ?? keyOf(host), address: { host, port: 4122 } };
    },
    hello: async ({ address: { host } }, signal) => {
      state.hellos.push(host);
      if (state.silent.has(host)) throw new SvcError('connect_failed');
      if (state.mute.has(host)) await abortable(new Promise<never>(() => {}), signal);
    },
    keep: (nodeKey) => {
      const host = Buffer.from(nodeKey).toString().trim();
      kept.push(host);
      return () => void kept.splice(kept.indexOf(host), 1);
    },
    store: memory,
    changed: (chosen) => void told.push(chosen.map(({ address: { host } }) => host)),
  });
  const begin = async (): Promise<void> => {
    await helpers.start();
    await clock.run(LONG_MS / 10);
  };
  t.after(() => helpers.stop());
  return {
    clock,
    state,
    told,
    kept,
    helpers,
    begin,
    memory,
    hosts: () => helpers.current.map(({ address }) => address.host),
  };
}

test('a node that strangers reach has no helpers, and gives up those it had', async (t) => {
  const { state, begin, hosts, helpers, clock, told } = world(t, { peers: ['198.51.100.1'] });
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
  assert.deepEqual(told, [['198.51.100.1'], []]);
});

test('the nearest become helpers, of each network one where there are others', async (t) => {
  const peers = ['198.51.100.1', '198.51.100.2', '203.0.113.3', '192.0.2.4', '100.200.1.5'];
  const answersAfter = { '198.51.100.1': 30, '198.51.100.2': 5, '203.0.113.3': 40, '192.0.2.4': 10, '100.200.1.5': 20 };
  const { begin, hosts } = world(t, { peers, answersAfter });
  await begin();
  assert.deepEqual(hosts(), ['198.51.100.2', '192.0.2.4', '100.200.1.5']);
});

test('one that has been known for long is worth a longer answer, and not any', async (t) => {
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

test('connections to helpers are kept as long as they are helpers', async (t) => {
  const { begin, hosts, kept, state, helpers, clock } = world(t, { peers: ['198.51.100.1', '203.0.113.2'] });
  await begin();
  assert.deepEqual([...kept].sort(), [...hosts()].sort());
  state.silent.add('203.0.113.2');
  await clock.run(HELPER_HELLO_MS);
  assert.deepEqual([kept, hosts()], [['198.51.100.1'], ['198.51.100.1']]);
  await helpers.stop();
  assert.deepEqual(kept, []);
});

test('a helper whose connection is lost and that does not answer is replaced within two seconds', async (t) => {
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

test('where one is missing, who would not help at first is asked again within seconds, and then ever less often', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2', '192.0.2.3'];
  const { begin, hosts, state, clock } = world(t, { peers });
  state.silent.add('192.0.2.3');
  await begin();
  assert.deepEqual(hosts(), ['198.51.100.1', '203.0.113.2']);
  const asked = (): number => state.hellos.filter((host) => host === '192.0.2.3').length;
  const inTheFirstMinute = asked();
  assert.ok(inTheFirstMinute >= 3, `asked ${inTheFirstMinute} times in a minute`);
  await clock.run(6 * LONG_MS);
  assert.ok(asked() - inTheFirstMinute <= 10, `asked ${asked() - inTheFirstMinute} times in an hour`);
  assert.ok(
    state.hellos.length <= 2 * (3_600_000 / HELPER_HELLO_MS) + 2 * 10 + asked(),
    `${state.hellos.length} hellos`,
  );
  state.silent.clear();
  await clock.run(LONG_MS);
  assert.equal(hosts().length, TARGET_HELPERS);
});

test('one that helps a moment after it would not is a helper a moment later', async (t) => {
  const { helpers, hosts, state, clock } = world(t, { peers: ['198.51.100.1', '203.0.113.2', '192.0.2.3'] });
  state.silent.add('192.0.2.3');
  await helpers.start();
  await clock.run(1500);
  assert.equal(hosts().length, 2);
  state.silent.clear();
  await clock.run(4000);
  assert.equal(hosts().length, TARGET_HELPERS);
});

test('nodes of our own networks help only where there are no others', async (t) => {
  const mixed = world(t, { peers: ['192.168.1.2', '198.51.100.1'] });
  await mixed.begin();
  assert.deepEqual(mixed.hosts(), ['198.51.100.1']);
  const lan = world(t, { peers: ['192.168.1.2'] });
  await lan.begin();
  assert.deepEqual(lan.hosts(), ['192.168.1.2']);
});

test('neither this node nor one node twice', async (t) => {
  const keys = { '203.0.113.2': keyOf('own'), '192.0.2.3': keyOf('198.51.100.1') };
  const { begin, hosts } = world(t, { peers: ['198.51.100.1', '203.0.113.2', '192.0.2.3'], keys });
  await begin();
  assert.deepEqual(hosts(), ['198.51.100.1']);
});

test('one that does not help is left alone, and another is asked', async (t) => {
  const peers = ['198.51.100.1', '203.0.113.2', '192.0.2.3', '100.200.1.4'];
  const { begin, hosts, state } = world(t, { peers });
  state.silent.add('198.51.100.1');
  await begin();
  assert.equal(hosts().length, TARGET_HELPERS);
  assert.ok(!hosts().includes('198.51.100.1'));
});

test('a helper that is lost is replaced, and one that comes back is taken again', async (t) => {
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

test('helpers hear of us again and again, and others do not', async (t) => {
  const { begin, hosts, state, clock } = world(t, {
    peers: ['198.51.100.1', '203.0.113.2', '192.0.2.3', '100.200.1.4'],
  });
  await begin();
  state.hellos.length = 0;
  await clock.run(HELPER_HELLO_MS);
  assert.deepEqual(state.hellos.sort(), [...hosts()].sort());
});

test('while nobody helps there is another search soon, and then ever more seldom', async (t) => {
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

test('one that never helps is asked ever more seldom, though helpers are missing', async (t) => {
  const { begin, state, clock } = world(t, { peers: ['198.51.100.1', '203.0.113.2'] });
  state.silent.add('198.51.100.1');
  await begin();
  await clock.run(6 * LONG_MS);
  const asked = (host: string): number => state.hellos.filter((one) => one === host).length;
  assert.ok(asked('198.51.100.1') < asked('203.0.113.2') / 2, `${state.hellos.length} hellos`);
});

/** What is remembered of a helper. */
const former = (host: string): StoredHelper => ({
  host,
  port: 4121,
  at: { nodeKey: keyOf(host), address: { host, port: 4122 } },
});
const FORMER = ['192.0.2.3', '203.0.113.2', '100.200.1.4'];
/** Nearer ones, which would be chosen before them. */
const NEAR = ['198.51.100.1', '198.18.0.1', '192.88.99.1'];

test('the helpers of the last start are kept in their order, as soon as they are needed, and nobody else is asked', async (t) => {
  const options = { peers: [...NEAR, ...FORMER], remembered: FORMER.map(former) };
  const { clock, state, told, helpers, hosts, memory } = world(t, options);
  state.isNeeded = false;
  await helpers.start();
  await clock.run(300);
  assert.deepEqual([hosts(), state.hellos], [[], FORMER]);
  state.isNeeded = true;
  helpers.onReachability();
  await clock.run(0);
  assert.deepEqual(hosts(), FORMER);
  await clock.run(LONG_MS / 10);
  assert.deepEqual([hosts(), told.length], [FORMER, 1]);
  assert.deepEqual(new Set(state.hellos), new Set(FORMER));
  assert.deepEqual(
    memory.all.map(({ host }) => host),
    FORMER,
  );
});

test('helpers of the last start that are gone are replaced as soon as others would be chosen without them', async (t) => {
  const [gone = '', hangs = '', there = ''] = FORMER;
  const without = world(t, { peers: NEAR });
  const { clock, state, helpers, hosts, memory } = world(t, { peers: NEAR, remembered: FORMER.map(former) });
  state.silent.add(gone);
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

test('helpers of the last start are asked once more where there was no network at first', async (t) => {
  const { clock, state, helpers, hosts } = world(t, { peers: NEAR, remembered: FORMER.map(former) });
  state.isNeeded = false;
  for (const host of FORMER) state.silent.add(host);
  await helpers.start();
  await clock.run(LONG_MS);
  state.silent.clear();
  state.isNeeded = true;
  helpers.onReachability();
  await clock.run(1_000);
  assert.deepEqual(hosts(), FORMER);
});

test('a node that strangers reach remembers no helpers, one that has lost its network remembers them', async (t) => {
  const { clock, state, helpers, hosts, memory, begin } = world(t, { peers: FORMER });
  await begin();
  const chosen = hosts();
  for (const host of FORMER) state.silent.add(host);
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

test('a helper of a network of our own is not taken again where the table has public nodes', async (t) => {
  const { begin, hosts } = world(t, { peers: NEAR, remembered: [former('192.168.1.7')] });
  await begin();
  assert.deepEqual(new Set(hosts()), new Set(NEAR));
});
