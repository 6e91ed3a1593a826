/** Operations on remote administration: who may drive this node from afar, and who did. */
import { Type } from 'typebox';
import { AllowBody, AllowEntry, DenyEntry, ShownAllowBody } from './access.ts';
import { AclView } from './agents.ts';
import { declare, declareStreams } from './declare.ts';
import { AidText, closed, Id, nullable, Ok, Timestamp } from './schemas.ts';
import { REACH_ERRORS } from './tunnels.ts';

/** Entries per page of the audit trail, unless `limit` says otherwise. */
export const AUDIT_PAGE_DEFAULT = 100;
/** Most entries per page. */
export const AUDIT_PAGE_MAX = 1000;
const MAX_CURSOR_CHARS = 20;

const COMMON = { tag: 'Remote administration' };

const EntryParams = closed({ id: Id });

export const RemoteAdminState = Type.Object({
  enabled: Type.Boolean({ description: 'Off until it is switched on.' }),
  allow: AclView.properties.allow,
  deny: AclView.properties.deny,
  last_access: nullable(Type.Object({ aid: AidText, at: Timestamp, method: Type.String(), path: Type.String() })),
  last_refused: nullable(
    Type.Object({
      aid: AidText,
      at: Timestamp,
      reason: Type.String({ description: '`disabled`, `access_denied` or `rate_limited`.' }),
    }),
  ),
});

export const AuditEntryView = Type.Object({
  id: Type.Integer({ minimum: 1 }),
  at: Timestamp,
  aid: AidText,
  node_key: nullable(Type.String({ description: "Key of the caller's node, in hex; null on this very daemon." })),
  address: nullable(Type.String({ description: "IP address of the caller's node." })),
  method: nullable(Type.String()),
  path: nullable(Type.String({ description: 'Without the query.' })),
  tools: Type.Array(Type.String(), { description: 'Tools that it called, without their arguments.' }),
  status: nullable(Type.Integer({ description: 'Null while the request runs, and where it was never answered.' })),
  refused: nullable(Type.String({ description: 'Why the caller was not let in; null for those who were.' })),
});

export const remoteAdminOperations = declare(COMMON, {
  remoteAdminGet: {
    summary: 'Shows whether this node may be administered from afar, and by whom.',
    route: 'GET /node/remote-admin',
    output: RemoteAdminState,
  },

  remoteAdminPatch: {
    summary: 'Switches remote administration on or off; off cuts the connections that are open.',
    route: 'PATCH /node/remote-admin',
    body: closed({ enabled: Type.Boolean() }),
    output: RemoteAdminState,
  },

  remoteAdminAllow: {
    summary: 'Lets an AID, or whoever presents a secret, administer this node.',
    route: 'POST /node/remote-admin/allow',
    body: AllowBody,
    shownBody: ShownAllowBody,
    output: AllowEntry,
    errors: ['bad_aid', 'quota_exceeded'],
  },

  remoteAdminDeny: {
    summary: 'Denies an AID, whatever else would let it in; its open connections are cut.',
    route: 'POST /node/remote-admin/deny',
    body: closed({ aid: AidText }),
    output: DenyEntry,
    errors: ['bad_aid', 'quota_exceeded'],
  },

  remoteAdminAllowDelete: {
    summary: 'Takes an entry off the allow list; connections that it let in are cut.',
    route: 'DELETE /node/remote-admin/allow/{id}',
    params: EntryParams,
    output: Ok,
    errors: ['not_found'],
  },

  remoteAdminDenyDelete: {
    summary: 'Takes an entry off the deny list.',
    route: 'DELETE /node/remote-admin/deny/{id}',
    params: EntryParams,
    output: Ok,
    errors: ['not_found'],
  },

  remoteAdminAudit: {
    summary: 'Lists what was asked over remote administration and who was refused, the newest first.',
    route: 'GET /node/remote-admin/audit',
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: AUDIT_PAGE_MAX, default: AUDIT_PAGE_DEFAULT })),
      cursor: Type.Optional(
        Type.String({ maxLength: MAX_CURSOR_CHARS, pattern: '^[1-9][0-9]*$', description: '`next_cursor` of a page.' }),
      ),
    }),
    output: Type.Object({ entries: Type.Array(AuditEntryView), next_cursor: Type.Optional(Type.String()) }),
  },
});

export const remoteAdminStreams = declareStreams(COMMON, {
  via: {
    summary:
      'Sends a request to the API of a remote node. `Svc-Access-Token` carries the password it asks for, `Svc-Local-Aid` the agent here that asks; this node where it is left out.',
    methods: 'ANY',
    path: '/via/{aid}/{path*}',
    params: closed({ aid: AidText, path: Type.String({ description: 'Path of the remote API.' }) }),
    query: Type.Object({}),
    produces: '*/*',
    permission: 'local_only',
    errors: ['local_only', ...REACH_ERRORS.filter((code) => code !== 'relay_required' && code !== 'no_inbound')],
  },
});
