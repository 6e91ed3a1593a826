/** Operations on the access list of a local agent: who may call it, tunnel to it and read its objects. */
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

/** What a new allow entry is made from: see `ShownAllowBody`. */
export const AllowBody = closed({
  aid: Type.Optional(AidText),
  secret: Type.Optional(
    Type.String({
      minLength: MIN_SECRET_CHARS,
      maxLength: MAX_SECRET_CHARS,
      description: 'Lets in who presents it as access_token.',
    }),
  ),
  generate_secret: Type.Optional(Type.Literal(true, { description: 'Makes a secret and shows it this once.' })),
  label: Type.Optional(Type.String({ maxLength: MAX_LABEL_CHARS })),
  expires_at: Type.Optional(Timestamp),
});

export const ShownAllowBody = exactlyOne(AllowBody, ['aid', 'secret', 'generate_secret']);

export const AllowEntry = Type.Object({
  id: Type.String(),
  aid: Type.Optional(AidText),
  secret_set: Type.Optional(Type.Literal(true)),
  secret: Type.Optional(Type.String({ description: 'Where it was generated: shown this once.' })),
  label: Type.Optional(Type.String()),
  created_at: Timestamp,
  expires_at: Type.Optional(Timestamp),
});

export const DenyEntry = Type.Object({ id: Type.String(), aid: AidText, created_at: Timestamp });

const Count = Type.Integer({ minimum: 0 });

export const accessOperations = declare(COMMON, {
  agentCallers: {
    summary: 'Who called an agent and who was refused since the start, the last one first.',
    route: 'GET /agents/{aid}/callers',
    output: Type.Object({
      since: Timestamp,
      callers: Type.Array(
        Type.Object({
          aid: AidText,
          label: nullable(Type.String({ description: 'Of the address book.' })),
          calls: Count,
          tunnels: Type.Integer({ minimum: 0, description: 'TCP connections.' }),
          objects: Count,
          refused: Count,
          first_at: Timestamp,
          last_at: Timestamp,
          last_refusal: nullable(Type.Object({ at: Timestamp, kind: oneOf(CALL_KINDS), code: oneOf(CALL_REFUSALS) })),
          access: oneOf(ACCESS_DECISIONS, {
            description: 'What the access list says of it now; `secret`: it has to present one.',
          }),
        }),
        { maxItems: MAX_CALLERS },
      ),
    }),
  },

  aclGet: {
    summary: 'Shows the access list of an agent, those it allows first; secrets are never shown.',
    route: 'GET /agents/{aid}/acl',
    query: PageQuery,
    output: Type.Object({ ...AclView.properties, next_cursor: NextCursor }),
  },

  aclPatch: {
    summary: 'Says who may call an agent that no entry names: everyone or nobody.',
    route: 'PATCH /agents/{aid}/acl',
    body: closed({ default: oneOf(ACCESS_POLICIES) }),
    output: Ok,
  },

  aclAllow: {
    summary: 'Allows an AID, or whoever presents a secret; the same one again renews its entry.',
    route: 'POST /agents/{aid}/acl/allow',
    body: AllowBody,
    shownBody: ShownAllowBody,
    output: AllowEntry,
    errors: [...COMMON.errors, 'quota_exceeded'],
  },

  aclDeny: {
    summary: 'Denies an AID, whatever else would let it in.',
    route: 'POST /agents/{aid}/acl/deny',
    body: closed({ aid: AidText }),
    output: DenyEntry,
    errors: [...COMMON.errors, 'quota_exceeded'],
  },

  aclAllowDelete: {
    summary: 'Takes an entry off the allow list.',
    route: 'DELETE /agents/{aid}/acl/allow/{id}',
    params: EntryParams,
    output: Ok,
  },

  aclDenyDelete: {
    summary: 'Takes an entry off the deny list.',
    route: 'DELETE /agents/{aid}/acl/deny/{id}',
    params: EntryParams,
    output: Ok,
  },
});
