/** Packets that open the filter of this node's NAT for peers that will dial one of its ports. */
import type { Address } from '../../foundation/address.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';

/** Packets to a single target, because packets get lost. */
export const OPENING_PACKETS = 3;
/** Number of random ports to open for a peer with an unknown external port. */
export const RANDOM_PORTS = 1024;
/**
 * Hop limit of the first packets: enough to leave the local networks, but not to reach the peer's router. Some routers
 * respond to unexpected packets by reserving the port.
 */
export const OPENING_HOPS = 5;
/** Payload of the packets; no receiver reads it. */
const OPENING = Uint8Array.of(0);
const PORTS = 65_536 - FIRST_MAPPED_PORT;

/** The socket that will lend its port. */
export interface OpeningSocket {
  /** Settles when the datagram has been sent. */
  send(datagram: Uint8Array, to: Address, ttl?: number): Promise<void>;
}

/** Distinct random ports of a host. @param random returns a number from 0 to below 1 */
export function randomTargets(host: string, random: () => number): Address[] {
  const ports = new Set<number>();
  while (ports.size < RANDOM_PORTS) ports.add(FIRST_MAPPED_PORT + Math.floor(random() * PORTS));
  return [...ports].map((port) => ({ host, port }));
}

/**
 * Opens the filter for the targets. Settles when all packets have been sent.
 * @param hops null for the system's hop limit, if the first attempt failed
 */
export async function sendOpening(
  socket: OpeningSocket,
  targets: readonly Address[],
  hops: number | null,
): Promise<void> {
  const repeats = targets.length === 1 ? OPENING_PACKETS : 1;
  const all = Array.from({ length: repeats }, () => targets).flat();
  await Promise.all(all.map((target) => socket.send(OPENING, target, hops ?? undefined)));
}
