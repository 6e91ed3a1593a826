/** Addresses as people write them: `host:port`, `[2001:db8::1]:port`, and `:port` for every interface. */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

export interface Address {
  /** An IP address without brackets or a host name; empty means every interface. */
  readonly host: string;
  /** 0 to 65535; 0 lets the system choose. */
  readonly port: number;
}

/** The highest TCP or UDP port. */
const MAX_PORT = 65_535;
/** Longest DNS name in its text form (RFC 1035), characters. */
const MAX_HOST_NAME_LENGTH = 253;
const LABEL = /^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$/;
/** A last label like this makes a resolver read the name as a number, and so as some IPv4 address. */
const NUMERIC_LABEL = /^(\d+|0[xX][0-9a-fA-F]*)$/;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** True for an IPv4 address, an IPv6 address (no brackets, no zone) and a DNS name. */
export function isHost(text: string): boolean {
  if (isIP(text) !== 0) return !text.includes('%');
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
    return isIPv6(bracketed) && !bracketed.includes('%') ? { host: bracketed, port } : null;
  }
  const host = plain ?? '';
  return host === '' || isHost(host) ? { host, port } : null;
}

/** The text of an address, with the brackets that IPv6 needs. */
export function formatAddress(address: Address): string {
  return isIPv6(address.host) ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** True where only this machine can connect: 127.0.0.0/8, ::1, localhost. An empty host is every interface: false. */
export function isLoopbackHost(host: string): boolean {
  if (isIPv4(host)) return LOOPBACK.check(host, 'ipv4');
  if (isIPv6(host)) return LOOPBACK.check(host, 'ipv6');
  return /^([^.]+\.)*localhost$/i.test(host);
}
