/** Which local agent acts where a request may leave that open. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';

export interface LocalAgents {
  /** True for the agents registered here. */
  has(aid: Aid): boolean;
  /** The first of them, at most `limit`. */
  first(limit: number): readonly Aid[];
}

/**
 * The named agent; where none is named the only one, or the node itself where none is registered.
 * @throws SvcError `local_aid_required` where several are registered, `not_found` where the named one is not here
 */
export function chooseLocalAid(agents: LocalAgents, node: Aid, named: Aid | undefined): Aid {
  if (named !== undefined) {
    if (named !== node && !agents.has(named))
      throw new SvcError('not_found', {
        thing: 'agent',
        message: 'local_aid is no agent of this daemon.',
        details: { aid: named },
      });
    return named;
  }
  const [only = node, another] = agents.first(2);
  if (another !== undefined) throw new SvcError('local_aid_required');
  return only;
}
