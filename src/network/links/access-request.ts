import type { AccessRequest, LinkStream } from './types.ts';

/** What to ask access control about a link that is already open: at each request on it, and after a change of the rules. */
export function accessRequestOf(link: LinkStream): AccessRequest {
  const { caller, called, purpose, accessToken, nodeKey } = link;
  return { caller, called, purpose, accessToken, nodeKey, address: link.path().remoteAddress?.host ?? null };
}
