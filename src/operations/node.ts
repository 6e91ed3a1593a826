/** Operations on the node itself: health, status, configuration, diagnostics. */
import { Type } from 'typebox';
import { ConfigSchema, PATCHABLE_KEYS } from '../foundation/config/schema.ts';
import { PORT_MAPPING_STATES } from '../foundation/domain/directory.ts';
import { EXIT_STATES, UDP_TROUBLES } from '../foundation/domain/exit.ts';
import { MAX_FILE_PATH_CHARS } from '../foundation/domain/objects.ts';
import { PORT_TROUBLES } from '../foundation/domain/tunnels.ts';
import { declare } from './declare.ts';
import { AidText, AnyObject, closed, NatType, nullable, oneOf, Pending, Timestamp } from './schemas.ts';

const COMMON = { tag: 'Node' };

/** Meaning of `dht_clients`. */
export const DHT_CLIENTS = 'Client nodes that use the network through this node, such as nodes behind NATs.';

/** How datagrams leave the network of the node. */
export const ExitView = Type.Object(
  {
    state: oneOf(EXIT_STATES, {
      description:
        '`udp`: UDP is used. `connecting`: UDP does not work, and a helper is searched over TLS. `tls`: UDP over TLS is used. `failed`: neither works. `off`: UDP does not work, and `disable_relay` excludes TLS.',
    }),
    trouble: nullable(
      oneOf(UDP_TROUBLES, {
        description:
          'Why UDP is not used. `no_listen_address`: the machine has lost the address that `listen_addr` names. `no_ipv4`: the machine has IPv6 only. `udp_silent`: no node answers. `quic_dropped`: nodes answer in the record network, but not over QUIC. `path_mtu`: only packets pass that are too short for QUIC. `flows_expire`: the network drops UDP flows some time after their start.',
      }),
    ),
    helper: nullable(Type.String({ description: 'The helper that lends UDP ports over TLS, `host:port`.' })),
    proxy: nullable(Type.String({ description: 'The HTTP proxy in use, `host:port`.' })),
    has_spare: Type.Boolean({ description: 'A second helper is connected, in case the first is lost.' }),
    is_inspected: Type.Boolean({
      description: 'Something on the way decrypts TLS. Connections between nodes inside stay encrypted.',
    }),
    error: nullable(
      Type.Object(
        { code: Type.String(), message: Type.String() },
        { description: 'Why no helper can be reached over TLS, with what to do.' },
      ),
    ),
  },
  { description: 'How datagrams leave the network of this node.' },
);

export const NodeStatus = Type.Object({
  node_aid: AidText,
  name: Type.String({ description: 'The name that this node gives itself. Empty: none.' }),
  version: Type.String(),
  uptime_s: Type.Integer({ minimum: 0 }),
  disk_free_bytes: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Free space for the data directory. Absent if it cannot be read.' }),
  ),
  missing_packages: Type.Optional(
    Type.Array(Type.String(), { description: 'Native packages that other nodes are reached with, and the remedy.' }),
  ),
  auto_publish: Type.Boolean(),
  node_seq: Type.Integer({ minimum: 0 }),
  node_published: Type.Boolean(),
  node_last_publish_at: nullable(Timestamp),
  node_next_republish_estimate: nullable(Timestamp),
  republish_interval_s: Type.Integer({ minimum: 1 }),
  endpoint_ttl_s: Type.Integer({ minimum: 1 }),
  dht_peers: Type.Integer({ minimum: 0 }),
  dht_clients: Type.Integer({ minimum: 0, description: DHT_CLIENTS }),
  network_ready: Type.Boolean({
    description:
      'The first lookup finished with at least one DHT peer, or client nodes use the network through this node.',
  }),
  nat_type: NatType,
  nat_type_label: Type.String(),
  observed_addrs: Type.Array(Type.String()),
  listen_addrs: Type.Array(Type.String()),
  lost_listen_hosts: Type.Optional(
    Type.Array(Type.String(), { description: 'Listen addresses that the machine has lost.' }),
  ),
  port_mapping: oneOf(PORT_MAPPING_STATES, { description: 'State of the port mapping on the router.' }),
  mapped_addrs: Type.Array(Type.String(), { description: 'Ports of the router that lead to this node.' }),
  relays: Type.Array(Type.String()),
  helpers: Type.Array(Type.String(), {
    description: 'Helpers of this node, `host:port`. Empty if strangers can reach this node directly.',
  }),
  exit: ExitView,
  relayed: Type.Object(
    {
      helps: Type.Boolean({ description: 'This node helps others to reach each other.' }),
      sessions: Type.Integer({ minimum: 0 }),
      max_sessions: Type.Integer({ minimum: 0 }),
      bytes: Type.Integer({ minimum: 0, description: 'Since the start.' }),
      dropped: Type.Integer({ minimum: 0, description: 'Datagrams dropped over the limits, since the start.' }),
    },
    { description: 'Traffic that this node relays for others.' },
  ),
  lent_ports: Type.Object(
    {
      listen_addrs: Type.Array(Type.String(), { description: 'TCP addresses. Empty if this node lends no ports.' }),
      failed_addrs: Type.Array(
        Type.Object({
          address: Type.String(),
          trouble: oneOf(PORT_TROUBLES, {
            description:
              '`in_use`: by another program. `not_permitted`: the system does not permit it. `unusable`: the log has the error.',
          }),
        }),
        { description: 'TCP addresses that this node could not open.' },
      ),
      clients: Type.Integer({ minimum: 0 }),
      max_clients: Type.Integer({ minimum: 0 }),
      ports: Type.Integer({ minimum: 0 }),
      bytes: Type.Integer({ minimum: 0, description: 'Since the start.' }),
      dropped: Type.Integer({ minimum: 0, description: 'Datagrams that were not permitted or exceeded a limit.' }),
    },
    { description: 'UDP ports that this node lends to others over TLS.' },
  ),
  tunnels_active: Type.Integer({ minimum: 0 }),
  bytes_up: Type.Integer({ minimum: 0 }),
  bytes_down: Type.Integer({ minimum: 0 }),
  data_dir: Type.String(),
  files_root: Type.String({ description: 'Folder for objects. Empty if objects are off.' }),
  update_state: Type.String(),
  database_rolled_back: Type.Optional(
    Type.Boolean({
      description:
        'The database lost its latest changes. All agents are closed to other nodes until the owner confirms.',
    }),
  ),
  pending: Type.Optional(Pending),
});

function debug(topic: string, summary: string) {
  return { summary, route: `GET /debug/${topic}`, output: AnyObject, tag: 'Diagnostics' } as const;
}

/** The patchable keys, all optional. */
const PatchableConfig = Type.Partial(Type.Pick(ConfigSchema, [...PATCHABLE_KEYS]), { additionalProperties: false });

export const nodeOperations = declare(COMMON, {
  health: {
    summary: 'Shows that the daemon answers.',
    route: 'GET /health',
    output: Type.Object({ status: Type.Literal('ok') }),
  },

  status: {
    summary: 'Shows the state of the node: identity, publication, network, traffic.',
    route: 'GET /status',
    output: NodeStatus,
    tool: { name: 'svc_status', description: 'State of this node and its network.' },
  },

  configGet: {
    summary: 'Shows the configured values. Secrets are redacted.',
    route: 'GET /config',
    output: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Every key of `GET /config/schema`, and two more: `overridden` maps keys that a flag or a variable sets to `flag` or `environment`; `restart_required` lists changed keys that apply after a restart.',
    }),
    tag: 'Configuration',
  },

  configPatch: {
    summary: 'Changes configuration keys, all or none. A redacted secret sent back leaves the secret unchanged.',
    route: 'PATCH /config',
    body: Type.Object({}, { additionalProperties: true, description: 'Patchable keys of `GET /config/schema`.' }),
    shownBody: PatchableConfig,
    output: Type.Object({
      ok: Type.Literal(true),
      restart_required: Type.Array(Type.String(), { description: 'Changed keys that apply after a restart.' }),
      overridden: Type.Array(Type.String(), {
        description: 'Keys that a flag or an environment variable sets. Restarting alone does not apply the change.',
      }),
    }),
    errors: ['config_invalid', 'not_writable'],
    tag: 'Configuration',
  },

  configSchema: {
    summary: 'Returns the JSON Schema of all configuration keys.',
    route: 'GET /config/schema',
    output: AnyObject,
    tag: 'Configuration',
  },

  filesRootSet: {
    summary: 'Changes the folder for objects. It applies immediately.',
    route: 'PUT /node/files-root',
    body: closed({
      path: Type.String({
        maxLength: MAX_FILE_PATH_CHARS,
        description: 'Absolute path. Empty: `files` in the data directory. `none`: objects are off.',
      }),
    }),
    output: Type.Object({
      ok: Type.Literal(true),
      files_root: Type.String({ description: 'The folder in use. Empty if objects are off.' }),
      objects_left: Type.Integer({
        minimum: 0,
        description: 'Objects in the previous folder. They are not moved, and are readable only if it is set again.',
      }),
      overridden: Type.Boolean({
        description: 'A flag or an environment variable sets the folder: nothing has changed.',
      }),
    }),
    permission: 'local_only',
    errors: ['local_only', 'config_invalid', 'not_writable'],
    tag: 'Configuration',
  },

  accessConfirm: {
    summary: 'Opens the agents again after the database lost changes.',
    route: 'POST /node/access/confirm',
    output: Type.Object({
      ok: Type.Literal(true),
      was_closed: Type.Boolean({ description: 'False if the agents were not closed.' }),
    }),
    permission: 'local_only',
    errors: ['local_only', 'not_writable'],
    tag: 'Access control',
  },

  debugIdentity: debug('identity', 'Node key and local agents.'),

  debugRouting: debug('routing', 'DHT routing table and reachability.'),

  debugStore: debug('store', 'Records stored for other nodes, by type.'),

  debugStats: debug('stats', 'Counters of links, calls and the DHT.'),

  debugHost: debug('host', 'Process, machine and listening addresses.'),
});
