/** Resolves agents for programs. */
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import { agentsNamed } from '../../foundation/labels.ts';
import { severalAgents } from '../../foundation/several-agents.ts';
import type { SvcApi } from './api.ts';

/** Agents per page of the list. */
const PAGE = 1000;

/** The AID in a text, or null. */
function aidIn(text: string): string | null {
  try {
    return parseAid(text);
  } catch (error) {
    if (error instanceof SvcError) return null;
    throw error;
  }
}

/** Resolves an AID or a label. @throws SvcError `not_found` */
export async function resolveAid(api: SvcApi, text: string): Promise<string> {
  const written = aidIn(text);
  if (written !== null) return written;
  const [aid] = agentsNamed(text, await api.addressBookGet(), []);
  if (aid !== undefined) return aid;
  throw new SvcError('not_found', {
    message: `"${text}" is neither an AID nor a label. Add a label with "svc alias add".`,
  });
}

/** The local agents with their labels. */
export async function localAgents(
  api: SvcApi,
): Promise<{ readonly aid: string; readonly label: string | undefined }[]> {
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
 * The acting local agent: the named one, or the only one.
 * @throws SvcError `not_found`, `local_aid_required` if there are several
 */
export async function actingAgent(api: SvcApi, as: string | undefined): Promise<string> {
  if (as !== undefined) return await resolveAid(api, as);
  const [first, ...others] = await localAgents(api);
  if (first === undefined)
    throw new SvcError('not_found', {
      message: 'No agent is registered here. Create one with serve() or "svc register".',
    });
  if (others.length > 0)
    throw severalAgents(
      [first, ...others].map(({ aid, label }) => ({ aid, name: label })),
      'Name one with "as".',
    );
  return first.aid;
}
