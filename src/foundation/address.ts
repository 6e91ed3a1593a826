/** Addresses as people write them: `host:port`, `[2001:db8::1]:port`, and `:port` for every interface. */
import { MAX_PORT } from './domain/tunnels.ts';
import { canonicalIp, IP_SCOPE, ipScope } from './ip.ts';

export interface Address {
  /** An IP address in its one spelling (`canonicalIp`), or a host name; empty means every interface. */
  readonly host: string;
  /** 0 to 65535; 0 lets the system choose. */
  readonly port: number;
}

/** Longest DNS name in its text form (RFC 1035), characters. */
const MAX_HOST_NAME_LENGTH = 253;
const LABEL = /^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$/;
/** A last label like this makes a resolver read the name as a number, and so as some IPv4 address. */
const NUMERIC_LABEL = /^(\d+|0[xX][0-9a-fA-F]*)$/;

/** True for an IPv4 address, an IPv6 address (no brackets, no zone) and a DNS name. */
export function isHost(text: string): boolean {
  if (canonicalIp(text) !== null) return true;
  if (text.length === 0 || text.length > MAX_HOST_NAME_LENGTH) return false;
  const labels = text.split('.');
  return labels.every((label) => LABEL.test(label)) && !NUMERIC_LABEL.test(labels.at(-1) ?? '');
}

/** The parts of an address; null where it is none. A host may be left out, a port not. */
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

/** The text of an address, with the brackets that IPv6 needs: equal for equal addresses. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The host of a URL, without the brackets of IPv6. */
export function hostOfUrl({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/** True where a listener on this host takes connections on every interface. */
export function isEveryInterface(host: string): boolean {
  return host === '' || host === '0.0.0.0' || host === '::';
}

/** True where only this machine can connect: 127.0.0.0/8, ::1, localhost. An empty host is every interface: false. */
export function isLoopbackHost(host: string): boolean {
  return ipScope(host) === IP_SCOPE.loopback || /^([^.]+\.)*localhost$/i.test(host);
}

/**
 * True where a connection to this host may end on this very machine: loopback, and addresses that
 * reach nowhere, as systems take 0.0.0.0 for themselves. For refusals; whoever grants something asks
 * `isLoopbackHost`.
 */
export function mayBeThisMachine(host: string): boolean {
  return isLoopbackHost(host) || (canonicalIp(host) !== null && ipScope(host) === IP_SCOPE.none);
}
