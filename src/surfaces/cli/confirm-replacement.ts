/** Asks before a command replaces the service of an agent. */
import { replacedService, replacementRequired } from '../replace-service.ts';
import type { CliContext } from './context.ts';
import { promptYes } from './input.ts';
import { safeText } from './text.ts';

/**
 * The service to replace, or null if none is bound. Asks on a terminal.
 * @param service the service to bind; undefined if it is not known yet
 * @throws SvcError `wrong_state` if another service is bound and may not be replaced
 */
export async function confirmReplacement(
  context: CliContext,
  aid: string,
  agreed: boolean,
  service?: string,
  ask = 'Replace it while the new service is served?',
): Promise<string | null> {
  const bound = await replacedService(context.client, aid, service);
  if (bound === null || agreed) return bound;
  const question = `${aid} is bound to ${bound}. ${ask}`;
  if (context.interactive && (await promptYes(context.io, safeText(question)))) return bound;
  throw replacementRequired(aid, bound, 'say --replace');
}
