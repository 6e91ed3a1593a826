/** Tunnels: TCP connections to services of local and remote agents. */

import { TunnelInbound } from '../../capabilities/tunnels/inbound.ts';
import { TunnelService } from '../../capabilities/tunnels/tunnel-service.ts';
import { descriptorLimit } from '../../foundation/descriptors.ts';
import { detach } from '../../foundation/detached.ts';
import { TunnelStore } from '../../foundation/store/tunnels.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import { accessRequestOf, TUNNEL_PURPOSES } from '../../network/links/types.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';

export function buildTunnels(
  { life, clock, log: parent, store }: Foundation,
  { boundService, onDeleted, serviceSockets }: Agents,
  { access, callers, keepChecked }: Access,
  links: AgentLinks,
  { lanes }: Pick<Network, 'lanes'>,
) {
  const log = parent.child('tunnels');
  // Half of the file descriptors. The rest is for calls, the API and files.
  const maxConnections = Math.floor(descriptorLimit() / 2);
  const tunnelInbound = new TunnelInbound({
    clock,
    log,
    bulk: lanes,
    serviceOf: (aid) => {
      const service = boundService(aid);
      return service === null ? null : { ...(service.tunnels ?? service), takesTunnels: service.tunnels !== null };
    },
    connect: serviceSockets.connect,
    isNamed: ({ caller, called }) => access.isNamed(called, caller),
    maxConnections: () => maxConnections,
    authorize: (link) => access.authorize(accessRequestOf(link)),
    entered: (link) => callers.entered(accessRequestOf(link)),
  });
  life.defer(() => tunnelInbound.stop());
  for (const purpose of TUNNEL_PURPOSES) {
    links.accept(
      purpose,
      (link) => tunnelInbound.accept(link),
      (request) => tunnelInbound.check(request),
    );
  }
  keepChecked(tunnelInbound);
  const tunnels = new TunnelService({
    clock,
    log,
    links,
    bulk: lanes,
    memory: new TunnelStore(store),
  });
  life.add('acting', tunnels);
  onDeleted((aid) => {
    tunnelInbound.drop(aid);
    detach(tunnels.forget(aid));
  });
  return { tunnelInbound, tunnels };
}
