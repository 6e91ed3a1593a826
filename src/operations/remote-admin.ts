/** Operations on remote administration. */
import { Type } from 'typebox';
import { AllowBody, AllowEntry, DenyEntry, ShownAllowBody } from './access.ts';
import { AclView } from './agents.ts';
import { declare, declareStreams } from './declare.ts';
import { AidText, closed, Id, nullable, Ok, Timestamp } from './schemas.ts';
import { REACH_ERRORS } from './tunnels.ts';

/** Default page size of the audit trail. */
export const AUDIT_PAGE_DEFAULT = 100;
/** Largest page of the audit trail. */
export const AUDIT_PAGE_MAX = 1000;
const MAX_CURSOR_CHARS = 20;

const COMMON = { tag: 'Remote administration' };

const EntryParams = closed({ id: Id });

export const RemoteAdminState = Type.Object({
  enabled: Type.Boolean({ description: 'Default: off.' }),
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
  node_key: nullable(Type.String({ description: "Public key of the caller's node, in hex. Null for this node." })),
  address: nullable(Type.String({ description: "IP address of the caller's node." })),
  method: nullable(Type.String()),
  path: nullable(Type.String({ description: 'Without the query.' })),
  tools: Type.Array(Type.String(), { description: 'Names of the tools that were called.' }),
  status: nullable(Type.Integer({ description: 'Null while the request runs, or if it got no response.' })),
  refused: nullable(Type.String({ description: 'Why the request was refused. Null if it was accepted.' })),
});

export const remoteAdminOperations = declare(COMMON, {
  remoteAdminGet: {
    summary: 'Shows the state and the access list of remote administration.',
    route: 'GET /node/remote-admin',
    output: RemoteAdminState,
  },

  remoteAdminPatch: {
    summary: 'Turns remote administration on or off. Off closes its open connections.',
    route: 'PATCH /node/remote-admin',
    body: closed({ enabled: Type.Boolean() }),
    output: RemoteAdminState,
  },

  remoteAdminAllow: {
    summary: 'Allows an AID, or every caller that presents a secret, to administer this node.',
    route: 'POST /node/remote-admin/allow',
    body: AllowBody,
    shownBody: ShownAllowBody,
    output: AllowEntry,
    errors: ['bad_aid', 'quota_exceeded'],
  },

  remoteAdminDeny: {
    summary: 'Denies an AID and closes its open connections. A deny entry beats every allow entry.',
    route: 'POST /node/remote-admin/deny',
    body: closed({ aid: AidText }),
    output: DenyEntry,
    errors: ['bad_aid', 'quota_exceeded'],
  },

  remoteAdminAllowDelete: {
    summary: 'Removes an allow entry and closes the connections that used it.',
    route: 'DELETE /node/remote-admin/allow/{id}',
    params: EntryParams,
    output: Ok,
    errors: ['not_found'],
  },

  remoteAdminDenyDelete: {
    summary: 'Removes a deny entry.',
    route: 'DELETE /node/remote-admin/deny/{id}',
    params: EntryParams,
    output: Ok,
    errors: ['not_found'],
  },

  remoteAdminAudit: {
    summary: 'Lists the requests of remote administration, also refused ones, newest first.',
    route: 'GET /node/remote-admin/audit',
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: AUDIT_PAGE_MAX, default: AUDIT_PAGE_DEFAULT })),
      cursor: Type.Optional(
        Type.String({
          maxLength: MAX_CURSOR_CHARS,
          pattern: '^[1-9][0-9]*$',
          description: '`next_cursor` of the previous page.',
        }),
      ),
    }),
    output: Type.Object({ entries: Type.Array(AuditEntryView), next_cursor: Type.Optional(Type.String()) }),
  },
});

export const remoteAdminStreams = declareStreams(COMMON, {
  via: {
    summary:
      'Sends a request to the API of a remote node. `Svc-Local-Aid` names the calling agent (default: this node); `Svc-Access-Token` carries the access token.',
    methods: 'ANY',
    path: '/via/{aid}/{path*}',
    params: closed({ aid: AidText, path: Type.String({ description: 'Path of the remote API.' }) }),
    query: Type.Object({}),
    produces: '*/*',
    permission: 'local_only',
    errors: ['local_only', ...REACH_ERRORS.filter((code) => code !== 'relay_required' && code !== 'no_inbound')],
  },
});
