/** Who a request came from and whom it was addressed to. */
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { isLoopbackHost } from '../../foundation/address.ts';

const MAPPED_IPV4 = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;

/** An IPv4 address in its own form where a dual-stack socket shows it as `::ffff:a.b.c.d`; no IPv6 zone. */
export function plainAddress(address: string): string {
  const mapped = MAPPED_IPV4.exec(address)?.[1];
  return mapped ?? address.split('%', 1)[0] ?? address;
}

/** True for a peer on this machine; false for an unknown one. */
export function isLoopbackPeer(address: string | undefined): boolean {
  if (address === undefined) return false;
  if (address === '127.0.0.1' || address === '::1') return true;
  const plain = plainAddress(address);
  return isIP(plain) !== 0 && isLoopbackHost(plain);
}

/** What strangers are counted by: an IPv4 address, the /64 of an IPv6 address (one subscriber has many of those). */
export function strangerKey(address: string): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::', 2);
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - front.length - back.length);
  const groups = [...front, ...Array.from({ length: zeros }, () => '0'), ...back];
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/** The host of a `Host` header without brackets and port, in lower case; null where the header is malformed. */
export function hostOf(header: string): string | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/\\@?#]+))(?::\d{1,5})?$/.exec(header);
  if (match === null) return null;
  const [, bracketed, plain] = match;
  if (bracketed !== undefined) return isIPv6(bracketed) ? bracketed.toLowerCase() : null;
  return plain?.toLowerCase() ?? null;
}

/** True for a host that no DNS answer can point elsewhere: an IP address. */
export function isAddress(host: string): boolean {
  return isIPv4(host) || isIPv6(host);
}

/** True where an `Origin` header names the very site that the request was sent to. */
export function isSameSite(origin: string, hostHeader: string | undefined): boolean {
  if (hostHeader === undefined) return false;
  const from = URL.parse(origin);
  if (from === null || (from.protocol !== 'http:' && from.protocol !== 'https:')) return false;
  // Read with the same scheme, so that a default port that one of them leaves out makes no difference.
  const to = URL.parse(`${from.protocol}//${hostHeader}`);
  return to !== null && from.host === to.host;
}
