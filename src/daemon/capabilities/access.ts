/** Access control for the agents of this daemon and for remote administration. */

import { AccessControl } from '../../capabilities/access/access-control.ts';
import { AccessLists } from '../../capabilities/access/access-lists.ts';
import { serveAsks } from '../../capabilities/access/asking.ts';
import { Callers } from '../../capabilities/access/callers.ts';
import { SECRET_COST, secretDerivation } from '../../capabilities/access/derivations.ts';
import { Grants } from '../../capabilities/access/grants.ts';
import { AccessRequests } from '../../capabilities/access/requests.ts';
import type { Subject } from '../../capabilities/access/rules.ts';
import { RemoteAdmin } from '../../capabilities/remote-admin/remote-admin.ts';
import { detach } from '../../foundation/detached.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { AccessRepository } from '../../foundation/store/access.ts';
import { AccessRequestStore } from '../../foundation/store/access-requests.ts';
import { AuditStore } from '../../foundation/store/audit.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { Permissions } from '../../network/links/types.ts';
import type { ApiReference } from '../api.ts';
import type { Foundation } from '../foundation.ts';
import type { Agents } from './agents.ts';

export type Access = ReturnType<typeof buildAccess>;

export function buildAccess(
  { life, clock, parts, store, meta, rollback }: Foundation,
  { registry, onDeleted }: Agents,
  api: ApiReference,
) {
  const derive = secretDerivation(SECRET_COST);
  const services = (subject: Subject) => (subject === 'node' ? undefined : registry.services(subject));
  const accessLists = new AccessLists(new AccessRepository(store), clock, derive, services);
  life.defer(() => accessLists.stop());
  onDeleted((aid) => accessLists.removeSubject(aid));
  life.defer(
    registry.onChange(({ aid, kind }) => {
      // Perhaps the program of a temporary service was killed.
      if (kind !== 'deleted') accessLists.servicesChanged(aid);
    }),
  );
  life.defer(registry.onServiceStopped((aid, service) => accessLists.serviceStopped(aid, service)));
  const accessRequestStore = new AccessRequestStore(store);
  const grants = new Grants(accessRequestStore, accessLists, clock);
  const access = new AccessControl(accessLists, clock, derive, () => rollback.isRolledBack, grants);
  const callers = new Callers(clock, (called, caller) => access.isNamed(called, caller));
  onDeleted((aid) => callers.drop(aid));
  const permissions: Permissions = {
    authorize: (request) => access.authorize(request),
    isNamed: ({ caller, called }) => access.isNamed(called, caller),
  };
  const remoteAdmin = new RemoteAdmin({
    memory: { get: (key) => meta.get(key), set: (key, value) => store.durableTransaction(() => meta.set(key, value)) },
    ...parts,
    audit: new AuditStore(store),
    ...permissions,
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
    permissions,
    callers,
    remoteAdmin,
    accessRequestStore,
    grants,
    /** Repeats the access check of an agent's connections whenever its access list changes. */
    keepChecked: (server: { recheck(called: Aid): Promise<void> }): void =>
      life.defer(
        accessLists.onChange((subject) => {
          if (subject !== 'node') detach(server.recheck(subject));
        }),
      ),
  };
}

/** Requests of callers that the access lists do not know. */
export function buildAccessRequests(
  { life, parts }: Foundation,
  { onDeleted }: Agents,
  { access, accessLists, accessRequestStore, grants }: Access,
  links: AgentLinks,
  events: EventSink,
  isKnown: (aid: Aid, peer: Aid) => boolean,
) {
  const accessRequests = new AccessRequests({
    store: accessRequestStore,
    lists: accessLists,
    access,
    grants,
    ...parts,
    events,
    isKnown,
  });
  life.add('answering', accessRequests);
  onDeleted(() => accessRequests.forget());
  life.defer(serveAsks(links, accessRequests, access, parts));
  return { accessRequests };
}
