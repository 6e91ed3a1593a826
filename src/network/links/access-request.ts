import type { ErrorCode } from '../../foundation/errors.ts';
import type { AccessRequest, LinkStream } from './types.ts';

/** What is told of each who asks an agent here to be let in. */
export interface CallerNotes {
  /** It was let in. */
  entered(request: AccessRequest): void;
  /** It was not; codes that say something else than that are left out. */
  refused(request: AccessRequest, code: ErrorCode): void;
}

/** What to ask access control about a link that is already open: at each request on it, and after a change of the rules. */
export function accessRequestOf(link: LinkStream): AccessRequest {
  const { caller, called, purpose, accessToken, nodeKey } = link;
  return { caller, called, purpose, accessToken, nodeKey, source: link.path().source };
}

/** Asks access control again about all of these, after a change of the rules; tells of each whom it now refuses, and why. */
export async function askAgain<T extends { readonly link: LinkStream }>(
  all: Iterable<T>,
  authorize: (request: AccessRequest, one: T) => void | Promise<void>,
  refused: (one: T, error: unknown) => void,
): Promise<void> {
  const ask = async (one: T): Promise<void> => authorize(accessRequestOf(one.link), one);
  await Promise.all(Array.from(all, (one) => ask(one).catch((error: unknown) => refused(one, error))));
}
