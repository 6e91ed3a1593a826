/** Who a request came from and whom it was addressed to. */
import type { IncomingMessage } from 'node:http';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';

/** True for a peer on this machine; false for an unknown one. */
export function isLoopbackPeer(address: string | undefined): boolean {
  return address !== undefined && ipScope(address) === IP_SCOPE.loopback;
}

/** The host of a `Host` header without brackets and port, in lower case; null where the header is malformed. */
export function hostOf(header: string): string | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/\\@?#]+))(?::\d{1,5})?$/.exec(header);
  if (match === null) return null;
  const [, bracketed, plain] = match;
  if (bracketed !== undefined) return bracketed.includes(':') ? canonicalIp(bracketed) : null;
  return plain?.toLowerCase() ?? null;
}

/** True where a request says more than once whom it calls, which others on its way may read otherwise (RFC 9112, section 3.2). */
export function namesManyHosts({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean {
  return rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length > 1;
}

/** True where an `Origin` header names the very site that the request was sent to. */
export function isSameSite(origin: string, hostHeader: string | undefined): boolean {
  // No browser writes a blank there, and `URL` would pass over it.
  if (hostHeader === undefined || /\s/.test(origin)) return false;
  const from = URL.parse(origin);
  if (from === null || (from.protocol !== 'http:' && from.protocol !== 'https:')) return false;
  // Read with the same scheme, so that a default port that one of them leaves out makes no difference.
  const to = URL.parse(`${from.protocol}//${hostHeader}`);
  return to !== null && from.host === to.host;
}
