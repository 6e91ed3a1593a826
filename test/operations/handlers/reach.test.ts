import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReachDependencies } from '../../../src/capabilities/reach/reach-report.ts';
import type { Address } from '../../../src/foundation/address.ts';
import { OVER_UDP } from '../../../src/foundation/domain/exit.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { reachHandlers } from '../../../src/operations/handlers/reach.ts';
import type { Loose, OutputOf } from '../../../src/operations/operation.ts';
import { reachOperations } from '../../../src/operations/reach.ts';
import { testAid } from '../../support/agents.ts';
import { eventually } from '../../support/eventually.ts';
import { settle, withCode } from '../../support/link-world.ts';
import { HELPER, REACH, ReachWorld } from '../../support/reach-world.ts';
import { operationRunner } from '../../support/run-operation.ts';

type Links = OutputOf<typeof reachOperations.nodeLinks>['links'];
type Pinged = OutputOf<typeof reachOperations.pingAgent>;
type Ways = OutputOf<typeof reachOperations.netcheckAgent>;

async function setUp(more: Partial<ReachDependencies> = {}) {
  const world = await ReachWorld.start(more);
  const run = operationRunner(
    reachOperations,
    reachHandlers({ reachReport: world.report, traffic: { samples: () => [] }, exit: () => OVER_UDP }),
  );
  const at = { params: { aid: world.remote } };
  return {
    world,
    run,
    links: async () => ((await run('nodeLinks')) as { links: Links }).links,
    ping: async (body: object = {}) => (await run('pingAgent', { ...at, body })) as Pinged,
    ways: async () => (await run('netcheckAgent', at)) as Ways,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

test('a link has its path, its agents and its purpose', async () => {
  await using all = await setUp();
  const { world, links } = all;
  assert.deepEqual(await links(), []);
  const link = await world.near.links.open(world.local, world.remote, 'tcp');
  const { port, host } = world.far.endpoint.address;
  const [one] = await links();
  assert.ok(one !== undefined);
  const { since, rtt_ms, bytes_up, bytes_down, packets_sent, packets_lost, ...rest } = one;
  assert.ok(Date.parse(since) > 0 && rtt_ms >= 0 && bytes_up >= 0 && bytes_down >= 0 && packets_sent >= packets_lost);
  assert.deepEqual(rest, {
    node: nativeAid(world.far.key.publicKey),
    agents: [{ aid: world.remote, label: 'bob', local_aids: [world.local] }],
    path: 'lan',
    is_relayed: false,
    remote_addr: `${host}:${port}`,
    streams: 1,
    outbound: true,
    current: true,
    use: 'all',
  });
  link.destroy();
});

test('a helper connection is marked', async () => {
  await using all = await setUp({ helpers: { has: () => true, addresses: [], current: [] } });
  const { world, links } = all;
  await world.near.pool.connect(world.world.locate(world.remote, false), new AbortController().signal);
  assert.deepEqual(
    (await links()).map(({ use, current }) => [use, current]),
    [['helper', true]],
  );
});

test('nodes of the routing table have their details, most recently seen first', async () => {
  await using all = await setUp();
  assert.deepEqual(await all.run('nodePeers'), {
    peers: [
      {
        address: '192.0.2.1:4131',
        node: null,
        last_seen: '2026-02-03T00:00:00.001Z',
        since: '2026-02-03T00:00:00.000Z',
        rtt_ms: null,
        is_bootstrap: false,
        is_helper: false,
      },
      {
        address: '192.0.2.1:4121',
        node: nativeAid(HELPER.nodeKey),
        last_seen: '2026-02-03T00:00:00.000Z',
        since: '2026-02-02T23:59:59.000Z',
        rtt_ms: 12,
        is_bootstrap: true,
        is_helper: true,
      },
    ],
  });
});

test('netcheck merges the reports of its parts, with each address once', async () => {
  await using all = await setUp();
  assert.deepEqual(await all.run('netcheck'), {
    network_ready: true,
    dht_peers: 2,
    dht_clients: 0,
    exit: OVER_UDP,
    is_reached: false,
    nat_type: 3,
    nat_type_label: 'port-restricted',
    nat_mapping: 'cone',
    addresses: [
      { address: '203.0.113.9:4122', source: 'observed', verified_by: null, verified_at: null, published: false },
      { address: '10.0.0.2:4122', source: 'lan', verified_by: null, verified_at: null, published: true },
    ],
    ipv4: { addresses: 1, is_public: false, seen_as: '203.0.113.9:4121' },
    ipv6: { addresses: 0, is_public: false, seen_as: null },
    port_mapping: 'mapped',
    mapped_ports: [
      {
        protocol: 'pcp',
        internal_port: 4122,
        external: '203.0.113.9:4122',
        expires_at: '2026-02-03T00:00:00.000Z',
      },
    ],
    helpers: [{ node: nativeAid(HELPER.nodeKey), address: '198.51.100.7:4122', rtt_ms: null }],
    helps_others: false,
    relays_allowed: true,
    clock: { offset_s: -1.5, peers: 2 },
  });
});

test('a ping opens the connection, and reports each probe and the summary', async () => {
  await using all = await setUp();
  const { probes, rtt_ms, ...rest } = await all.ping({ count: 3, interval_ms: 100 });
  assert.ok(rtt_ms !== null && rtt_ms.min <= rtt_ms.avg && rtt_ms.avg <= rtt_ms.max);
  assert.deepEqual(
    probes.map(({ path, is_relayed }) => [path, is_relayed]),
    Array.from({ length: 3 }, () => ['lan', false]),
  );
  const { host, port } = all.world.far.endpoint.address;
  assert.deepEqual(rest, {
    aid: all.world.remote,
    node: nativeAid(all.world.far.key.publicKey),
    sent: 3,
    received: 3,
    path: 'lan',
    is_relayed: false,
    remote_addr: `${host}:${port}`,
    not_direct: null,
  });
  assert.equal(all.world.near.pool.stats().connections, 1, 'one connection for all');
});

test('a ping to an agent of this daemon stays local', async () => {
  await using all = await setUp();
  const here = { params: { aid: all.world.local } };
  const pinged = (await all.run('pingAgent', { ...here, body: { count: 1 } })) as Loose<Pinged>;
  assert.deepEqual([pinged.path, pinged.received, pinged.remote_addr], ['local', 1, '']);
  const { is_here, ways } = (await all.run('netcheckAgent', here)) as Ways;
  assert.deepEqual([is_here, ways], [true, []]);
  assert.equal(all.world.near.pool.stats().connections, 0);
});

test('an unreachable node is an error; a node that disconnects loses its probes', async () => {
  await using all = await setUp();
  const { world, ping, run } = all;
  await assert.rejects(run('pingAgent', { params: { aid: testAid(9) } }), withCode('resolve_failed'));
  const pinging = ping({ count: 2, interval_ms: 100, timeout_ms: 500 });
  await eventually(
    'the first probe is done',
    () => world.near.pool.stats().streams === 0 && world.near.pool.stats().connections === 1,
  );
  await world.far.stop();
  const { sent, received, path } = await pinging;
  assert.deepEqual([sent, received <= 1, path === null || path === 'lan'], [2, true, true]);
  await settle();
  await assert.rejects(ping({ count: 1, timeout_ms: 500 }), withCode('timeout'));
});

test('a ping without relays is refused if only a relay is available', async () => {
  await using all = await setUp();
  const { world, ping } = all;
  const known = world.world.locate(world.remote, false);
  world.world.directory.set(world.remote, { ...known, addresses: [] });
  world.near.pool.addDialer({
    kind: 'relay',
    delayMs: () => 0,
    timeoutMs: 1000,
    mayLead: () => true,
    dial: (place, signal) =>
      world.near.endpoint.dial(world.far.endpoint.address, place.nodeKey, { signal, way: { kind: 'relay' } }),
  });
  await assert.rejects(ping({ count: 1, disable_relay: true }), withCode('relay_required'));
  const relayed = await ping({ count: 1 });
  assert.deepEqual([relayed.path, relayed.is_relayed, relayed.not_direct?.code], ['relay', true, 'no_helpers']);
});

test('a connection that moves from a relay to a punched path is shown in links, paths and pings', async () => {
  await using all = await setUp();
  const { world, links, ping, ways } = all;
  await world.reach('relay');
  const seen = async () => {
    const [current] = (await links()).filter((link) => link.current);
    const { connection } = await ways();
    const { path, is_relayed, probes } = await ping({ count: 1 });
    return [current, connection, { path, is_relayed }, probes[0]].map((one) => [one?.path, one?.is_relayed]);
  };
  assert.deepEqual(
    await seen(),
    Array.from({ length: 4 }, () => ['relay', true]),
  );
  await world.reach('punched');
  assert.deepEqual(
    await seen(),
    Array.from({ length: 4 }, () => ['punched', false]),
  );
});

test('an address is verified only after a recent QUIC connection from a node; without one the node is unreachable', async () => {
  const at = Date.UTC(2026, 1, 3);
  const known = [
    { address: { host: '203.0.113.9', port: 4122 }, source: 'observed', verifiedBy: 'helper' },
    { address: { host: '203.0.113.10', port: 4122 }, source: 'observed', verifiedBy: 'peers' },
  ] as const;
  const facts = { isRefuted: false, current: () => ({ endpoints: [], mapped: [], natType: 1, helpers: [] }) };
  const state = { ...facts, known: () => known };
  const records = {
    neighbours: () => [],
    clocks: () => ({ offsetMs: null, peers: 0 }),
    reachability: () => ({ ready: true, peers: 2, clients: 0, natType: 1, observed: [], inRoutingTables: true }),
  };
  const reachedAt = ({ host }: Address) => (host === '203.0.113.9' ? at : null);
  await using all = await setUp({ ownAddresses: state, records, reach: { ...REACH, reachedAt } });
  type Netcheck = OutputOf<typeof reachOperations.netcheck>;
  const checked = async () => (await all.run('netcheck')) as Netcheck;
  const shown = async () => (await checked()).addresses.map((one) => [one.verified_by, one.verified_at]);
  assert.equal((await checked()).is_reached, true);
  assert.deepEqual(await shown(), [
    ['helper', '2026-02-03T00:00:00.000Z'],
    ['peers', null],
  ]);
  state.isRefuted = true;
  assert.equal((await checked()).is_reached, false, 'the record network is reachable, QUIC is not');
});
