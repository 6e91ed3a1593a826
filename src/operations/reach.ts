/** Operations on reachability: connections, peers, netcheck, pings. */
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
import { DHT_CLIENTS, ExitView } from './node.ts';
import { AidParams, AidText, closed, NatType, nullable, oneOf, Timestamp } from './schemas.ts';

const COMMON = { tag: 'Reach' };

const AddressText = Type.String({ description: '`host:port`.' });
const Ms = Type.Number({ minimum: 0, description: 'Milliseconds.' });
const Count = Type.Integer({ minimum: 0 });

const PathOf = {
  path: oneOf(PATH_KINDS),
  is_relayed: Type.Boolean(),
  remote_addr: Type.String({ description: 'Destination of the packets, `host:port`. On a relayed path: the relay.' }),
  rtt_ms: Ms,
};

const LinkView = Type.Object({
  node: AidText,
  agents: Type.Array(
    Type.Object({
      aid: AidText,
      label: nullable(Type.String({ description: 'From the address book.' })),
      local_aids: Type.Array(AidText, { description: 'Local agents that communicate with it.' }),
    }),
    { description: 'Agents of that node that communicated with local agents in the last hour.' },
  ),
  ...PathOf,
  since: Timestamp,
  streams: Count,
  bytes_up: Count,
  bytes_down: Count,
  packets_sent: Count,
  packets_lost: Count,
  outbound: Type.Boolean({ description: 'This node dialed.' }),
  current: Type.Boolean({ description: 'New streams to that node use this connection.' }),
  use: oneOf(LINK_USES, {
    description: '`helper`: the peer helps others to reach this node.',
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

/** Why the connection to an agent is not direct. */
const NotDirect = nullable(
  Type.Object({ code: oneOf(NOT_DIRECT_REASONS), text: Type.String() }, { description: 'Null if it is direct.' }),
);

const FamilyView = Type.Object({
  addresses: Count,
  is_public: Type.Boolean({ description: 'An interface of this machine has a public address.' }),
  seen_as: nullable(AddressText),
});

export const reachOperations = declare(COMMON, {
  nodeLinks: {
    summary: 'Lists the open connections to other nodes.',
    route: 'GET /node/links',
    output: Type.Object({ links: Type.Array(LinkView) }),
  },

  nodePeers: {
    summary: 'Lists the nodes in the routing table.',
    route: 'GET /node/peers',
    output: Type.Object({ peers: Type.Array(PeerView) }),
  },

  nodeTraffic: {
    summary: 'Returns the traffic of this node by minute, oldest first. A restart clears it.',
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
    summary: 'Reports the network in front of this node: NAT, addresses, port mappings, helpers, clock.',
    route: 'GET /node/netcheck',
    output: Type.Object({
      network_ready: Type.Boolean(),
      dht_peers: Count,
      dht_clients: Type.Integer({ minimum: 0, description: DHT_CLIENTS }),
      exit: ExitView,
      is_reached: nullable(Type.Boolean({ description: 'Strangers can reach this node. Null if this is not known.' })),
      ...NatView,
      nat_mapping: oneOf(NAT_MAPPINGS, {
        description:
          'Port of this node that others see. `open`: its own. `cone`: the same for all. `symmetric`: a different one for each.',
      }),
      addresses: Type.Array(
        Type.Object({
          address: AddressText,
          source: oneOf(ADDRESS_SOURCES),
          verified_by: nullable(
            oneOf(ADDRESS_VERIFIERS, {
              description:
                '`helper`: another node dialed the address over QUIC. `peers`: only the record network works at this address.',
            }),
          ),
          verified_at: nullable(
            Type.String({
              format: 'date-time',
              description: 'When another node last reached this address over QUIC. Null if none has recently.',
            }),
          ),
          published: Type.Boolean({ description: 'It is in the endpoint record.' }),
        }),
        { description: 'Addresses at which this node may be reachable, best first.' },
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
            description: '`rtt_ms` is null if the helper is not connected.',
          },
        ),
      ),
      helps_others: Type.Boolean(),
      relays_allowed: Type.Boolean({ description: 'False if `disable_relay` is set.' }),
      clock: Type.Object({
        offset_s: nullable(
          Type.Number({ description: 'Offset of other clocks in seconds. Positive: they are ahead.' }),
        ),
        peers: Count,
      }),
    }),
  },

  netcheckAgent: {
    summary: 'Shows how this node would connect to an agent: all paths, in the order in which they are tried.',
    route: 'GET /node/netcheck/{aid}',
    params: AidParams,
    output: Type.Object({
      aid: AidText,
      node: AidText,
      is_here: Type.Boolean({ description: 'The agent runs on this node.' }),
      ...NatView,
      connection: nullable(Type.Object(PathOf, { description: 'The open connection in use.' })),
      ways: Type.Array(
        Type.Object({
          path: oneOf(PATH_KINDS),
          after_ms: Ms,
          to: Type.Array(AddressText, {
            description: 'Addresses to dial, or helpers to ask.',
          }),
          may_lead: nullable(Type.Boolean({ description: 'Null if it is not known in advance.' })),
          note: Type.String(),
        }),
      ),
      not_direct: NotDirect,
    }),
    errors: RESOLVE_ERRORS,
  },

  pingAgent: {
    summary: 'Sends probes to the node of an agent over its connection. Connects first if necessary.',
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
          description: 'For the connection, and for each response.',
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
          { description: 'Null without a response.' },
        ),
      ),
      sent: Count,
      received: Count,
      rtt_ms: nullable(Type.Object({ min: Ms, avg: Ms, max: Ms })),
      path: nullable(oneOf(LINK_PATH_KINDS, { description: 'Path of the last probe.' })),
      is_relayed: Type.Boolean(),
      remote_addr: Type.String(),
      not_direct: NotDirect,
    }),
    permission: 'read',
    errors: [...RESOLVE_ERRORS, 'connect_failed', 'relay_required', 'timeout'],
  },
});
