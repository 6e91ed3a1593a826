/** The error if several local agents could act and a request names none. It lists them, so that the user can choose. */
import { SvcError } from './errors.ts';
import { type NamedAgents, shortAid } from './labels.ts';

/** Agents in the list. */
export const MAX_LISTED_AGENTS = 20;

/**
 * The error `local_aid_required` with the first agents.
 * @param agents all of them, or at least one more than are listed, with the names to show
 * @param remedy how to name one
 * @param short the AID as it is shown
 */
export function severalAgents(
  agents: NamedAgents,
  remedy: string,
  short: (aid: string) => string = (aid) => shortAid(aid),
): SvcError {
  const listed = agents.slice(0, MAX_LISTED_AGENTS);
  const texts = listed.map(({ aid, name }) => (name === undefined ? short(aid) : `${name} (${short(aid)})`));
  const list = agents.length > listed.length ? [...texts, '…'] : texts;
  return new SvcError('local_aid_required', {
    message: `There are several agents: ${list.join(', ')}. ${remedy}`,
    details: { agents: listed.map(({ aid, name }) => ({ aid, label: name ?? null })) },
  });
}
