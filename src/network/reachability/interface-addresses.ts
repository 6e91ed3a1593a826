/** The addresses of this machine's interfaces. The kernel takes a tenth of a millisecond to list them, and every dial and publication asks. */
import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { InterfaceAddress } from './dial-guard.ts';

/* Public IPv6 addresses, which nothing translates: two nodes that have one can meet there whatever routers do to IPv4. Pure. */

/** False for IPv4 that is written as IPv6. */
export function isPublicIpv6({ host }: Pick<Address, 'host'>): boolean {
  return canonicalIp(host)?.includes(':') === true && ipScope(host) === IP_SCOPE.public;
}

/** The first public IPv6 address of a node, where this machine has one too; null otherwise. */
export function ipv6Between(
  theirs: readonly Address[],
  interfaces: readonly { readonly address: string }[],
): Address | null {
  const isHere = interfaces.some(({ address }) => isPublicIpv6({ host: address }));
  return isHere ? (theirs.find(isPublicIpv6) ?? null) : null;
}

/* From which of its addresses this machine writes to another one. */

/** A public IPv6 address from which this machine writes to another one, as its routes have it; null for none. Sends nothing. */
export async function publicIpv6To({ host, port }: Address): Promise<string | null> {
  const socket = createSocket('udp6');
  try {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.on('error', reject);
    socket.connect(port, host, resolve);
    await promise;
    const own = canonicalIp(socket.address().address);
    return own !== null && isPublicIpv6({ host: own }) ? own : null;
  } catch {
    return null;
  } finally {
    socket.close();
  }
}

/** For how long what was read is believed, milliseconds: as long as it takes until a change is noticed at all. */
export const BELIEVED_MS = 1000;

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

  /** Those of this moment. */
  look(): readonly InterfaceAddress[] {
    this.#readAt = this.#clock.now();
    this.#addresses = Object.values(this.#read()).flatMap((all) => all ?? []);
    return this.#addresses;
  }

  /** Those of a second ago at most. */
  recent(): readonly InterfaceAddress[] {
    const age = this.#clock.now() - this.#readAt;
    return age >= 0 && age < BELIEVED_MS ? this.#addresses : this.look();
  }
}
