/** Whom a stranger's haste is held against. */
import type { Duplex } from 'node:stream';
import { isLoopbackHost } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { sourceOf } from '../quic/connection-table.ts';
import type { LinkStream } from './types.ts';

/** Milliseconds that the other side has to end its half of a stream that is done with. */
const LET_GO_MS = 5000;

/**
 * The network that a link comes from, which costs more to change than an AID: an IPv4 address or an
 * IPv6 /64. Null on this machine, where all programs are one person's, and where relayed paths end.
 */
export function sourceOfLink(link: LinkStream): string | null {
  const host = link.path().remoteAddress?.host;
  return host === undefined || isLoopbackHost(host) ? null : sourceOf(host);
}

/** Lets go of a link whose own half has ended: reads what is left of it, and cuts it off where that does not end. */
export function letGo(link: Duplex, clock: Clock): void {
  if (link.destroyed) return;
  const timer = clock.after(LET_GO_MS, () => link.destroy());
  link.once('close', () => timer.cancel());
  link.resume();
}
