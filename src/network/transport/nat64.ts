/**
 * IPv4 addresses for machines that have IPv6 only. Their network may translate: a NAT64 (RFC 6146) forwards packets to
 * IPv6 addresses of a prefix to the IPv4 addresses in them (RFC 6052). The prefix is found with DNS (RFC 7050).
 */
import { isIPv4 } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SingleFlight } from '../../foundation/concurrency.ts';
import { abortable, deadline } from '../../foundation/deadline.ts';
import { canonicalIp, IP_SCOPE, IPV4_BYTES, IPV6_BYTES, ipScope, ipv6Number } from '../../foundation/ip.ts';

/** The name whose AAAA records contain the prefix. It has only these IPv4 addresses: 192.0.0.170 and 192.0.0.171. */
const KNOWN_NAME = 'ipv4only.arpa';
const KNOWN_IPV4 = ['192.0.0.170', '192.0.0.171'] as const;
/** Lengths of prefixes, bytes. The longest is the usual one. */
const PREFIX_LENGTHS = [12, 8, 7, 6, 5, 4] as const;
/** The prefix that networks without their own one use. */
const WELL_KNOWN_PREFIX = '64:ff9b::';
/** This byte of an address with a prefix is zero. */
const RESERVED_BYTE = 8;
/** Timeout of the DNS query, milliseconds. */
const LOOKUP_MS = 1_000;
/** How long prefixes are cached, milliseconds. */
const CACHE_MS = 60_000;
/** Prefixes that are used. */
const MAX_PREFIXES = 2;

function bytesOf(ipv6: string): Buffer {
  return Buffer.from((ipv6Number(ipv6) ?? 0n).toString(16).padStart(2 * IPV6_BYTES, '0'), 'hex');
}

function textOf(bytes: Buffer): string {
  return canonicalIp(bytes.toString('hex').replace(/(.{4})(?!$)/g, '$1:')) ?? '';
}

/** Positions of the bytes of an IPv4 address behind a prefix. */
function positions(length: number): number[] {
  const from = Array.from({ length: IPV4_BYTES + 1 }, (_, i) => length + i);
  return from.filter((at) => at !== RESERVED_BYTE).slice(0, IPV4_BYTES);
}

interface Prefix {
  /** The first bytes of an address; zeros follow. */
  readonly bytes: Buffer;
  readonly length: number;
}

const WELL_KNOWN: Prefix = { bytes: bytesOf(WELL_KNOWN_PREFIX), length: 12 };

/** The prefix in an address of the known name; null if it has none. */
export function prefixIn(ipv6: string): Prefix | null {
  const bytes = bytesOf(ipv6);
  for (const length of PREFIX_LENGTHS) {
    const inside = positions(length).map((at) => bytes[at] ?? 0);
    if (KNOWN_IPV4.some((known) => known === inside.join('.')))
      return { bytes: Buffer.concat([bytes.subarray(0, length), Buffer.alloc(IPV6_BYTES - length)]), length };
  }
  return null;
}

/** The IPv6 address with which a NAT64 reaches an IPv4 address. */
export function translated(ipv4: string, { bytes, length }: Prefix): string {
  const address = Buffer.from(bytes);
  const parts = ipv4.split('.').map(Number);
  positions(length).forEach((at, i) => {
    address[at] = parts[i] ?? 0;
  });
  return textOf(address);
}

/** True if a machine has a public IPv6 address and no IPv4 address. */
export function isIpv6Only(interfaces: readonly { readonly address: string }[]): boolean {
  const hosts = interfaces.map(({ address }) => address).filter((host) => ipScope(host) > IP_SCOPE.link);
  return !hosts.some((host) => isIPv4(host)) && hosts.some((host) => ipScope(host) === IP_SCOPE.public);
}

interface Nat64Parts {
  readonly clock: Clock;
  readonly interfaces: () => readonly { readonly address: string }[];
  /** The addresses of a name. */
  readonly lookupHost: (name: string) => Promise<readonly string[]>;
}

export class Nat64 {
  readonly #parts: Nat64Parts;
  readonly #lookups = new SingleFlight<readonly Prefix[]>();
  #cached: { readonly prefixes: readonly Prefix[]; readonly at: number } | null = null;

  constructor(parts: Nat64Parts) {
    this.#parts = parts;
  }

  /**
   * The addresses at which this machine may reach an address, to be tried in order: on a machine with IPv6 only, a
   * public IPv4 address becomes IPv6 addresses of the NAT64. Without a DNS answer, the usual prefix is tried.
   */
  async reachableForms(address: Address): Promise<readonly Address[]> {
    const { host, port } = address;
    if (!isIPv4(host) || ipScope(host) !== IP_SCOPE.public || !isIpv6Only(this.#parts.interfaces())) return [address];
    return (await this.#prefixes()).map((prefix) => ({ host: translated(host, prefix), port }));
  }

  async #prefixes(): Promise<readonly Prefix[]> {
    const now = this.#parts.clock.monotonic();
    if (this.#cached !== null && now - this.#cached.at < CACHE_MS) return this.#cached.prefixes;
    const found = await this.#lookups.run('', () => this.#lookUp());
    const prefixes = found.length > 0 ? found : [WELL_KNOWN];
    this.#cached = { prefixes, at: now };
    return prefixes;
  }

  async #lookUp(): Promise<readonly Prefix[]> {
    const { clock, lookupHost } = this.#parts;
    using limit = deadline(clock, LOOKUP_MS);
    const hosts = await abortable(lookupHost(KNOWN_NAME), limit.signal).catch((): readonly string[] => []);
    const found = hosts.filter((host) => !isIPv4(host)).flatMap((host) => prefixIn(host) ?? []);
    const distinct = new Map(found.map((prefix) => [`${prefix.bytes.toString('hex')}/${prefix.length}`, prefix]));
    return [...distinct.values()].slice(0, MAX_PREFIXES);
  }
}
