/** Handlers of the remote administration operations. */
import type { AccessLists } from '../../capabilities/access/access-lists.ts';
import type { RemoteAdmin } from '../../capabilities/remote-admin/remote-admin.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { Handlers, ResultOf } from '../operation.ts';
import { AUDIT_PAGE_DEFAULT, type remoteAdminOperations } from '../remote-admin.ts';
import { newAllowEntry } from './access.ts';

export interface RemoteAdminHandlerDependencies {
  readonly remoteAdmin: RemoteAdmin;
  readonly access: AccessLists;
}

const OK = { ok: true } as const;

export function remoteAdminHandlers({
  remoteAdmin,
  access,
}: RemoteAdminHandlerDependencies): Handlers<typeof remoteAdminOperations> {
  const { trail } = remoteAdmin;

  function state(): ResultOf<typeof remoteAdminOperations.remoteAdminGet> {
    const { allow, deny } = access.view('node');
    const request = trail.memory.lastRequest();
    const refusal = trail.lastRefusal();
    return {
      enabled: remoteAdmin.enabled,
      allow,
      deny,
      last_access: request && {
        aid: request.caller,
        at: isoTime(request.at),
        method: request.method ?? '',
        path: request.path ?? '',
      },
      last_refused: refusal && { aid: refusal.caller, at: isoTime(refusal.at), reason: refusal.reason },
    };
  }

  return {
    remoteAdminGet: () => state(),
    remoteAdminPatch: ({ enabled }) => {
      remoteAdmin.setEnabled(enabled);
      return state();
    },
    remoteAdminAllow: (input) => access.allow('node', newAllowEntry(input.aid, input)),
    remoteAdminDeny: ({ aid }) => access.deny('node', aid),
    remoteAdminAllowDelete: ({ id }) => {
      access.remove('node', 'allow', id);
      return OK;
    },
    remoteAdminDenyDelete: ({ id }) => {
      access.remove('node', 'deny', id);
      return OK;
    },
    remoteAdminAudit: ({ limit = AUDIT_PAGE_DEFAULT, cursor }) => {
      const page = trail.memory.page(limit, cursor === undefined ? undefined : Number(cursor));
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
          tools: entry.tools,
          status: entry.status,
          refused: entry.reason,
        })),
        next_cursor: last === undefined || page.length < limit ? undefined : String(last.id),
      };
    },
  };
}
