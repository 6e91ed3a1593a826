/** Operations on how this node reaches others and is reached: its links, its peers, what stands before it, pings. */
import { Type } from 'typebox';
import { NAT_MAPPINGS, PORT_MAPPING_STATES } from '../foundation/domain/directory.ts';
import {
  ADDRESS_SOURCES,
  ADDRESS_VERIFIERS,
  LINK_USES,
  MAPPING_PROTOCOLS,
  MAX_PING_COUNT,
  MAX_PING_INTERVAL_MS,
  MAX_PING_TIMEOUT_MS,
  MIN_PING_INTERVAL_MS,
  NOT_DIRECT_REASONS,
  PING_COUNT,
  PING_INTERVAL_MS,
  PING_TIMEOUT_MS,
  TRAFFIC_HOURS,
} from '../foundation/domain/reach.ts';
import { LINK_PATH_KINDS, PATH_KINDS } from '../foundation/domain/tunnels.ts';
import { declare } from './declare.ts';
import { RESOLVE_ERRORS } from './directory.ts';
import { DHT_CLIENTS } from './node.ts';
import { AidParams, AidText, closed, NatType, nullable, oneOf, Timestamp } from './schemas.ts';

const COMMON = { tag: 'Reach' };

const AddressText = Type.String({ description: '`host:port`.' });
const Ms = Type.Number({ minimum: 0, description: 'Milliseconds.' });
const Count = Type.Integer({ minimum: 0 });

const PathOf = {
  path: oneOf(PATH_KINDS),
  is_relayed: Type.Boolean(),
  remote_addr: Type.String({ description: 'Where packets go, `host:port`: on a relayed path, the relay.' }),
  rtt_ms: Ms,
};

const LinkView = Type.Object({
  node: AidText,
  agents: Type.Array(
    Type.Object({
      aid: AidText,
      label: nullable(Type.String({ description: 'Of the address book.' })),
      local_aids: Type.Array(AidText, { description: 'The agents here that it speaks with.' }),
    }),
    { description: 'Agents of that node which spoke with agents here within the last hour.' },
  ),
  ...PathOf,
  since: Timestamp,
  streams: Count,
  bytes_up: Count,
  bytes_down: Count,
  packets_sent: Count,
  packets_lost: Count,
  outbound: Type.Boolean({ description: 'True where this node dialled.' }),
  current: Type.Boolean({ description: 'New streams to that node go here.' }),
  use: oneOf(LINK_USES, {
    description: '`helper`: it helps others to reach this node.',
  }),
});

const PeerView = Type.Object({
  address: AddressText,
  node: nullable(AidText),
  last_seen: Timestamp,
  since: Timestamp,
  rtt_ms: nullable(Ms),
  is_bootstrap: Type.Boolean(),
  is_helper: Type.Boolean({ description: 'It helps others to reach this node.' }),
});

const NatView = {
  nat_type: NatType,
  nat_type_label: Type.String(),
};

/** Why the way to an agent is not a direct one. */
const NotDirect = nullable(
  Type.Object({ code: oneOf(NOT_DIRECT_REASONS), text: Type.String() }, { description: 'Null where it is.' }),
);

const FamilyView = Type.Object({
  addresses: Count,
  is_public: Type.Boolean({ description: 'An interface of this machine has an address of the Internet.' }),
  seen_as: nullable(AddressText),
});

export const reachOperations = declare(COMMON, {
  nodeLinks: {
    summary: 'Lists the connections with other nodes that stand.',
    route: 'GET /node/links',
    output: Type.Object({ links: Type.Array(LinkView) }),
  },

  nodePeers: {
    summary: 'Lists the nodes of the routing table.',
    route: 'GET /node/peers',
    output: Type.Object({ peers: Type.Array(PeerView) }),
  },

  nodeTraffic: {
    summary: 'What went through this node, minute by minute, the oldest first; it is forgotten at a restart.',
    route: 'GET /node/traffic',
    query: closed({
      hours: Type.Optional(Type.Integer({ minimum: 1, maximum: TRAFFIC_HOURS, default: TRAFFIC_HOURS })),
    }),
    output: Type.Object({
      samples: Type.Array(
        Type.Object({
          at: Timestamp,
          bytes_up: Count,
          bytes_down: Count,
          links: Count,
          peers: Count,
          tunnels: Count,
          ready: Type.Boolean({ description: '`network_ready`.' }),
        }),
      ),
    }),
  },

  netcheck: {
    summary: 'Says what stands between this node and others: NAT, addresses, mapped ports, helpers, clock.',
    route: 'GET /node/netcheck',
    output: Type.Object({
      network_ready: Type.Boolean(),
      dht_peers: Count,
      dht_clients: Type.Integer({ minimum: 0, description: DHT_CLIENTS }),
      is_reached: nullable(Type.Boolean({ description: 'Strangers reach this node; null while nobody has said.' })),
      ...NatView,
      nat_mapping: oneOf(NAT_MAPPINGS, {
        description:
          'The port of this node that others see: `open` its own, `cone` one for all, `symmetric` another one for each.',
      }),
      addresses: Type.Array(
        Type.Object({
          address: AddressText,
          source: oneOf(ADDRESS_SOURCES),
          verified_by: nullable(
            oneOf(ADDRESS_VERIFIERS, {
              description:
                '`helper`: another node dialled the address over QUIC. `peers`: only the record network is reached at its host.',
            }),
          ),
          verified_at: nullable(
            Type.String({
              format: 'date-time',
              description: 'When another node last reached this one there over QUIC; null if none has lately.',
            }),
          ),
          published: Type.Boolean({ description: 'Others are told of it.' }),
        }),
        { description: 'Where this node may be reached, the best first.' },
      ),
      ipv4: FamilyView,
      ipv6: FamilyView,
      port_mapping: oneOf(PORT_MAPPING_STATES),
      mapped_ports: Type.Array(
        Type.Object({
          protocol: oneOf(MAPPING_PROTOCOLS),
          internal_port: Count,
          external: AddressText,
          expires_at: Timestamp,
        }),
      ),
      helpers: Type.Array(
        Type.Object(
          { node: AidText, address: AddressText, rtt_ms: nullable(Ms) },
          {
            description: '`rtt_ms` is null while no connection to it stands.',
          },
        ),
      ),
      helps_others: Type.Boolean(),
      relays_allowed: Type.Boolean({ description: 'False with `disable_relay`.' }),
      clock: Type.Object({
        offset_s: nullable(Type.Number({ description: 'By how many seconds the clocks of others are ahead.' })),
        peers: Count,
      }),
    }),
  },

  netcheckAgent: {
    summary: 'Says how an agent would be reached: each way in the order in which they are tried.',
    route: 'GET /node/netcheck/{aid}',
    params: AidParams,
    output: Type.Object({
      aid: AidText,
      node: AidText,
      is_here: Type.Boolean({ description: 'It is an agent of this daemon.' }),
      ...NatView,
      connection: nullable(Type.Object(PathOf, { description: 'The one that stands and is used now.' })),
      ways: Type.Array(
        Type.Object({
          path: oneOf(PATH_KINDS),
          after_ms: Ms,
          to: Type.Array(AddressText, {
            description: 'The addresses that are dialled, or the helpers that are asked.',
          }),
          may_lead: nullable(Type.Boolean({ description: 'Null where that cannot be known before.' })),
          note: Type.String(),
        }),
      ),
      not_direct: NotDirect,
    }),
    errors: RESOLVE_ERRORS,
  },

  pingAgent: {
    summary:
      'Sends probes to the node of an agent over the connection that links use, which is made where none stands.',
    route: 'POST /node/ping/{aid}',
    params: AidParams,
    body: closed({
      count: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PING_COUNT, default: PING_COUNT })),
      interval_ms: Type.Optional(
        Type.Integer({ minimum: MIN_PING_INTERVAL_MS, maximum: MAX_PING_INTERVAL_MS, default: PING_INTERVAL_MS }),
      ),
      timeout_ms: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_PING_TIMEOUT_MS,
          default: PING_TIMEOUT_MS,
          description: 'For the connection, and again for each answer.',
        }),
      ),
      disable_relay: Type.Optional(Type.Boolean({ default: false })),
    }),
    output: Type.Object({
      aid: AidText,
      node: AidText,
      probes: Type.Array(
        Type.Object(
          {
            rtt_ms: nullable(Ms),
            path: nullable(oneOf(LINK_PATH_KINDS)),
            is_relayed: Type.Boolean(),
          },
          { description: 'Null without an answer.' },
        ),
      ),
      sent: Count,
      received: Count,
      rtt_ms: nullable(Type.Object({ min: Ms, avg: Ms, max: Ms })),
      path: nullable(oneOf(LINK_PATH_KINDS, { description: 'Of the last probe.' })),
      is_relayed: Type.Boolean(),
      remote_addr: Type.String(),
      not_direct: NotDirect,
    }),
    permission: 'read',
    errors: [...RESOLVE_ERRORS, 'connect_failed', 'relay_required', 'timeout'],
  },
});
