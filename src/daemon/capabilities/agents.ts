/** The agents of this daemon: their identities, the acting agent of a request, and their bound services. */
import { AgentCache } from '../../capabilities/agents/agent-cache.ts';
import { EvidenceSetting } from '../../capabilities/agents/evidence-setting.ts';
import { AgentLeases } from '../../capabilities/agents/leases.ts';
import { AgentRegistry } from '../../capabilities/agents/registry.ts';
import { checkTcp } from '../../capabilities/agents/tcp-check.ts';
import { type Address, isLoopbackHost } from '../../foundation/address.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { addressesOf } from '../../foundation/service-address.ts';
import { ServiceSockets } from '../../foundation/service-sockets.ts';
import { AgentStore } from '../../foundation/store/agents.ts';
import { OriginStore } from '../../foundation/store/origins.ts';
import type { ApiReference } from '../api.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';

export type Agents = ReturnType<typeof buildAgents>;

export function buildAgents(
  { life, clock, log, store, meta, secrets, keys, node }: Foundation,
  { interfaces, lookupHost }: Network,
  api: ApiReference,
) {
  const agents = new AgentStore(store);
  const origins = new OriginStore(store, secrets);
  const localPorts = (aid: Aid): number[] =>
    origins
      .list()
      .filter(({ remoteAid }) => remoteAid === aid)
      .map(({ port }) => port);
  let programFailure: (address: Address) => string | null = () => null;
  const leases = new AgentLeases({ storage: meta, remove: (aid) => registry.delete(aid), clock, log });
  const registry: AgentRegistry = new AgentRegistry(
    { nodeAid: node.aid },
    {
      agents,
      vault: keys,
      clock,
      log,
      onTemporary: (aid) => leases.add(aid),
      checkTcp: async (address, timeoutMs) => {
        const error = programFailure(address);
        return error === null ? checkTcp(address, timeoutMs) : { ok: false, ms: 0, error };
      },
      own: { api: () => api.address, interfaces, lookup: lookupHost, localPorts },
    },
  );
  life.add('answering', registry);
  const serviceSockets = new ServiceSockets({ api: () => api.address, interfaces });
  const remembered = new AgentCache(registry);
  registry.onChange(({ aid, kind }) => {
    if (kind === 'deleted') leases.forget(aid);
  });
  return {
    registry,
    leases,
    /** The agents that can act for a request. */
    local: {
      has: (aid: Aid): boolean => registry.identity(aid) !== null,
      first: (limit: number): readonly Aid[] => remembered.first(limit),
    },
    serviceSockets,
    evidence: new EvidenceSetting(agents, registry),
    /** A local agent, or the node itself. */
    identity: (aid: Aid) => (aid === node.aid ? node : registry.identity(aid)),
    boundService: (aid: Aid) => {
      const service = remembered.service(aid);
      if (service === null) return null;
      // The API may have moved to this address after the service was bound.
      const isApi = ({ host, port }: Address): boolean => port === api.address?.port && isLoopbackHost(host);
      return addressesOf(service).some(isApi) ? null : service;
    },
    /** Registers the function that tells why the program behind an address of svcd did not start; null if it did. */
    reportFailures: (of: typeof programFailure): void => {
      programFailure = of;
    },
    /** Registers a callback for when an agent was deleted. */
    onDeleted: (forget: (aid: Aid) => void): void => {
      registry.onChange(({ aid, kind }) => {
        if (kind === 'deleted') forget(aid);
      });
    },
  };
}
