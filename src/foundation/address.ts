/**
 * Parses and formats addresses as users write them: `host:port`, `[2001:db8::1]:port`, and `:port` for every interface.
 */
import { MAX_PORT } from './domain/tunnels.ts';
import { type Aid, nativeAid, nativePublicKey, parseAid } from './identity/aid.ts';
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

// Contacts: nodes through which this node joins the network, as users write them. `host` or `host:port`, with `<node
// aid>@` in front if the node must prove that key.

/** Default UDP port of the record network. */
export const DEFAULT_DHT_PORT = 4121;
/** Default address of the API. */
export const DEFAULT_API_ADDR = '127.0.0.1:2121';

/** The port of HTTPS and HTTP/3, which most firewalls allow. */
export const HTTPS_PORT = 443;

export interface NodeContact extends Address {
  /** The key that the node must prove; omitted to accept any node. */
  readonly nodeKey?: Uint8Array;
}

function parsePlace(text: string): Address | null {
  const ip = canonicalIp(text);
  if (ip !== null) return { host: ip, port: DEFAULT_DHT_PORT };
  const address = isHost(text) ? { host: text, port: DEFAULT_DHT_PORT } : parseAddress(text);
  if (address !== null) return address.host === '' || address.port === 0 ? null : address;
  // An IPv6 address in brackets without a port.
  return text.endsWith(']') ? parseAddress(`${text}:${DEFAULT_DHT_PORT}`) : null;
}

/** The public key of a native AID; null if it is none. */
function keyOf(text: string): Uint8Array | null {
  try {
    const aid: Aid = parseAid(text);
    return nativePublicKey(aid);
  } catch {
    return null;
  }
}

/** Parses a contact; null if it is invalid or its AID is not the AID of a node. */
export function parseContact(text: string): NodeContact | null {
  const at = text.indexOf('@');
  const place = parsePlace(text.slice(at + 1));
  if (at < 0 || place === null) return place;
  const nodeKey = keyOf(text.slice(0, at));
  return nodeKey === null ? null : { ...place, nodeKey };
}

/** Formats a contact, always with the port. Equal contacts have equal texts. */
export function formatContact({ nodeKey, ...place }: NodeContact): string {
  return nodeKey === undefined ? formatAddress(place) : `${nativeAid(nodeKey)}@${formatAddress(place)}`;
}

/** True if strangers can use the host of a URL: it is neither this machine nor on the LAN. */
export function isPublicHost(url: URL): boolean {
  const host = hostOfUrl(url).replace(/\.$/, '');
  if (canonicalIp(host) !== null) return ipScope(host) === IP_SCOPE.public;
  return host.includes('.') && !/\.(?:localhost|local|lan|internal|home|test|invalid|arpa)$/i.test(host);
}
