import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { testAid, testKeys } from '../../support/agents.ts';
import { withCode } from '../../support/link-world.ts';
import { HELPER, ReachWorld } from '../../support/reach-world.ts';

const PING = { count: 1, intervalMs: 100, timeoutMs: 5000, disableRelay: false };
const never = new AbortController().signal;

/** Facts of a record network. */
function recordsWith(change: object, offsetMs: number | null = null) {
  const facts = { ready: true, peers: 0, clients: 0, natType: 0, observed: [], inRoutingTables: false };
  return {
    neighbours: () => [],
    clocks: () => ({ offsetMs, peers: 0 }),
    reachability: () => ({ ...facts, ...change }),
  };
}

test('a link names the agents that use it, with their labels', async () => {
  await using world = await ReachWorld.start();
  assert.deepEqual(world.report.links(), []);
  const link = await world.near.links.open(world.local, world.remote, 'tcp');
  const [one, ...rest] = world.report.links();
  assert.deepEqual(rest, []);
  assert.deepEqual(
    [one?.node, one?.current, one?.outbound, one?.use],
    [nativeAid(world.far.key.publicKey), true, true, 'all'],
  );
  assert.deepEqual(one?.agents, [{ aid: world.remote, label: 'bob', localAids: [world.local] }]);
  link.destroy();
});

test('the connection to a helper has its use', async () => {
  await using world = await ReachWorld.start({ helpers: { has: () => true, addresses: [], current: [] } });
  await world.near.pool.connect(world.world.locate(world.remote, false), never);
  assert.deepEqual(
    world.report.links().map(({ use }) => use),
    ['helper'],
  );
});

test('nodes of the routing table are sorted, and helpers are marked by key or by address', async () => {
  const helpers = { has: () => false, addresses: [{ host: '192.0.2.1', port: 4131 }], current: [] };
  await using world = await ReachWorld.start();
  await using other = await ReachWorld.start({ helpers });
  const shown = (report: ReachWorld['report']) =>
    report.peers().map(({ port, node, isHelper }) => [port, node, isHelper]);
  const key = nativeAid(HELPER.nodeKey);
  assert.deepEqual(shown(world.report), [
    [4131, null, false],
    [4121, key, true],
  ]);
  assert.deepEqual(shown(other.report), [
    [4131, null, true],
    [4121, key, false],
  ]);
});

test('the check merges known facts, each address once', async () => {
  await using world = await ReachWorld.start({ interfaces: () => ['127.0.0.1', '10.0.0.2', 'fe80::1', '2001:db8::1'] });
  const { addresses, ipv4, ipv6, helpers, clock, relaysAllowed, natType, isReached } = world.report.check();
  assert.deepEqual(
    addresses.map(({ address, isTold, verifiedAt }) => [address.host, isTold, verifiedAt]),
    [
      ['203.0.113.9', false, null],
      ['10.0.0.2', true, null],
    ],
  );
  assert.deepEqual(ipv4, { addresses: 1, isPublic: false, seenAs: { host: '203.0.113.9', port: 4121 } });
  assert.deepEqual([ipv6.addresses, ipv6.seenAs], [1, null]);
  assert.deepEqual(helpers, [{ node: nativeAid(HELPER.nodeKey), address: HELPER.address, rttMs: null }]);
  assert.deepEqual([clock.offsetMs, relaysAllowed, natType, isReached], [-1500, true, 3, false]);
});

test('a node is reachable if others keep it in their routing tables and no dial to it failed', async () => {
  const at = async (change: object, isRefuted = false) => {
    const state = {
      isRefuted,
      current: () => ({ endpoints: [], mapped: [], natType: 1, helpers: [] }),
      known: () => [],
    };
    await using world = await ReachWorld.start({ records: recordsWith(change), ownAddresses: state });
    return world.report.check().isReached;
  };
  assert.equal(await at({ peers: 1, natType: 1, inRoutingTables: true }), true);
  assert.equal(await at({ peers: 1, natType: 0, inRoutingTables: true }), true);
  assert.equal(await at({ clients: 1, natType: 1, inRoutingTables: true }), true);
  assert.equal(await at({ peers: 1, natType: 1 }), false);
  assert.equal(await at({ peers: 1, natType: 0 }), null, 'not known yet');
  assert.equal(await at({ natType: 1, inRoutingTables: true }), null, 'no other node is known');
  assert.equal(await at({ peers: 1, natType: 1, inRoutingTables: true }, true), false);
});

test('the paths to an agent are planned without a dial, and show the current link', async () => {
  await using world = await ReachWorld.start({ relayDisabled: () => true });
  const before = await world.report.pathsTo(world.remote, never);
  assert.deepEqual([before.isHere, before.link, before.notDirect], [false, null, null]);
  assert.equal(before.node, nativeAid(world.far.key.publicKey));
  assert.ok(before.ways.length > 0);
  assert.equal(world.near.pool.stats().connections, 0);
  await world.reach('relay');
  const after = await world.report.pathsTo(world.remote, never);
  assert.deepEqual([after.link?.path.kind, after.notDirect], ['relay', 'no_helpers']);
  await assert.rejects(world.report.pathsTo(testAid(9), never), withCode('resolve_failed'));
});

test('an agent on this node needs no path', async () => {
  await using world = await ReachWorld.start();
  const { isHere, ways, natType, node } = await world.report.pathsTo(world.local, never);
  assert.deepEqual([isHere, ways, natType, node], [true, [], 3, nativeAid(world.near.key.publicKey)]);
  const pinged = await world.report.ping({ aid: world.local, ...PING, count: 2 }, never);
  assert.deepEqual(pinged.probes, [
    { rttMs: 0, path: 'local' },
    { rttMs: 0, path: 'local' },
  ]);
});

test('a ping connects, and pauses only between its probes', async () => {
  await using world = await ReachWorld.start();
  const waits: number[] = [];
  const { clock } = world.world;
  await using timed = await ReachWorld.start({
    pool: world.near.pool,
    isHere: () => false,
    resolver: { locate: async (aid, { fresh }) => world.world.locate(aid, fresh) },
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (ms, task) => {
        if (ms !== 100) return clock.after(ms, task);
        waits.push(ms);
        task();
        return { cancel: () => {} };
      },
    },
  });
  const { probes, node, remote } = await timed.report.ping({ aid: world.remote, ...PING, count: 3 }, never);
  assert.deepEqual(
    probes.map(({ path, rttMs }) => [path, rttMs !== null && rttMs >= 0]),
    Array.from({ length: 3 }, () => ['lan', true]),
  );
  assert.equal(node, nativeAid(world.far.key.publicKey));
  assert.equal(remote?.port, world.far.endpoint.address.port);
  assert.deepEqual(waits, [100, 100]);
});

test('a node that moved is looked up again, and once only', async () => {
  const lookups: boolean[] = [];
  await using target = await ReachWorld.start();
  const { remote } = target;
  const good = target.world.locate(remote, false);
  const moved = { ...good, nodeKey: testKeys(8).publicKey };
  const start = (fresh: typeof good) =>
    ReachWorld.start({
      pool: target.near.pool,
      isHere: () => false,
      resolver: {
        locate: async (_aid, options) => {
          lookups.push(options.fresh);
          return options.fresh ? fresh : moved;
        },
      },
    });
  await using world = await start(good);
  const { probes } = await world.report.ping({ aid: remote, ...PING }, never);
  assert.deepEqual([probes.length, lookups], [1, [false, true]]);
  await using lost = await start(moved);
  await assert.rejects(lost.report.ping({ aid: remote, ...PING }, never), withCode('connect_failed'));
  assert.deepEqual(lookups, [false, true, false, true]);
});

test('a cancelled ping ends with its error', async () => {
  await using world = await ReachWorld.start();
  const stop = new AbortController();
  await world.report.ping({ aid: world.remote, ...PING }, never);
  const pinging = world.report.ping({ aid: world.remote, ...PING, count: 2, intervalMs: 60_000 }, stop.signal);
  const outcome = assert.rejects(pinging);
  setImmediate(() => stop.abort());
  await outcome;
});
