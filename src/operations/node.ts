/** Operations on the node itself: health, status, configuration, diagnostics. */
import { Type } from 'typebox';
import { ConfigSchema, PATCHABLE_KEYS } from '../foundation/config/schema.ts';
import { PORT_MAPPING_STATES } from '../foundation/domain/directory.ts';
import { MAX_FILE_PATH_CHARS } from '../foundation/domain/objects.ts';
import { declare } from './declare.ts';
import { AidText, AnyObject, closed, NatType, nullable, oneOf, Pending, Timestamp } from './schemas.ts';

const COMMON = { tag: 'Node' };

/** What `dht_clients` counts. */
export const DHT_CLIENTS =
  'Nodes that reach the network through this one and stand in no routing table, such as those behind NATs.';

export const NodeStatus = Type.Object({
  node_aid: AidText,
  version: Type.String(),
  uptime_s: Type.Integer({ minimum: 0 }),
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
    description: 'At least one DHT peer and a finished first lookup, or nodes that reach the network through this one.',
  }),
  nat_type: NatType,
  nat_type_label: Type.String(),
  observed_addrs: Type.Array(Type.String()),
  listen_addrs: Type.Array(Type.String()),
  port_mapping: oneOf(PORT_MAPPING_STATES, { description: 'Whether the router leads ports to this node.' }),
  mapped_addrs: Type.Array(Type.String(), { description: 'Ports of the router that lead here.' }),
  relays: Type.Array(Type.String()),
  helpers: Type.Array(Type.String(), {
    description:
      'Nodes, `host:port`, that this one is connected to so that others reach it; none where they reach it anyway.',
  }),
  relayed: Type.Object(
    {
      helps: Type.Boolean({ description: 'Whether this node helps others to reach each other.' }),
      sessions: Type.Integer({ minimum: 0 }),
      max_sessions: Type.Integer({ minimum: 0 }),
      bytes: Type.Integer({ minimum: 0, description: 'Since the start.' }),
      dropped: Type.Integer({ minimum: 0, description: 'Datagrams over the limits, since the start.' }),
    },
    { description: 'What this node relays for others.' },
  ),
  tunnels_active: Type.Integer({ minimum: 0 }),
  bytes_up: Type.Integer({ minimum: 0 }),
  bytes_down: Type.Integer({ minimum: 0 }),
  data_dir: Type.String(),
  files_root: Type.String({ description: 'The folder of objects; empty where they are off.' }),
  update_state: Type.String(),
  database_rolled_back: Type.Optional(
    Type.Boolean({
      description:
        'The database has lost its newest changes: all agents are closed to other nodes until the owner confirms.',
    }),
  ),
  pending: Type.Optional(Pending),
});

function debug(topic: string, summary: string) {
  return { summary, route: `GET /debug/${topic}`, output: AnyObject, tag: 'Diagnostics' } as const;
}

/** The keys that may be changed, none of which has to be there. */
const PatchableConfig = Type.Partial(Type.Pick(ConfigSchema, [...PATCHABLE_KEYS]), { additionalProperties: false });

export const nodeOperations = declare(COMMON, {
  health: {
    summary: 'Says that the daemon answers.',
    route: 'GET /health',
    output: Type.Object({ status: Type.Literal('ok') }),
  },

  status: {
    summary: 'State of the node: identity, publication, network, traffic.',
    route: 'GET /status',
    output: NodeStatus,
    tool: { name: 'svc_status', description: 'State of this node and its network.' },
  },

  configGet: {
    summary: 'Configured values; secrets are redacted.',
    route: 'GET /config',
    output: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Every key of `GET /config/schema`; `overridden`: key to `flag` or `environment`, where the file does not decide; `restart_required`: keys whose value waits for a restart.',
    }),
    tag: 'Configuration',
  },

  configPatch: {
    summary: 'Changes configuration keys, all or none; a redacted value sent back means "unchanged".',
    route: 'PATCH /config',
    body: Type.Object(
      {},
      { additionalProperties: true, description: 'Any of the patchable keys of `GET /config/schema`.' },
    ),
    shownBody: PatchableConfig,
    output: Type.Object({
      ok: Type.Literal(true),
      restart_required: Type.Array(Type.String(), { description: 'Keys that apply at the next start.' }),
      overridden: Type.Array(Type.String(), {
        description: 'Keys that a flag or the environment decides: a restart alone does not apply them.',
      }),
    }),
    errors: ['config_invalid', 'not_writable'],
    tag: 'Configuration',
  },

  configSchema: {
    summary: 'JSON Schema of all configuration keys.',
    route: 'GET /config/schema',
    output: AnyObject,
    tag: 'Configuration',
  },

  filesRootSet: {
    summary: 'Changes the folder of objects at once; for programs on this machine.',
    route: 'PUT /node/files-root',
    body: closed({
      path: Type.String({
        maxLength: MAX_FILE_PATH_CHARS,
        description: 'Absolute; empty: `files` in the data directory; `none`: objects are off.',
      }),
    }),
    output: Type.Object({
      ok: Type.Literal(true),
      files_root: Type.String({ description: 'The folder in effect; empty where objects are off.' }),
      objects_left: Type.Integer({
        minimum: 0,
        description: 'Objects of the folder before, which stay there and cannot be read until it is set again.',
      }),
      overridden: Type.Boolean({ description: 'A flag or the environment decides it: nothing has changed.' }),
    }),
    permission: 'local_only',
    errors: ['local_only', 'config_invalid', 'not_writable'],
    tag: 'Configuration',
  },

  accessConfirm: {
    summary: 'Opens the agents again after the database lost changes; for programs on this machine.',
    route: 'POST /node/access/confirm',
    output: Type.Object({
      ok: Type.Literal(true),
      was_closed: Type.Boolean({ description: 'False if the agents were not closed: nothing has changed.' }),
    }),
    permission: 'local_only',
    errors: ['local_only', 'not_writable'],
    tag: 'Access control',
  },

  debugIdentity: debug('identity', 'Node key and the agents hosted here.'),

  debugRouting: debug('routing', 'DHT routing table and reachability.'),

  debugStore: debug('store', 'Records stored for others, by kind.'),

  debugStats: debug('stats', 'Counters of links, calls and the DHT.'),

  debugHost: debug('host', 'Process, machine and bound addresses.'),
});
