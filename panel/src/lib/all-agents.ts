/** Agents beyond the first page. */
import type { Output } from './api.ts';
import { here } from './place.ts';
import { perform } from './query.ts';

/** Agents per page. */
const PAGE = 1000;

/**
 * All agents after a cursor.
 *
 * @throws Failure
 */
export async function everyAgent(cursor: string): Promise<Output<'agentsList'>['agents']> {
  const { base } = here();
  const agents: Output<'agentsList'>['agents'] = [];
  for (let next: string | undefined = cursor; next !== undefined; ) {
    const page: Output<'agentsList'> = await perform('agentsList', { cursor: next, limit: PAGE }, base);
    agents.push(...page.agents);
    next = page.next_cursor;
  }
  return agents;
}
