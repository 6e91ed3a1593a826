/** Operations on the access list of a local agent: its callers, and the readers of its objects. */
import { Type } from 'typebox';
import {
  ACCESS_DECISIONS,
  ACCESS_POLICIES,
  CALL_KINDS,
  CALL_REFUSALS,
  MAX_CALLERS,
  MAX_LABEL_CHARS,
  MAX_SECRET_CHARS,
  MIN_SECRET_CHARS,
} from '../foundation/domain/access.ts';
import { AclView } from './agents.ts';
import { declare } from './declare.ts';
import { NextCursor, PageQuery } from './paging.ts';
import { AidParams, AidText, closed, exactlyOne, Id, nullable, Ok, oneOf, Timestamp } from './schemas.ts';

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

export const AllowEntry = Type.Object({
  id: Type.String(),
  aid: Type.Optional(AidText),
  secret_set: Type.Optional(Type.Literal(true)),
  secret: Type.Optional(Type.String({ description: 'Present if it was generated. Returned once.' })),
  label: Type.Optional(Type.String()),
  created_at: Timestamp,
  expires_at: Type.Optional(Timestamp),
});

export const DenyEntry = Type.Object({ id: Type.String(), aid: AidText, created_at: Timestamp });

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
            description: 'Current decision of the access list. `secret`: the caller must present one.',
          }),
        }),
        { maxItems: MAX_CALLERS },
      ),
    }),
  },

  aclGet: {
    summary: 'Shows the access list of an agent: allow entries first. Secrets are never shown.',
    route: 'GET /agents/{aid}/acl',
    query: PageQuery,
    output: Type.Object({ ...AclView.properties, next_cursor: NextCursor }),
  },

  aclPatch: {
    summary: 'Sets the default for callers without an entry: `allow` or `deny`.',
    route: 'PATCH /agents/{aid}/acl',
    body: closed({ default: oneOf(ACCESS_POLICIES) }),
    output: Ok,
  },

  aclAllow: {
    summary: 'Allows an AID, or every caller that presents a secret. An existing entry is renewed.',
    route: 'POST /agents/{aid}/acl/allow',
    body: AllowBody,
    shownBody: ShownAllowBody,
    output: AllowEntry,
    errors: [...COMMON.errors, 'quota_exceeded'],
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
