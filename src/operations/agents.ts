/** Operations on identities and local agents. */
import { Type } from 'typebox';
import { timeText } from '../foundation/display-text.ts';
import { ACCESS_POLICIES } from '../foundation/domain/access.ts';
import { AID_SCHEMES, LEASE_GRACE_MS, MAX_SERVICE_ADDRESS_CHARS } from '../foundation/domain/agents.ts';
import { MAX_LABELS, MAX_SKILLS } from '../foundation/records/types.ts';
import { declare } from './declare.ts';
import {
  AidParams,
  AidText,
  Cursor,
  closed,
  freeForm,
  NatType,
  NONE,
  nullable,
  Ok,
  oneOf,
  Pending,
  Timestamp,
  WakesWithin,
} from './schemas.ts';

/** Default page size of `GET /agents`. */
export const AGENTS_PAGE_DEFAULT = 200;
/** Largest page size of `GET /agents`. */
export const AGENTS_PAGE_MAX = 1000;

const COMMON = { params: AidParams, errors: ['bad_aid', 'not_found'], tag: 'Agents' } as const;

export const PrivateKeyHex = Type.String({ description: '32-byte seed in hex, or seed and public key.' });
const ProofHex = Type.String({ description: 'Delegation proof in hex.' });
export const ServiceTcp = Type.String({
  maxLength: MAX_SERVICE_ADDRESS_CHARS,
  description:
    'http:// or https:// for calls, tcp:// for tunnels; host:port, http+tcp:// or https+tcp:// for both; https+insecure:// checks no certificate. Empty: none.',
});
const Labels = Type.Array(Type.String(), { maxItems: MAX_LABELS });

export const Profile = closed({
  name: Type.Optional(Type.String()),
  brief: Type.Optional(Type.String()),
  protocols: Type.Optional(Labels),
  skills: Type.Optional(Type.Array(Type.String(), { maxItems: MAX_SKILLS })),
  modalities: Type.Optional(Labels),
  card_hash: Type.Optional(Type.String({ description: 'Hash of the full card.' })),
  wakes_within_s: Type.Optional(WakesWithin),
  meta: Type.Optional(freeForm('Free-form.')),
});

/** An access list as the API shows it, without secrets. */
export const AclView = Type.Object({
  default: oneOf(ACCESS_POLICIES),
  default_before: Type.Optional(
    oneOf(ACCESS_POLICIES, {
      description: 'Only while the default is temporary: the one that returns when the temporary service ends.',
    }),
  ),
  allow: Type.Array(
    Type.Object({
      id: Type.String(),
      aid: Type.Optional(AidText),
      secret_set: Type.Optional(Type.Literal(true)),
      label: Type.Optional(Type.String()),
      created_at: Timestamp,
      expires_at: Type.Optional(Timestamp),
      tools: Type.Optional(Type.Array(Type.String(), { description: 'The MCP tools that the AID is limited to.' })),
      service_tcp: Type.Optional(
        Type.String({ description: 'The service that the AID may call. The entry ends with it.' }),
      ),
    }),
  ),
  deny: Type.Array(
    Type.Object({ id: Type.String(), aid: AidText, created_at: Timestamp, expires_at: Type.Optional(Timestamp) }),
  ),
});

export const Agent = Type.Object({
  aid: AidText,
  name: Type.Optional(Type.String()),
  scheme: oneOf(AID_SCHEMES),
  status: Type.Union([Type.Literal('registered'), Type.Literal('pending')], {
    description: '`pending` until the first successful publish.',
  }),
  service_tcp: Type.String({ description: 'Empty if no service is bound.' }),
  service_before: Type.Optional(
    Type.String({
      description: 'Only while a temporary service is bound: the service that it replaced. Empty if there was none.',
    }),
  ),
  service_tcp_ok: Type.Boolean({ description: 'The bound service accepted the last connection.' }),
  service_error: Type.Optional(
    Type.String({ description: 'Why the last check of the service failed, or its program did not start.' }),
  ),
  heartbeat_seconds_ago: Type.Integer({ minimum: 0 }),
  seq: Type.Integer({ minimum: 0, description: 'Sequence number of the last published endpoint record.' }),
  published: Type.Boolean({ description: 'The network has a valid endpoint record of this agent.' }),
  last_publish_at: nullable(Timestamp),
  next_republish_estimate: nullable(Timestamp),
  record_expires_at: nullable(Timestamp),
  replicas: Type.Integer({ minimum: 0, description: 'Other nodes that acknowledged the record.' }),
  services: Type.Array(Type.String()),
  profile: Type.Optional(Profile),
  acl: Type.Optional(AclView),
  delegation: Type.Object({ issued_at: Timestamp, expires_at: nullable(Timestamp) }),
});

const OneAgent = Type.Object({ ...Agent.properties, pending: Type.Optional(Pending) });

export const agentOperations = declare(COMMON, {
  identityGenerate: {
    summary: 'Generates an identity and returns its keys once. Nothing is stored or registered.',
    route: 'POST /identity/generate',
    params: NONE,
    output: Type.Object({
      aid: AidText,
      master_private_key_hex: Type.String({ description: 'Returned once. Without it the AID cannot be restored.' }),
      operational_private_key_hex: Type.String(),
      delegation_proof_hex: Type.String(),
      warning: Type.String(),
    }),
    errors: [],
    tag: 'Identity',
    tool: { name: 'svc_identity_generate', description: 'Generate an identity; its keys are shown once.' },
  },

  agentRegister: {
    summary: 'Registers an identity. With a newer delegation, replaces the operational key of a registered agent.',
    route: 'POST /agents',
    params: NONE,
    body: closed({
      operational_private_key_hex: PrivateKeyHex,
      delegation_proof_hex: ProofHex,
      service_tcp: Type.Optional(ServiceTcp),
      publish: Type.Optional(
        Type.Boolean({
          default: true,
          description: 'With `false`, the agent is published only on request, even with `auto_publish`.',
        }),
      ),
      temporary: Type.Optional(
        Type.Boolean({
          default: false,
          description: `For a new agent: it is deleted when \`GET /agents/{aid}/events\` is not open for ${timeText(LEASE_GRACE_MS)}.`,
        }),
      ),
    }),
    output: Type.Object({ aid: AidText, status: Type.Literal('registered') }),
    errors: ['bad_key', 'bad_delegation', 'bad_service_address', 'operational_key_mismatch'],
    tool: {
      name: 'svc_agent_register',
      description: 'Register an identity on this node.',
      omit: ['publish', 'temporary'],
      idempotent: true,
    },
  },

  agentsList: {
    summary: 'Lists the local agents in order of registration.',
    route: 'GET /agents',
    params: NONE,
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: AGENTS_PAGE_MAX, default: AGENTS_PAGE_DEFAULT })),
      cursor: Type.Optional(Cursor),
    }),
    output: Type.Object({
      agents: Type.Array(Agent),
      next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
      pending: Type.Optional(Pending),
    }),
    errors: [],
    tool: { name: 'svc_agents_list', description: 'List the local agents.', omit: ['limit', 'cursor'] },
  },

  agentGet: {
    summary: 'Shows an agent, its reachability and its publication state.',
    route: 'GET /agents/{aid}',
    output: OneAgent,
    tool: { name: 'svc_agent_get', description: 'State of one local agent.' },
  },

  agentExport: {
    summary: 'Returns the operational credentials of an agent in clear text.',
    isDocument: true,
    route: 'GET /agents/{aid}/export',
    output: Type.Object({
      aid: AidText,
      operational_private_key_hex: Type.String(),
      delegation_proof_hex: Type.String(),
      service_tcp: Type.String(),
    }),
    permission: 'local_only',
    errors: ['bad_aid', 'not_found', 'local_only', 'key_locked'],
  },

  agentCallerKey: {
    summary: 'Returns the key that lets the bound service of an agent verify its callers.',
    route: 'GET /agents/{aid}/caller-key',
    output: Type.Object({
      aid: AidText,
      caller_key_hex: Type.String({
        description: 'Key of the HMAC-SHA-256 in the header Svc-Caller-Proof: see docs/protocol-calls.md.',
      }),
    }),
    permission: 'local_only',
    errors: ['bad_aid', 'not_found', 'local_only'],
  },

  agentPatch: {
    summary: 'Binds a local service, or none. A request from another machine needs the operational key.',
    route: 'PATCH /agents/{aid}',
    body: closed({
      service_tcp: ServiceTcp,
      temporary: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Stores the current service as `service_before`. With an empty `service_tcp`, restores it.',
        }),
      ),
      operational_private_key_hex: Type.Optional(PrivateKeyHex),
    }),
    output: OneAgent,
    heartbeat: true,
    errors: ['bad_aid', 'not_found', 'bad_key', 'bad_service_address', 'operational_key_mismatch'],
    tool: {
      name: 'svc_agent_patch',
      description: 'Bind or unbind the local service of an agent.',
      omit: ['temporary'],
      idempotent: true,
    },
  },

  agentDelete: {
    summary: 'Unregisters an agent and deletes its data. Its published records expire.',
    route: 'DELETE /agents/{aid}',
    output: Ok,
    tool: {
      name: 'svc_agent_delete',
      description: 'Unregister an agent, key and data included.',
      requiresAid: true,
      destructive: true,
    },
  },

  agentProbe: {
    summary: 'Connects to the bound service and looks up the agent in the network.',
    route: 'GET /agents/{aid}/probe',
    output: Type.Object({
      service_tcp_ok: nullable(Type.Boolean({ description: 'Null if no service is bound.' })),
      tcp_error: Type.Optional(Type.String()),
      tcp_ms: Type.Optional(Type.Number({ minimum: 0 })),
      dht_ok: Type.Boolean({ description: 'The network has a valid endpoint record that leads to this node.' }),
      published_endpoints: Type.Array(Type.String()),
      published_nat_type: nullable(NatType),
      published_seq: nullable(Type.Integer({ minimum: 0 })),
      reachable_from_peers: Type.Optional(Type.Boolean()),
    }),
    tool: {
      name: 'svc_agent_probe',
      description: 'Check the bound service and the published record of an agent.',
      foreignText: true,
    },
  },

  agentHeartbeat: {
    summary: 'Sends a heartbeat: `heartbeat_seconds_ago` starts at 0 again.',
    route: 'POST /agents/{aid}/heartbeat',
    output: Type.Object({ status: Type.Literal('ok'), at: Timestamp }),
    heartbeat: true,
    tool: { name: 'svc_agent_heartbeat', description: 'Report that an agent is in use.', idempotent: true },
  },
});
