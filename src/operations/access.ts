/** Operations on the access list of a local agent: its callers, and the readers of its objects. */
import { Type } from 'typebox';
import {
  ACCESS_DECISIONS,
  ACCESS_POLICIES,
  ASK_KINDS,
  CALL_KINDS,
  CALL_REFUSALS,
  MAX_CALLERS,
  MAX_ENTRY_TOOLS,
  MAX_LABEL_CHARS,
  MAX_SECRET_CHARS,
  MAX_TOOL_NAME_CHARS,
  MIN_SECRET_CHARS,
  TOOL_NAME_PATTERN,
} from '../foundation/domain/access.ts';
import { MAX_EXPOSURES, MAX_PUBLIC_CLIENTS } from '../foundation/domain/exposures.ts';
import { AclView } from './agents.ts';
import { declare } from './declare.ts';
import { PublicClient } from './exposures.ts';
import { NextCursor, PageQuery } from './paging.ts';
import { AidParams, AidText, closed, exactlyOne, Id, NONE, nullable, Ok, oneOf, Timestamp } from './schemas.ts';

const COMMON = { params: AidParams, heartbeat: true, errors: ['bad_aid', 'not_found'], tag: 'Access control' } as const;

const EntryParams = closed({ aid: AidText, id: Id });

/** Body of a new allow entry. Exactly one of `aid`, `secret` and `generate_secret` is set: see `ShownAllowBody`. */
export const AllowBody = closed({
  aid: Type.Optional(AidText),
  secret: Type.Optional(
    Type.String({
      minLength: MIN_SECRET_CHARS,
      maxLength: MAX_SECRET_CHARS,
      description: 'Allows every caller that presents it as access_token.',
    }),
  ),
  generate_secret: Type.Optional(Type.Literal(true, { description: 'Generates a secret and returns it once.' })),
  label: Type.Optional(Type.String({ maxLength: MAX_LABEL_CHARS })),
  expires_at: Type.Optional(Timestamp),
});

export const ShownAllowBody = exactlyOne(AllowBody, ['aid', 'secret', 'generate_secret']);

const ToolName = Type.String({ maxLength: MAX_TOOL_NAME_CHARS, pattern: TOOL_NAME_PATTERN });
const ToolNames = Type.Array(ToolName, {
  minItems: 1,
  maxItems: MAX_ENTRY_TOOLS,
  description: 'Limits calls to these MCP tools.',
});

/** The same for agents, whose entries can be limited. */
const AgentAllowBody = closed({
  ...AllowBody.properties,
  tools: Type.Optional(ToolNames),
  service_tcp: Type.Optional(
    Type.String({
      description: 'The bound temporary service. The AID may call only this service, and the entry ends with it.',
    }),
  ),
});

export const AllowEntry = Type.Object({
  id: Type.String(),
  aid: Type.Optional(AidText),
  secret_set: Type.Optional(Type.Literal(true)),
  secret: Type.Optional(Type.String({ description: 'Present if it was generated. Returned once.' })),
  label: Type.Optional(Type.String()),
  created_at: Timestamp,
  expires_at: Type.Optional(Timestamp),
  tools: Type.Optional(Type.Array(Type.String(), { description: 'The MCP tools that the AID is limited to.' })),
  service_tcp: Type.Optional(
    Type.String({ description: 'The service that the AID may call. The entry ends with it.' }),
  ),
});

export const DenyEntry = Type.Object({
  id: Type.String(),
  aid: AidText,
  created_at: Timestamp,
  expires_at: Type.Optional(Timestamp),
});

const Count = Type.Integer({ minimum: 0 });

export const accessOperations = declare(COMMON, {
  agentCallers: {
    summary: 'Lists the callers of an agent since the start of the daemon, allowed and refused, latest first.',
    route: 'GET /agents/{aid}/callers',
    output: Type.Object({
      since: Timestamp,
      callers: Type.Array(
        Type.Object({
          aid: AidText,
          label: nullable(Type.String({ description: 'From the address book.' })),
          calls: Count,
          tunnels: Type.Integer({ minimum: 0, description: 'TCP connections.' }),
          objects: Count,
          refused: Count,
          first_at: Timestamp,
          last_at: Timestamp,
          last_refusal: nullable(Type.Object({ at: Timestamp, kind: oneOf(CALL_KINDS), code: oneOf(CALL_REFUSALS) })),
          access: oneOf(ACCESS_DECISIONS, {
            description:
              'Current decision of the access list. `secret`: the caller must present one. `ask`: the owner is asked.',
          }),
        }),
        { maxItems: MAX_CALLERS },
      ),
      public_clients: Type.Array(PublicClient, {
        maxItems: MAX_PUBLIC_CLIENTS * MAX_EXPOSURES,
        description: 'Clients of the public addresses of the agent.',
      }),
    }),
  },

  aclGet: {
    summary: 'Shows the access list of an agent: allow entries first. Secrets are never shown.',
    route: 'GET /agents/{aid}/acl',
    query: PageQuery,
    output: Type.Object({ ...AclView.properties, next_cursor: NextCursor }),
  },

  aclPatch: {
    summary:
      'Sets the default for callers without an entry: `public`, `deny`, or `ask`, with which they ask the owner.',
    route: 'PATCH /agents/{aid}/acl',
    body: closed({
      default: oneOf(ACCESS_POLICIES),
      temporary: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'The current default returns when the temporary service of the agent ends.',
        }),
      ),
    }),
    output: Ok,
  },

  aclAllow: {
    summary: 'Allows an AID, or every caller that presents a secret. An existing entry is renewed.',
    route: 'POST /agents/{aid}/acl/allow',
    body: AgentAllowBody,
    shownBody: exactlyOne(AgentAllowBody, ['aid', 'secret', 'generate_secret']),
    output: AllowEntry,
    errors: [...COMMON.errors, 'quota_exceeded', 'wrong_state'],
  },

  aclDeny: {
    summary: 'Denies an AID. A deny entry beats every allow entry.',
    route: 'POST /agents/{aid}/acl/deny',
    body: closed({ aid: AidText }),
    output: DenyEntry,
    errors: [...COMMON.errors, 'quota_exceeded'],
  },

  aclAllowDelete: {
    summary: 'Removes an allow entry.',
    route: 'DELETE /agents/{aid}/acl/allow/{id}',
    params: EntryParams,
    output: Ok,
  },

  aclDenyDelete: {
    summary: 'Removes a deny entry.',
    route: 'DELETE /agents/{aid}/acl/deny/{id}',
    params: EntryParams,
    output: Ok,
  },
});

const RequestParams = closed({ id: Id });

const DECISION = {
  params: RequestParams,
  errors: ['not_found', 'quota_exceeded', 'wrong_state'],
  tag: 'Access control',
} as const;

export const accessRequestOperations = declare(DECISION, {
  accessRequests: {
    summary:
      'Lists the callers that ask for access, and those that the owner allowed once and that have not used it. Known callers first, then the latest.',
    route: 'GET /access/requests',
    params: NONE,
    query: PageQuery,
    errors: [],
    output: Type.Object({
      requests: Type.Array(
        Type.Object({
          id: Id,
          aid: AidText,
          caller: AidText,
          label: nullable(Type.String({ description: 'From the address book.' })),
          known: Type.Boolean({ description: 'The owner knows the caller.' }),
          name: Type.Optional(Type.String({ description: 'The caller calls itself so.' })),
          kind: oneOf([...ASK_KINDS, 'chat']),
          asked: Type.String({ description: 'What the caller wants, in its words: a method and a path.' }),
          tool: nullable(Type.String({ description: 'The MCP tool that the caller named.' })),
          note: Type.String({ description: 'A text of the caller.' }),
          state: oneOf(['pending', 'allowed_once']),
          tools: Type.Optional(Type.Array(Type.String(), { description: 'The MCP tools of the allowed call.' })),
          count: Type.Integer({ minimum: 1 }),
          first_at: Timestamp,
          last_at: Timestamp,
          expires_at: nullable(Timestamp),
        }),
      ),
      next_cursor: NextCursor,
    }),
  },

  accessRequestAllow: {
    summary:
      'Allows what a caller asks for. Without members: adds the caller to the allow list. For a chat request: accepts it.',
    route: 'POST /access/requests/{id}/allow',
    body: closed({
      once: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Allows one call with the method and path of the request, or one TCP connection for a tunnel.',
        }),
      ),
      tools: Type.Optional(ToolNames),
      expires_at: Type.Optional(Timestamp),
    }),
    output: Ok,
  },

  accessRequestRefuse: {
    summary: 'Refuses a caller: adds it to the deny list. For a chat request: declines it.',
    route: 'POST /access/requests/{id}/refuse',
    body: closed({ expires_at: Type.Optional(Timestamp) }),
    output: Ok,
  },
});
