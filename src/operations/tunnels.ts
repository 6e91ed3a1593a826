/** Operations on tunnels: TCP connections to remote agents. */
import { Type } from 'typebox';
import { timeText } from '../foundation/display-text.ts';
import { MAX_ACCESS_NOTE_BYTES, MAX_ACCESS_TOKEN_CHARS, MAX_DECISION_WAIT_S } from '../foundation/domain/access.ts';
import {
  CLIENT_WAIT_MS,
  CLOSE_REASONS,
  DEFAULT_IDLE_TIMEOUT_S,
  LINK_PATH_KINDS,
  MAX_IDLE_TIMEOUT_S,
  MAX_PORT,
} from '../foundation/domain/tunnels.ts';
import { declare } from './declare.ts';
import { NextCursor, PAGE_MEMBERS, PageQuery } from './paging.ts';
import { AidParams, AidText, closed, Id, Ok, oneOf, Timestamp } from './schemas.ts';

const COMMON = { tag: 'Tunnels' };

/** Errors of reaching a remote agent. */
export const REACH_ERRORS = [
  'bad_aid',
  'local_aid_required',
  'not_found',
  'resolve_failed',
  'network_unavailable',
  'clock_wrong',
  'access_denied',
  'no_inbound',
  'inbound_unreachable',
  'connect_failed',
  'relay_required',
  'rate_limited',
  'timeout',
  'protocol_error',
] as const;

/** Further errors of calls. */
export const CALL_ERRORS = ['bad_response', 'loop_detected'] as const;

const LocalAid = Type.Optional(AidText);
/** Access token for the called agent. */
export const AccessToken = Type.Optional(
  Type.String({ maxLength: MAX_ACCESS_TOKEN_CHARS, description: 'Access token for the remote agent.' }),
);
/** How the owner of the remote agent is asked, if it must allow the caller. */
export const AskMembers = {
  note: Type.Optional(
    Type.String({
      maxLength: MAX_ACCESS_NOTE_BYTES,
      description: 'A note to the owner of the agent, if it must allow you first.',
    }),
  ),
  wait_s: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_DECISION_WAIT_S,
      default: 0,
      description: `Wait for the decision of the owner, at most ${MAX_DECISION_WAIT_S}.`,
    }),
  ),
};
const DisableRelay = Type.Optional(Type.Boolean({ default: false }));

/** Why the last connection failed. */
export const LastError = Type.Optional(
  Type.Object(
    { code: Type.String(), message: Type.String(), at: Timestamp },
    { description: 'Error of the last failed connection.' },
  ),
);
const IdleLimit = Type.Integer({
  minimum: -1,
  description: 'Closes after this many seconds without a connection. -1: never.',
});

export const TunnelView = Type.Object({
  id: Type.String(),
  local_aid: AidText,
  remote_aid: AidText,
  listen: Type.String({ description: 'Address for clients, host:port.' }),
  is_relayed: Type.Boolean(),
  path: oneOf(LINK_PATH_KINDS, {
    description:
      'Path of the newest connection, or of the next one. After a restart it is `direct` with an empty remote_addr until the first connection.',
  }),
  remote_addr: Type.String(),
  rtt_ms: Type.Number({ minimum: 0 }),
  opened_at: Timestamp,
  last_activity_at: Timestamp,
  active_conns: Type.Integer({ minimum: 0 }),
  bytes_up: Type.Integer({ minimum: 0 }),
  bytes_down: Type.Integer({ minimum: 0 }),
  idle_timeout_sec: IdleLimit,
  no_path: Type.Optional(
    Type.Object(
      {
        since: Timestamp,
        held_until: Timestamp,
        connections: Type.Integer({ minimum: 1, description: 'Connections of this tunnel without a path.' }),
      },
      {
        description:
          'Only while connections have lost their path. They continue on a new path until held_until, and are then reset.',
      },
    ),
  ),
  last_error: LastError,
});

const ClosedTunnelView = Type.Object({
  id: Type.String(),
  local_aid: AidText,
  remote_aid: AidText,
  listen: Type.String(),
  opened_at: Timestamp,
  closed_at: Timestamp,
  reason: oneOf([...CLOSE_REASONS], {
    description:
      '`idle`: no connection for idle_timeout_sec. `port_in_use`: another program used the port at the start of the daemon.',
  }),
  bytes_up: Type.Integer({ minimum: 0 }),
  bytes_down: Type.Integer({ minimum: 0 }),
  idle_timeout_sec: IdleLimit,
  last_error: LastError,
});

const TunnelParams = closed({ id: Id });

export const tunnelOperations = declare(COMMON, {
  connect: {
    summary: 'Opens a local port for one TCP connection to a remote agent.',
    route: 'POST /connect/{aid}',
    params: AidParams,
    body: closed({ local_aid: LocalAid, access_token: AccessToken, disable_relay: DisableRelay, ...AskMembers }),
    output: Type.Object({
      tunnel: Type.String({ description: `host:port; it waits ${timeText(CLIENT_WAIT_MS)} for its client.` }),
    }),
    heartbeat: 'local_aid',
    errors: [...REACH_ERRORS, 'access_pending', 'calls_only', 'quota_exceeded'],
    tool: {
      name: 'svc_connect',
      description: 'Open a local port for one TCP connection to an agent.',
      rename: { remote_aid: 'aid' },
      omit: ['disable_relay', 'note', 'wait_s'],
    },
  },

  tunnelOpen: {
    summary: 'Opens a tunnel. Returns an existing one for the same agents and port with status 200.',
    route: 'POST /tunnel/{aid}',
    params: AidParams,
    body: closed({
      local_aid: LocalAid,
      access_token: AccessToken,
      local_port: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_PORT,
          default: 0,
          description: '0: the system chooses. Another port is restored after a restart.',
        }),
      ),
      idle_timeout_sec: Type.Optional(
        Type.Integer({
          minimum: -1,
          maximum: MAX_IDLE_TIMEOUT_S,
          default: 0,
          description: `0: ${timeText(DEFAULT_IDLE_TIMEOUT_S * 1000)}; -1: never. Default of an existing tunnel: unchanged.`,
        }),
      ),
      disable_relay: DisableRelay,
      ...AskMembers,
    }),
    output: TunnelView,
    status: 201,
    otherStatuses: [200],
    heartbeat: 'local_aid',
    errors: [...REACH_ERRORS, 'access_pending', 'calls_only', 'port_in_use', 'quota_exceeded'],
    tool: {
      name: 'svc_tunnel_open',
      description: 'Open a TCP tunnel to an agent.',
      rename: { remote_aid: 'aid' },
      omit: ['disable_relay', 'note', 'wait_s'],
      idempotent: true,
    },
  },

  tunnelList: {
    summary: 'Lists the tunnels.',
    route: 'GET /tunnel',
    query: PageQuery,
    output: Type.Object({
      tunnels: Type.Array(TunnelView),
      closed: Type.Array(ClosedTunnelView, {
        description: 'Recently closed tunnels with the reason, latest first. Only in the first page.',
      }),
      next_cursor: NextCursor,
    }),
    tool: { name: 'svc_tunnel_list', description: 'List the tunnels.', omit: PAGE_MEMBERS },
  },

  tunnelGet: {
    summary: 'Shows one tunnel.',
    route: 'GET /tunnel/{id}',
    params: TunnelParams,
    output: TunnelView,
    errors: ['not_found'],
  },

  tunnelClose: {
    summary: 'Closes a tunnel and its connections.',
    route: 'DELETE /tunnel/{id}',
    params: TunnelParams,
    output: Ok,
    heartbeat: 'tunnel',
    errors: ['not_found'],
    tool: { name: 'svc_tunnel_close', description: 'Close a tunnel.', rename: { tunnel_id: 'id' }, destructive: true },
  },

  tunnelReset: {
    summary: "Closes a tunnel's connections and its path. The next client dials again.",
    route: 'POST /tunnel/{id}/reset',
    params: TunnelParams,
    output: Ok,
    heartbeat: 'tunnel',
    errors: ['not_found'],
  },

  sessionGet: {
    summary: 'Identifies the remote agent of a connection to a bound service, by its source port.',
    route: 'GET /sessions/{port}',
    params: closed({ port: Type.Integer({ minimum: 1, maximum: MAX_PORT }) }),
    output: Type.Object({ caller_aid: AidText, local_aid: AidText, since: Timestamp }),
    errors: ['not_found'],
  },
});
