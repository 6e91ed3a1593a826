/** Binds the operations on remote administration. */
import type { AccessLists, AllowInput } from '../../capabilities/access/access-lists.ts';
import type { RemoteAdmin } from '../../capabilities/remote-admin/remote-admin.ts';
import { isoTime } from '../../foundation/clock.ts';
import { type BoundOperation, bind, type InputOf, type OutputOf } from '../operation.ts';
import * as operations from '../remote-admin.ts';

export interface RemoteAdminHandlerDependencies {
  readonly remoteAdmin: RemoteAdmin;
  readonly access: AccessLists;
}

const OK = { ok: true as const };

function allowInput(input: InputOf<typeof operations.remoteAdminAllow>): AllowInput {
  return {
    ...(input.aid === undefined ? {} : { aid: input.aid }),
    ...(input.secret === undefined ? {} : { secret: input.secret }),
    ...(input.generate_secret === undefined ? {} : { generateSecret: input.generate_secret }),
    ...(input.label === undefined ? {} : { label: input.label }),
    ...(input.expires_at === undefined ? {} : { expiresAt: Date.parse(input.expires_at) }),
  };
}

export function remoteAdminHandlers({ remoteAdmin, access }: RemoteAdminHandlerDependencies): BoundOperation[] {
  const { trail } = remoteAdmin;

  function state(): OutputOf<typeof operations.remoteAdminGet> {
    const { allow, deny } = access.view('node');
    const request = trail.lastRequest();
    const refusal = trail.lastRefusal();
    return {
      enabled: remoteAdmin.enabled,
      allow,
      deny,
      last_access:
        request === null
          ? null
          : {
              aid: request.caller,
              at: isoTime(request.at),
              method: request.method ?? '',
              path: request.path ?? '',
            },
      last_refused: refusal === null ? null : { aid: refusal.caller, at: isoTime(refusal.at), reason: refusal.reason },
    };
  }

  return [
    bind(operations.remoteAdminGet, () => state()),
    bind(operations.remoteAdminPatch, ({ enabled }) => {
      remoteAdmin.setEnabled(enabled);
      return state();
    }),
    bind(operations.remoteAdminAllow, (input) => access.allow('node', allowInput(input))),
    bind(operations.remoteAdminDeny, ({ aid }) => access.deny('node', aid)),
    bind(operations.remoteAdminAllowDelete, ({ id }) => {
      access.removeAllow('node', id);
      return OK;
    }),
    bind(operations.remoteAdminDenyDelete, ({ id }) => {
      access.removeDeny('node', id);
      return OK;
    }),
    bind(operations.remoteAdminAudit, ({ limit = operations.AUDIT_PAGE_DEFAULT, cursor }) => {
      const page = trail.page(limit, cursor === undefined ? undefined : Number(cursor));
      const last = page.at(-1);
      return {
        entries: page.map((entry) => ({
          id: entry.id,
          at: isoTime(entry.at),
          aid: entry.caller,
          node_key: entry.nodeKey,
          address: entry.address,
          method: entry.method,
          path: entry.path,
          tools: [...entry.tools],
          status: entry.status,
          refused: entry.reason,
        })),
        ...(last === undefined || page.length < limit ? {} : { next_cursor: String(last.id) }),
      };
    }),
  ];
}
