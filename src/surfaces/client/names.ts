/** Which agents a program means. */
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { SvcApi } from './api.ts';

/** Agents per page of the list. */
const PAGE = 1000;

/** The AID that a text is. */
function aidIn(text: string): string | null {
  try {
    return parseAid(text);
  } catch (error) {
    if (error instanceof SvcError) return null;
    throw error;
  }
}

/** The AID that a program writes as an AID or as a label of the address book. @throws SvcError `not_found` */
export async function namedAid(api: SvcApi, text: string): Promise<string> {
  const written = aidIn(text);
  if (written !== null) return written;
  const { aliases } = await api.addressBookGet();
  const wanted = text.trim().toLowerCase();
  const aid = Object.keys(aliases).find((one) => aliases[one]?.toLowerCase() === wanted);
  if (aid !== undefined) return aid;
  throw new SvcError('not_found', {
    message: `"${text}" is neither an AID nor a label here. Give the agent one with "svc alias add".`,
  });
}

/** The agents of this daemon, with the labels that the user has given them. */
export async function ownAgents(api: SvcApi): Promise<{ readonly aid: string; readonly label: string | undefined }[]> {
  const { aliases } = await api.addressBookGet();
  const own = [];
  let cursor: string | undefined;
  do {
    const page = await api.agentsList({ limit: PAGE, cursor });
    own.push(...page.agents.map(({ aid, name }) => ({ aid, label: aliases[aid] ?? name })));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return own;
}

/**
 * The agent here that acts: the one that is named, or the only one.
 * @throws SvcError `not_found`, `local_aid_required` where there are several
 */
export async function actingAgent(api: SvcApi, as: string | undefined): Promise<string> {
  if (as !== undefined) return await namedAid(api, as);
  const [first, ...others] = await ownAgents(api);
  if (first === undefined)
    throw new SvcError('not_found', {
      message: 'No agent is registered here. Make one with serve() or "svc register".',
    });
  if (others.length > 0)
    throw new SvcError('local_aid_required', {
      message: 'Several agents are registered here: say which one acts, with "as".',
    });
  return first.aid;
}
