import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Compile } from 'typebox/compile';
import { REPUBLISH_INTERVAL_S } from '../../src/capabilities/directory/publishing.ts';
import type { PublicationSummary } from '../../src/capabilities/directory/summaries.ts';
import { type StatusDependencies, StatusReports } from '../../src/daemon/status.ts';
import { ConfigService } from '../../src/foundation/config/config-service.ts';
import { RECORD_TTL_S } from '../../src/foundation/domain/directory.ts';
import { OVER_UDP } from '../../src/foundation/domain/exit.ts';
import type { PathKind } from '../../src/foundation/domain/tunnels.ts';
import { selfDelegation } from '../../src/foundation/identity/delegation.ts';
import { memberOf } from '../../src/foundation/json.ts';
import { VERSION } from '../../src/foundation/version.ts';
import { relayLimits } from '../../src/network/reachability/relay.ts';
import { plainPath } from '../../src/network/transport/path.ts';
import { tunnelHandlers } from '../../src/operations/handlers/tunnels.ts';
import { nodeOperations } from '../../src/operations/node.ts';
import { tunnelOperations } from '../../src/operations/tunnels.ts';
import { testAid, testKeys } from '../support/agents.ts';
import { operationRunner } from '../support/run-operation.ts';
import { TestClock } from '../support/test-clock.ts';
import { TunnelWorld } from '../support/tunnel-world.ts';

const [NODE, PEER, AGENT] = [testAid(1), testAid(2), testAid(3)];
const PUBLISHED_AT = Date.UTC(2026, 1, 3);
const BOUND = { api_addr: '127.0.0.1:2121', dht_addr: '0.0.0.0:4121', quic_addr: '0.0.0.0:4122' };
const HELPER = { nodeKey: testKeys(4).publicKey, address: '198.51.100.7:4122' };
const LENDING = {
  addresses: [{ host: '0.0.0.0', port: 4121, isTls: true }],
  failed: [{ host: '0.0.0.0', port: 443, isNamed: false, trouble: 'not_permitted' }],
  maxClients: 256,
  usage: { clients: 3, ports: 7, datagrams: 5, bytes: 500, dropped: 6 },
} as const;
const RELAYED = { sessions: 2, datagrams: 3, bytes: 2400, dropped: 1 };

/** Publication state of an agent that never published. */
const NEVER: PublicationSummary = {
  seq: 0,
  everPublished: false,
  published: false,
  lastPublishAt: null,
  nextRepublishAt: null,
  recordExpiresAt: null,
  replicas: 0,
  services: [],
  name: '',
  profile: null,
};

function setUp(more: Partial<StatusDependencies> = {}) {
  const clock = new TestClock();
  const key = testKeys(1);
  const configuration = new ConfigService({
    file: '/nonexistent/config.toml',
    environment: { SVCD_FILES_ROOT: '/srv/files', SVCD_AUTO_PUBLISH: 'false', SVCD_NAME: 'laptop' },
    flags: {},
    otherVariables: [],
  });
  const dependencies: StatusDependencies = {
    clock,
    node: { key, aid: NODE, delegation: selfDelegation(key), sign: (message) => key.sign(message) },
    dataDir: '/srv/svcd',
    configuration,
    registry: { count: () => 3 },
    directory: {
      summary: (aid) => ({
        ...NEVER,
        seq: aid === NODE ? 7 : 0,
        published: true,
        lastPublishAt: PUBLISHED_AT,
        nextRepublishAt: PUBLISHED_AT + 1000,
      }),
    },
    records: {
      reachability: () => ({
        ready: true,
        peers: 5,
        clients: 2,
        natType: 2,
        observed: [{ host: '2001:db8::9', port: 4121 }],
        inRoutingTables: false,
      }),
      peers: () => [{ host: '192.0.2.1', port: 4121, firstSeen: 0, lastSeen: PUBLISHED_AT }],
      clocks: () => ({ offsetMs: -1500, peers: 2 }),
      usage: () => ({ records: 11, bytes: 12, maxBytes: 13 }),
    },
    pool: {
      stats: () => ({ connections: 1, streams: 2, bytesSent: 30, bytesReceived: 40 }),
      connections: () => [
        {
          node: PEER,
          path: plainPath('direct', { host: '192.0.2.1', port: 4122 }),
          outbound: true,
          current: true,
          bulk: false,
          streams: 2,
          rttMs: 12,
          openedAt: PUBLISHED_AT,
          bytesSent: 30,
          bytesReceived: 40,
          packetsSent: 3,
          packetsLost: 1,
        },
      ],
    },
    lanes: { stats: () => ({ lanes: 1, sent: 300, received: 400 }) },
    tunnels: { active: 4 },
    entry: { usage: { connections: 11, unread: 0, accepted: 12, refused: 13, failed: 14, bytes: 15 } },
    ownAddresses: {
      current: () => ({ endpoints: ['quic://192.0.2.9:4122'], mapped: [], natType: 2, helpers: [HELPER] }),
      known: () => [{ address: { host: '192.0.2.9', port: 4122 }, source: 'observed', verifiedBy: 'peers' }],
    },
    reach: {
      relay: { limits: relayLimits(configuration.current), use: () => RELAYED, helps: () => true },
      lending: LENDING,
    },
    portMapper: {
      view: () => ({
        state: 'mapped',
        ports: [
          {
            protocol: 'upnp',
            internalPort: 4122,
            external: { host: '198.51.100.7', port: 4122 },
            expiresAt: 0,
          },
        ],
      }),
    },
    bound: () => BOUND,
    pending: { view: () => ({}) },
    updater: { updateState: 'idle' },
    rollback: { isRolledBack: false },
    exit: () => OVER_UDP,
    missing: [],
    listenHosts: { missing: () => [] },
    ...more,
  };
  return { clock, reports: new StatusReports(dependencies) };
}

test('the status combines the state of all parts in its documented form', () => {
  const { clock, reports } = setUp();
  clock.advance(61_999);
  const status = reports.status();
  assert.ok(Compile(nodeOperations.status.output).Check(JSON.parse(JSON.stringify(status))));
  assert.deepEqual(status, {
    node_aid: NODE,
    name: 'laptop',
    version: VERSION,
    uptime_s: 61,
    auto_publish: false,
    node_seq: 7,
    node_published: true,
    node_last_publish_at: '2026-02-03T00:00:00.000Z',
    node_next_republish_estimate: '2026-02-03T00:00:01.000Z',
    republish_interval_s: REPUBLISH_INTERVAL_S,
    endpoint_ttl_s: RECORD_TTL_S,
    dht_peers: 5,
    dht_clients: 2,
    exit: OVER_UDP,
    network_ready: true,
    nat_type: 2,
    nat_type_label: reports.status().nat_type_label,
    observed_addrs: ['[2001:db8::9]:4121'],
    listen_addrs: ['127.0.0.1:2121', '0.0.0.0:4121', '0.0.0.0:4122'],
    port_mapping: 'mapped',
    mapped_addrs: ['198.51.100.7:4122'],
    relays: [],
    helpers: ['198.51.100.7:4122'],
    relayed: { helps: true, sessions: 2, max_sessions: 64, bytes: 2400, dropped: 1 },
    lent_ports: {
      listen_addrs: ['0.0.0.0:4121'],
      failed_addrs: [{ address: '0.0.0.0:443', trouble: 'not_permitted' }],
      ...{ clients: 3, max_clients: 256, ports: 7, bytes: 500, dropped: 6 },
    },
    tunnels_active: 4,
    bytes_up: 330,
    bytes_down: 440,
    data_dir: '/srv/svcd',
    files_root: '/srv/files',
    update_state: 'idle',
  });
  assert.match(status.nat_type_label, /restricted/i);
});

test('a node that never published has no times, and pending items are listed only if there are any', () => {
  const waiting = { [AGENT]: { mailbox: 2, chat_invites: 0, chat_unread: 0 } };
  const { reports } = setUp({ directory: { summary: () => NEVER }, pending: { view: () => waiting } });
  const status = reports.status();
  assert.deepEqual(
    [status.node_published, status.node_last_publish_at, status.node_next_republish_estimate, status.pending],
    [false, null, null, waiting],
  );
  assert.ok(Compile(nodeOperations.status.output).Check(JSON.parse(JSON.stringify(status))));
});

test('the diagnostics show public keys, addresses and times as text', async () => {
  const { reports } = setUp();
  const { identity, routing, store, stats } = reports.debug();
  assert.deepEqual(await identity(), {
    node_aid: NODE,
    node_key: Buffer.from(testKeys(1).publicKey).toString('hex'),
    agents: 3,
    endpoints: ['quic://192.0.2.9:4122'],
    addresses: [{ address: '192.0.2.9:4122', source: 'observed', verified_by: 'peers' }],
  });
  assert.deepEqual(await routing(), {
    ready: true,
    peers: 5,
    natType: 2,
    clients: 2,
    inRoutingTables: false,
    observed: ['[2001:db8::9]:4121'],
    nodes: [{ address: '192.0.2.1:4121', last_seen: '2026-02-03T00:00:00.000Z' }],
    clock: { offset_s: -1.5, peers: 2 },
  });
  assert.deepEqual(await store(), { records: 11, bytes: 12, maxBytes: 13 });
  assert.deepEqual(await stats(), {
    links: { connections: 1, streams: 2, bytesSent: 30, bytesReceived: 40 },
    connections: [
      {
        node: PEER,
        path: 'direct',
        source: '192.0.2.1',
        address: '192.0.2.1:4122',
        outbound: true,
        current: true,
        bulk: false,
        streams: 2,
        rttMs: 12,
        openedAt: '2026-02-03T00:00:00.000Z',
        bytesSent: 30,
        bytesReceived: 40,
        packetsSent: 3,
        packetsLost: 1,
      },
    ],
    tunnels: 4,
  });
});

test('no diagnostic output contains a secret key', async () => {
  const { reports } = setUp();
  const secret = Buffer.from(testKeys(1).seed).toString('hex');
  for (const report of Object.values(reports.debug()))
    assert.ok(!JSON.stringify(await report()).includes(secret), report.toString());
});

test('without reports of other nodes the clock has no offset', async () => {
  const { reports } = setUp();
  const { routing } = setUp({
    records: {
      reachability: () => ({ ready: false, peers: 0, clients: 0, natType: 0, observed: [], inRoutingTables: false }),
      peers: () => [],
      clocks: () => ({ offsetMs: null, peers: 0 }),
      usage: () => ({ records: 0, bytes: 0, maxBytes: 0 }),
    },
  }).reports.debug();
  assert.deepEqual(Reflect.get(await routing(), 'clock'), { offset_s: null, peers: 0 });
  assert.notEqual(reports.status().nat_type, 0);
});

test('the host report has the listen addresses and whether a service runs the daemon', async (t) => {
  const { reports } = setUp();
  const host = await reports.debug().host();
  assert.deepEqual(host['bound'], BOUND);
  assert.equal(host['service'], false);
  // The test process itself may or may not have an IPC channel.
  const isChild = Object.hasOwn(process, 'send');
  t.after(() => {
    delete process.env['SVCD_MANAGED'];
    if (!isChild) Reflect.deleteProperty(process, 'send');
  });
  process.env['SVCD_MANAGED'] = '1';
  if (!isChild) Reflect.set(process, 'send', () => true);
  assert.equal((await reports.debug().host())['service'], true);
});

test('metrics have current values and their documented names', () => {
  let agents = 0;
  const { reports } = setUp({ registry: { count: () => ++agents } });
  const collect = (): Record<string, number> =>
    Object.fromEntries(
      reports
        .metrics()
        .flatMap((source) => source())
        .map(({ name, samples }) => [name, samples[0]?.value ?? Number.NaN]),
    );
  const figures = {
    svcd_agents: 1,
    svcd_dht_peers: 5,
    svcd_dht_ready: 1,
    svcd_store_records: 11,
    svcd_store_bytes: 12,
    svcd_quic_connections: 1,
    svcd_quic_paths: 1,
    svcd_helpers: 1,
    svcd_relayed_sessions: 2,
    svcd_relayed_bytes_total: 2400,
    svcd_relay_dropped_total: 1,
    svcd_lent_clients: 3,
    svcd_lent_ports: 7,
    svcd_lent_bytes_total: 500,
    svcd_lent_dropped_total: 6,
    svcd_public_connections: 11,
    svcd_public_accepted_total: 12,
    svcd_public_refused_total: 13,
    svcd_public_failed_total: 14,
    svcd_public_bytes_total: 15,
    svcd_link_streams: 2,
    svcd_quic_sent_bytes_total: 30,
    svcd_bulk_lanes: 1,
    svcd_bulk_sent_bytes_total: 300,
    svcd_bulk_received_bytes_total: 400,
    svcd_quic_received_bytes_total: 40,
    svcd_tunnels: 4,
  };
  assert.deepEqual(collect(), figures);
  assert.equal(collect()['svcd_agents'], 2);
});

test('every report shows the current path when it moves from a relay to a punched path', async () => {
  await using world = await TunnelWorld.start((socket) => socket.pipe(socket));
  const { near, far } = world;
  const { reports } = setUp({ pool: near.pool, tunnels: world.tunnels });
  const changes: (string | undefined)[] = [];
  near.pool.onPathChange(({ path }) => changes.push(path?.kind));
  const reach = async (kind: PathKind): Promise<void> => {
    const way = { kind } as const;
    await near.pool.upgrade(await near.endpoint.dial(far.endpoint.address, far.key.publicKey, { way }));
  };
  const tunnels = operationRunner(
    tunnelOperations,
    tunnelHandlers({ tunnels: world.tunnels, inbound: world.inbound, localAid: () => world.local }),
  );
  const at = { params: { aid: world.remote } };
  const seen = async () => {
    const opened = await tunnels('tunnelOpen', { ...at, body: {} });
    const listed: unknown[] = memberOf(await tunnels('tunnelList'), 'tunnels') as unknown[];
    const shown = [opened, ...listed].map((one) => [memberOf(one, 'path'), memberOf(one, 'is_relayed')]);
    const stats = memberOf(await reports.debug().stats(), 'connections') as { current: boolean; path: string }[];
    const paths = reports
      .metrics()
      .flatMap((source) => source())
      .find(({ name }) => name === 'svcd_quic_paths');
    return {
      tunnels: shown,
      relays: reports.status().relays.length,
      current: stats.filter(({ current }) => current).map(({ path }) => path),
      metrics: paths?.samples.filter(({ value }) => value > 0).map(({ labels }) => labels?.['path']),
    };
  };
  await reach('relay');
  assert.deepEqual(await seen(), {
    tunnels: [
      ['relay', true],
      ['relay', true],
    ],
    relays: 1,
    current: ['relay'],
    metrics: ['relay'],
  });
  await reach('punched');
  assert.deepEqual(await seen(), {
    tunnels: [
      ['punched', false],
      ['punched', false],
    ],
    // The old path counts until its last stream has closed.
    relays: 1,
    current: ['punched'],
    metrics: ['punched', 'relay'],
  });
  assert.deepEqual(changes, ['relay', 'punched']);
});

test('packages that are missing are named', () => {
  const { reports } = setUp({ missing: ['The engine is not installed. Install it.'] });
  assert.deepEqual(reports.status().missing_packages, ['The engine is not installed. Install it.']);
  assert.equal(setUp().reports.status().missing_packages, undefined);
});

test('the status names listen addresses that the machine has lost', () => {
  const { reports } = setUp({ listenHosts: { missing: () => ['192.0.2.9'] } });
  const status = reports.status();
  assert.ok(Compile(nodeOperations.status.output).Check(JSON.parse(JSON.stringify(status))));
  assert.deepEqual(status.lost_listen_hosts, ['192.0.2.9']);
});
