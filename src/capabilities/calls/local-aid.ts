/** Chooses the acting local agent if a request does not name one. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';

export interface LocalAgents {
  /** True if the agent is registered here. */
  has(aid: Aid): boolean;
  /** The first registered agents, at most `limit`. */
  first(limit: number): readonly Aid[];
}

/**
 * The named agent. If none is named, the only registered agent, or the node itself if no agent is registered.
 * @throws SvcError `local_aid_required` if several agents are registered, `not_found` if the named agent is not
 *   registered here
 */
export function chooseLocalAid(agents: LocalAgents, node: Aid, named: Aid | undefined): Aid {
  if (named !== undefined) {
    if (named !== node && !agents.has(named))
      throw new SvcError('not_found', {
        thing: 'agent',
        message: 'local_aid is not an agent of this daemon.',
        details: { aid: named },
      });
    return named;
  }
  const [only = node, another] = agents.first(2);
  if (another !== undefined) throw new SvcError('local_aid_required');
  return only;
}
