/**
 * IP addresses: their canonical form, their scope and the network that they count for. All address ranges are defined
 * here. Uses only text and arithmetic, so that a browser can run it too.
 */

/** How far an address reaches: nowhere, on this machine, on one link, in private networks, everywhere. */
export const IP_SCOPE = { none: 0, loopback: 1, link: 2, private: 3, public: 4 } as const;
export type IpScope = (typeof IP_SCOPE)[keyof typeof IP_SCOPE];

/** Sizes of addresses, bytes. */
export const IPV4_BYTES = 4;
export const IPV6_BYTES = 16;

/** The addresses from first to last. */
type Range<V> = readonly [first: V, last: V, scope: IpScope];

const DOT = 46;
const ZERO = 48;

/**
 * An IPv4 address as a number; -1 for any other text, also for numbers with leading zeros, which some programs read as
 * octal. Runs for every datagram.
 */
export function ipv4Number(text: string): number {
  let value = 0;
  let octet = -1;
  let dots = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT && octet >= 0) {
      value = value * 256 + octet;
      octet = -1;
      dots++;
    } else {
      const digit = code - ZERO;
      if (digit < 0 || digit > 9 || octet === 0) return -1;
      octet = octet < 0 ? digit : octet * 10 + digit;
      if (octet > 255) return -1;
    }
  }
  return dots === 3 && octet >= 0 ? value * 256 + octet : -1;
}

/** Formats an IPv4 address from its 32-bit number. */
export function ipv4Text(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

/** Removes the zone. It identifies the link, not the address. */
function unzoned(text: string): string {
  const at = text.indexOf('%');
  return at < 0 ? text : text.slice(0, at);
}

/** An IPv6 address as in RFC 5952, without dots; null for any other text. */
function ipv6Text(text: string): string | null {
  // Keeps characters that would end the brackets away from the URL parser.
  if (!/^[0-9a-f:.]+$/i.test(text)) return null;
  return URL.parse(`http://[${text}]`)?.hostname.slice(1, -1) ?? null;
}

/** The groups of an IPv6 address, padded and joined. */
function digitsOf(groups: string): string {
  if (groups === '') return '';
  return groups
    .split(':')
    .map((group) => group.padStart(4, '0'))
    .join('');
}

/** An IPv6 address as a number; null for any other text. */
export function ipv6Number(text: string): bigint | null {
  const ip = ipv6Text(text);
  if (ip === null) return null;
  const [head = '', tail = ''] = ip.split('::', 2);
  const [left, right] = [digitsOf(head), digitsOf(tail)];
  return BigInt(`0x${left.padEnd(32 - right.length, '0')}${right}`);
}

/** The IPv4 address in an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2); otherwise -1. */
function mappedIpv4(value: bigint): number {
  return value >> 32n === 0xffffn ? Number(value & 0xffff_ffffn) : -1;
}

/**
 * The IPv4 address that an IPv6 address reaches through a gateway: NAT64 (RFC 6052) or 6to4 (RFC 3056); otherwise -1.
 */
function gatewayIpv4(value: bigint): number {
  if (value >> 32n === 0x64_ff9b_0000_0000_0000_0000n) return Number(value & 0xffff_ffffn);
  return value >> 112n === 0x2002n ? Number((value >> 80n) & 0xffff_ffffn) : -1;
}

/**
 * The canonical form of an IP address: IPv4 with dots, also for IPv4-mapped IPv6, and IPv6 as in RFC 5952. Null for any
 * other text. A zone is not part of an address.
 */
export function canonicalIp(text: string): string | null {
  if (ipv4Number(text) >= 0) return text;
  const value = ipv6Number(text);
  if (value === null) return null;
  const mapped = mappedIpv4(value);
  return mapped < 0 ? ipv6Text(text) : ipv4Text(mapped);
}

function ipv4Range(network: string, prefix: number, scope: IpScope): Range<number> {
  const first = ipv4Number(network);
  return [first, first + 2 ** (32 - prefix) - 1, scope];
}

function ipv6Range(network: string, prefix: number, scope: IpScope): Range<bigint> {
  const first = ipv6Number(network) ?? 0n;
  return [first, first + 2n ** BigInt(128 - prefix) - 1n, scope];
}

/** All others count as public, including documentation addresses, so that examples behave like real addresses. */
const IPV4_RANGES = [
  ipv4Range('0.0.0.0', 8, IP_SCOPE.none),
  ipv4Range('10.0.0.0', 8, IP_SCOPE.private),
  // Carrier-grade NAT (RFC 6598).
  ipv4Range('100.64.0.0', 10, IP_SCOPE.private),
  ipv4Range('127.0.0.0', 8, IP_SCOPE.loopback),
  ipv4Range('169.254.0.0', 16, IP_SCOPE.link),
  ipv4Range('172.16.0.0', 12, IP_SCOPE.private),
  ipv4Range('192.168.0.0', 16, IP_SCOPE.private),
  // Multicast, reserved, broadcast.
  ipv4Range('224.0.0.0', 3, IP_SCOPE.none),
];

/** The ranges that an address can be in, by its first byte. */
const IPV4_RANGES_BY_BYTE = Array.from({ length: 256 }, (_, byte) =>
  IPV4_RANGES.filter(([first, last]) => first < (byte + 1) * 2 ** 24 && last >= byte * 2 ** 24),
);

/** All others are unassigned: only 2000::/3 is in use. */
const IPV6_RANGES = [
  ipv6Range('::1', 128, IP_SCOPE.loopback),
  ipv6Range('64:ff9b:1::', 48, IP_SCOPE.private),
  ipv6Range('2000::', 3, IP_SCOPE.public),
  ipv6Range('fc00::', 7, IP_SCOPE.private),
  ipv6Range('fe80::', 10, IP_SCOPE.link),
  ipv6Range('fec0::', 10, IP_SCOPE.private),
];

function scopeIn<V extends number | bigint>(ranges: readonly Range<V>[], value: V, otherwise: IpScope): IpScope {
  for (const [first, last, scope] of ranges) if (value >= first && value <= last) return scope;
  return otherwise;
}

/** The scope of an IPv4 address, given as its 32-bit number. */
export function ipv4Scope(address: number): IpScope {
  return scopeIn(IPV4_RANGES_BY_BYTE[address >>> 24] ?? [], address, IP_SCOPE.public);
}

/** The scope of an IPv4 address; `none` for any other text. */
export function ipv4ScopeOf(text: string): IpScope {
  const address = ipv4Number(text);
  return address < 0 ? IP_SCOPE.none : ipv4Scope(address);
}

/** The scope of an IP address in any form; `none` for any other text. */
export function ipScope(text: string): IpScope {
  const ipv4 = ipv4Number(text);
  if (ipv4 >= 0) return ipv4Scope(ipv4);
  const value = ipv6Number(unzoned(text));
  if (value === null) return IP_SCOPE.none;
  const mapped = mappedIpv4(value);
  if (mapped >= 0) return ipv4Scope(mapped);
  // A public gateway cannot lead into a private network.
  const embedded = gatewayIpv4(value);
  if (embedded >= 0) return ipv4Scope(embedded) === IP_SCOPE.public ? IP_SCOPE.public : IP_SCOPE.none;
  return scopeIn(IPV6_RANGES, value, IP_SCOPE.none);
}

/** Prefix length of the smallest IPv6 network that a provider gives to one subscriber. */
const SUBSCRIBER_BITS = 64;

/**
 * The source that an address counts for in quotas: the IPv4 address itself, or the IPv6 network of the subscriber. Text
 * that is not an IP address is returned unchanged.
 * @param bits prefix length of the IPv6 network, at most 64
 */
export function subscriberOf(text: string, bits: number = SUBSCRIBER_BITS): string {
  if (ipv4Number(text) >= 0) return text;
  const value = ipv6Number(unzoned(text));
  if (value === null) return text;
  const ipv4 = Math.max(mappedIpv4(value), gatewayIpv4(value));
  if (ipv4 >= 0) return ipv4Text(ipv4);
  const rest = BigInt(128 - bits);
  const network = (value >> rest) << rest;
  const groups = [112n, 96n, 80n, 64n].map((shift) => ((network >> shift) & 0xffffn).toString(16));
  return `${groups.join(':')}::/${bits}`;
}

/** Prefix length of the largest IPv6 network that a provider usually gives to one customer. */
const NETWORK_BITS = 48;

/** The IPv4 /24 or IPv6 /48 of an address, or of a network from `subscriberOf`; null for any other text. */
export function networkOf(text: string): string | null {
  const [address = ''] = text.split('/', 1);
  const network = subscriberOf(address, NETWORK_BITS);
  const ipv4 = ipv4Number(network);
  if (ipv4 >= 0) return `${ipv4Text(ipv4 - (ipv4 % 256))}/24`;
  return network.endsWith(`::/${NETWORK_BITS}`) ? network : null;
}

/** True for an IPv4 network such as `192.0.2.0/24`. */
export function isIpv4Network(text: string): boolean {
  const [, base = ''] = /^([^/]+)\/(?:[0-9]|[12][0-9]|3[0-2])$/.exec(text) ?? [];
  return ipv4Number(base) >= 0;
}

/** True if an IPv4 address is in a network such as `192.0.2.0/24`. */
export function inIpv4Network(ip: string, network: string): boolean {
  const [base = '', prefix] = network.split('/', 2);
  const [address, first] = [ipv4Number(ip), ipv4Number(base)];
  const size = 2 ** (32 - Number(prefix));
  return address >= 0 && first >= 0 && Math.floor(address / size) === Math.floor(first / size);
}
