/** Links between agents. Access lists of agents and the node, and file offers, authorize them. */
import { AgentLinks } from '../../network/links/links.ts';
import { DOOR_PURPOSES } from '../../network/links/types.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';
import type { Offered } from './files.ts';

export function buildLinks(
  { parts, seen, delegations }: Foundation,
  { pool, lanes, resolver, outages }: Network,
  { identity }: Agents,
  { access, permissions, callers, remoteAdmin }: Access,
  { authorizeObject }: Offered,
): AgentLinks {
  const links = new AgentLinks({
    pool,
    bulk: lanes,
    verifier: delegations,
    ...parts,
    identity,
    why: (since) => outages.explainDial(since),
    resolver,
    seen,
    authorize: (request) => {
      if (request.purpose === 'admin') return remoteAdmin.authorize(request);
      if (DOOR_PURPOSES.has(request.purpose)) return undefined;
      return callers.authorize(request, (asked) =>
        asked.purpose === 'object' ? authorizeObject(asked, null) : access.authorize(asked),
      );
    },
    isNamed: permissions.isNamed,
    isAdmitted: (names) => access.isAdmitted(names),
  });
  links.accept('admin', (link) => remoteAdmin.accept(link));
  return links;
}
