/**
 * Parses and formats addresses as users write them: `host:port`, `[2001:db8::1]:port`, and `:port` for every interface.
 */
import { MAX_PORT } from './domain/tunnels.ts';
import { canonicalIp, IP_SCOPE, ipScope } from './ip.ts';

export interface Address {
  /** An IP address in canonical form (`canonicalIp`) or a host name. Empty means every interface. */
  readonly host: string;
  /** 0 to 65535; 0 lets the system choose. */
  readonly port: number;
}

/** Maximum length of a DNS name in text form (RFC 1035), in characters. */
const MAX_HOST_NAME_LENGTH = 253;
const LABEL = /^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$/;
/** Resolvers read a name whose last label looks like this as a number, and so as an IPv4 address. */
const NUMERIC_LABEL = /^(\d+|0[xX][0-9a-fA-F]*)$/;

/** True for an IPv4 address, an IPv6 address without brackets and zone, or a DNS name. */
export function isHost(text: string): boolean {
  if (canonicalIp(text) !== null) return true;
  if (text.length === 0 || text.length > MAX_HOST_NAME_LENGTH) return false;
  const labels = text.split('.');
  return labels.every((label) => LABEL.test(label)) && !NUMERIC_LABEL.test(labels.at(-1) ?? '');
}

/** Parses an address; null if it is invalid. The host is optional, the port is required. */
export function parseAddress(text: string): Address | null {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  if (match === null) return null;
  const [, bracketed, plain, digits] = match;
  const port = Number(digits);
  if (port > MAX_PORT) return null;
  if (bracketed !== undefined) {
    const ip = bracketed.includes(':') ? canonicalIp(bracketed) : null;
    return ip === null ? null : { host: ip, port };
  }
  const host = plain ?? '';
  return host === '' || isHost(host) ? { host, port } : null;
}

/** Formats an address, with brackets for IPv6. Equal addresses have equal texts. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The host of a URL, without the brackets of IPv6. */
export function hostOfUrl({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/** True if a listener on this host accepts connections on every interface. */
export function isEveryInterface(host: string): boolean {
  return host === '' || host === '0.0.0.0' || host === '::';
}

/**
 * True if only this machine can connect: 127.0.0.0/8, ::1, localhost. False for an empty host, which means every
 * interface.
 */
export function isLoopbackHost(host: string): boolean {
  return ipScope(host) === IP_SCOPE.loopback || /^([^.]+\.)*localhost$/i.test(host);
}

/**
 * True if a connection to this host may end on this machine: loopback, and unspecified addresses such as 0.0.0.0, which
 * systems treat as loopback. Use it to reject addresses. Use `isLoopbackHost` to grant something.
 */
export function mayBeThisMachine(host: string): boolean {
  return isLoopbackHost(host) || (canonicalIp(host) !== null && ipScope(host) === IP_SCOPE.none);
}
