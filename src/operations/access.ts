/** Operations on the access list of a local agent: who may call it, tunnel to it and read its objects. */
import { Type } from 'typebox';
import { ACCESS_POLICIES, MAX_LABEL_CHARS, MAX_SECRET_CHARS, MIN_SECRET_CHARS } from '../foundation/domain/access.ts';
import { AclView } from './agents.ts';
import { declare } from './operation.ts';
import { AidParams, AidText, closed, Id, NONE, Ok, oneOf, Timestamp } from './schemas.ts';

const ACL = {
  params: AidParams,
  query: NONE,
  body: NONE,
  permission: 'write',
  heartbeat: true,
  errors: ['bad_aid', 'not_found'],
  tag: 'Access control',
} as const;

const EntryParams = closed({ aid: AidText, id: Id });

/** What a new allow entry is made from: exactly one of the first three. */
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

export const accessOperations = declare({
  aclGet: {
    ...ACL,
    summary: 'Shows the access list of an agent; secrets are never shown.',
    method: 'GET',
    path: '/agents/{aid}/acl',
    output: AclView,
    permission: 'read',
    heartbeat: false,
  },

  aclPatch: {
    ...ACL,
    summary: 'Says who may call an agent that no entry names: everyone or nobody.',
    method: 'PATCH',
    path: '/agents/{aid}/acl',
    body: closed({ default: oneOf(ACCESS_POLICIES) }),
    output: Ok,
  },

  aclAllow: {
    ...ACL,
    summary: 'Allows an AID, or whoever presents a secret; the same one again renews its entry.',
    method: 'POST',
    path: '/agents/{aid}/acl/allow',
    body: AllowBody,
    output: AllowEntry,
    errors: [...ACL.errors, 'quota_exceeded'],
  },

  aclDeny: {
    ...ACL,
    summary: 'Denies an AID, whatever else would let it in.',
    method: 'POST',
    path: '/agents/{aid}/acl/deny',
    body: closed({ aid: AidText }),
    output: DenyEntry,
    errors: [...ACL.errors, 'quota_exceeded'],
  },

  aclAllowDelete: {
    ...ACL,
    summary: 'Takes an entry off the allow list.',
    method: 'DELETE',
    path: '/agents/{aid}/acl/allow/{id}',
    params: EntryParams,
    output: Ok,
  },

  aclDenyDelete: {
    ...ACL,
    summary: 'Takes an entry off the deny list.',
    method: 'DELETE',
    path: '/agents/{aid}/acl/deny/{id}',
    params: EntryParams,
    output: Ok,
  },
});
