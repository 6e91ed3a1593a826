/**
 * Addresses of this machine's interfaces. They are cached, because each dial and each publication reads them, and the
 * kernel takes 0.1 ms to list them.
 */
import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { readInterfaces } from '../../foundation/interfaces.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { InterfaceAddress } from './dial-guard.ts';

/*
 * Public IPv6 addresses. They need no NAT, so two nodes that have one can connect even if their IPv4 NATs prevent it.
 * Pure.
 */

/** False for IPv4-mapped addresses. */
export function isPublicIpv6({ host }: Pick<Address, 'host'>): boolean {
  return canonicalIp(host)?.includes(':') === true && ipScope(host) === IP_SCOPE.public;
}

/** The first public IPv6 address of the remote node, if this machine has one too; null otherwise. */
export function commonIpv6Address(
  theirs: readonly Address[],
  interfaces: readonly { readonly address: string }[],
): Address | null {
  const isHere = interfaces.some(({ address }) => isPublicIpv6({ host: address }));
  return isHere ? (theirs.find(isPublicIpv6) ?? null) : null;
}

/* The source address that this machine uses for a destination. */

/**
 * The public IPv6 address that the routing table selects for sending to a host; null if there is none. Sends nothing.
 */
export async function publicIpv6SourceFor({ host, port }: Address): Promise<string | null> {
  const socket = createSocket('udp6');
  try {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.on('error', reject);
    // Node passes a failed connect to a callback of `connect`, and to `error` without one.
    socket.once('connect', resolve);
    socket.connect(port, host);
    await promise;
    const own = canonicalIp(socket.address().address);
    return own !== null && isPublicIpv6({ host: own }) ? own : null;
  } catch {
    return null;
  } finally {
    socket.close();
  }
}

/** How long the list is cached, milliseconds. Changes of the network are noticed in the same interval. */
export const CACHE_MS = 1000;

export class InterfaceAddresses {
  readonly #clock: Clock;
  readonly #read: typeof networkInterfaces;
  #addresses: readonly InterfaceAddress[] = [];
  #readAt = Number.NEGATIVE_INFINITY;

  constructor({
    clock,
    read = networkInterfaces,
  }: { readonly clock: Clock; readonly read?: typeof networkInterfaces }) {
    this.#clock = clock;
    this.#read = read;
  }

  /** Reads the current addresses. The last ones, if the system cannot list them: it needs a free descriptor. */
  read(): readonly InterfaceAddress[] {
    this.#readAt = this.#clock.monotonic();
    const read = readInterfaces(this.#read);
    if (read !== null) this.#addresses = Object.values(read).flatMap((all) => all ?? []);
    return this.#addresses;
  }

  /** The addresses as of at most a second ago. */
  recent(): readonly InterfaceAddress[] {
    const age = this.#clock.monotonic() - this.#readAt;
    return age < CACHE_MS ? this.#addresses : this.read();
  }
}
