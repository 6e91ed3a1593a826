/** Chooses the acting local agent if a request does not name one. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NamedAgents } from '../../foundation/labels.ts';
import { MAX_LISTED_AGENTS, severalAgents } from '../../foundation/several-agents.ts';

export interface LocalAgents {
  /** True if the agent is registered here. */
  has(aid: Aid): boolean;
  /** The first registered agents, at most `limit`. */
  first(limit: number): readonly Aid[];
  /** Agents with the names to show. */
  named(aids: readonly Aid[]): NamedAgents;
}

/** The only registered agent. Undefined if there is none. @throws SvcError `local_aid_required` if there are several */
function onlyOne(agents: LocalAgents, member: string): Aid | undefined {
  const [only, another] = agents.first(2);
  if (another !== undefined)
    throw severalAgents(agents.named(agents.first(MAX_LISTED_AGENTS + 1)), `Choose one with ${member}.`);
  return only;
}

/**
 * The named agent. If none is named, the only registered agent, or the node itself if no agent is registered.
 * @throws SvcError `local_aid_required` if several agents are registered, `not_found` if the named agent is not
 *   registered here
 */
export function chooseLocalAid(agents: LocalAgents, node: Aid, named: Aid | undefined): Aid {
  if (named === undefined) return onlyOne(agents, 'local_aid') ?? node;
  if (named !== node && !agents.has(named))
    throw new SvcError('not_found', {
      thing: 'agent',
      message: 'local_aid is not an agent of this daemon.',
      details: { aid: named },
    });
  return named;
}

/**
 * The only registered agent, for a tool call without `aid`.
 * @throws SvcError `local_aid_required` if several agents are registered, `not_found` if none is
 */
export function onlyLocalAid(agents: LocalAgents): Aid {
  const only = onlyOne(agents, 'aid');
  if (only === undefined)
    throw new SvcError('not_found', {
      thing: 'agent',
      message: 'No agent is registered here. Create one with svc_identity_generate and svc_agent_register.',
    });
  return only;
}
