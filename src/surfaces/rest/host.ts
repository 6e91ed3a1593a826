/** Reads the sender and the addressed host of a request. */
import type { IncomingMessage } from 'node:http';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';

/** True for a peer on this machine; false for an unknown peer. */
export function isLoopbackPeer(address: string | undefined): boolean {
  return address !== undefined && ipScope(address) === IP_SCOPE.loopback;
}

/** The host of a `Host` header in lower case, without brackets and port; null if the header is malformed. */
export function hostOf(header: string): string | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/\\@?#]+))(?::\d{1,5})?$/.exec(header);
  if (match === null) return null;
  const [, bracketed, plain] = match;
  if (bracketed !== undefined) return bracketed.includes(':') ? canonicalIp(bracketed) : null;
  return plain?.toLowerCase() ?? null;
}

/** True if a request names its host more than once, which proxies may read differently (RFC 9112, section 3.2). */
export function namesManyHosts({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === 'host') count++;
  return count > 1;
}

/** True if an `Origin` header names the host to which the request was sent. */
export function isSameSite(origin: string, hostHeader: string | undefined): boolean {
  // No browser sends whitespace here, and `URL` would ignore it.
  if (hostHeader === undefined || /\s/.test(origin)) return false;
  const from = URL.parse(origin);
  if (from === null || (from.protocol !== 'http:' && from.protocol !== 'https:')) return false;
  // Parse both with the same scheme, so that an omitted default port makes no difference.
  const to = URL.parse(`${from.protocol}//${hostHeader}`);
  return to !== null && from.host === to.host;
}
