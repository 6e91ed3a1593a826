/** Access control for the agents of this daemon and for remote administration. */

import { AccessControl } from '../../capabilities/access/access-control.ts';
import { AccessLists } from '../../capabilities/access/access-lists.ts';
import { Callers } from '../../capabilities/access/callers.ts';
import { SECRET_COST, secretDerivation } from '../../capabilities/access/derivations.ts';
import { RemoteAdmin } from '../../capabilities/remote-admin/remote-admin.ts';
import { detach } from '../../foundation/detached.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { AccessRepository } from '../../foundation/store/access.ts';
import { AuditStore } from '../../foundation/store/audit.ts';
import type { ApiReference } from '../api.ts';
import type { Foundation } from '../foundation.ts';
import type { Agents } from './agents.ts';

export type Access = ReturnType<typeof buildAccess>;

export function buildAccess(
  { life, clock, log, store, meta, rollback }: Foundation,
  { onDeleted }: Agents,
  api: ApiReference,
) {
  const derive = secretDerivation(SECRET_COST);
  const accessLists = new AccessLists(new AccessRepository(store), clock, derive);
  life.defer(() => accessLists.stop());
  onDeleted((aid) => accessLists.removeSubject(aid));
  const access = new AccessControl(accessLists, clock, derive, () => rollback.isRolledBack);
  const callers = new Callers(clock, (called, caller) => access.isNamed(called, caller));
  onDeleted((aid) => callers.drop(aid));
  const remoteAdmin = new RemoteAdmin({
    memory: { get: (key) => meta.get(key), set: (key, value) => store.durableTransaction(() => meta.set(key, value)) },
    audit: new AuditStore(store),
    clock,
    log,
    authorize: (request) => access.authorize(request),
    isNamed: ({ caller, called }) => access.isNamed(called, caller),
    serve: (stream, observer) => api.serveRemoteAdmin(stream, observer),
  });
  life.defer(() => remoteAdmin.stop());
  life.defer(
    accessLists.onChange((subject) => {
      if (subject === 'node') detach(remoteAdmin.recheck());
    }),
  );
  return {
    accessLists,
    access,
    callers,
    remoteAdmin,
    /** Repeats the access check of an agent's connections whenever its access list changes. */
    keepChecked: (server: { recheck(called: Aid): Promise<void> }): void =>
      life.defer(
        accessLists.onChange((subject) => {
          if (subject !== 'node') detach(server.recheck(subject));
        }),
      ),
  };
}
