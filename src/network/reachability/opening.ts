/** The packets that open our own router's filter for those who will dial a port of ours. */
import type { Address } from '../../foundation/address.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';

/** How often the one address is written to, as packets get lost. */
export const OPENING_PACKETS = 3;
/** Random ports that are opened for a dialler whose own outer port nobody knows. */
export const RANDOM_PORTS = 1024;
/**
 * Hops that the packets may take at first: out of our own networks, and not as far as the other side's router. Some of
 * those answer what nobody asked for, and then keep the port for it.
 */
export const OPENING_HOPS = 5;
/** What is in them: nothing that anybody reads. */
const OPENING = Uint8Array.of(0);
const PORTS = 65_536 - FIRST_MAPPED_PORT;

/** What sends them: the socket whose port will be lent. */
export interface OpeningSocket {
  /** Settles when the datagram has left. */
  send(datagram: Uint8Array, to: Address, ttl?: number): Promise<void>;
}

/** Random ports of a host, no two alike. @param random a number from 0 to below 1 */
export function randomTargets(host: string, random: () => number): Address[] {
  const ports = new Set<number>();
  while (ports.size < RANDOM_PORTS) ports.add(FIRST_MAPPED_PORT + Math.floor(random() * PORTS));
  return [...ports].map((port) => ({ host, port }));
}

/**
 * Opens the filter for addresses; settles when the packets have left, which on a slow line is not at once.
 * @param hops null for the system's own number, where the first try did not help
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
