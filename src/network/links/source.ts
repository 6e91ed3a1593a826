/** Whom a stranger's haste is held against. */
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE, ipScope, subscriberOf } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { LinkStream } from './types.ts';

/** Milliseconds that the other side has to end its half of a stream that is done with. */
const LET_GO_MS = 5000;

/** Sources whose shares are remembered: every stream asks, and reading an IPv6 address is expensive. */
const MAX_SHARES = 1024;
const shares = new LruCache<string, string | null>({ maxEntries: MAX_SHARES });

/**
 * Whose share a source (see `Path`) uses: an IPv4 address or an IPv6 /64, or the name of the node if its address is
 * unknown. Null on this machine, where all programs are one person's.
 */
export function shareOf(source: string): string | null {
  const known = shares.get(source);
  if (known !== undefined) return known;
  const share = ipScope(source) === IP_SCOPE.loopback ? null : subscriberOf(source);
  shares.set(source, share);
  return share;
}

/** Whose share a link uses up, as `shareOf`; null for an agent on the same daemon too. */
export function sourceOfLink(link: Pick<LinkStream, 'path'>): string | null {
  const { source } = link.path();
  return source === null ? null : shareOf(source);
}

/** Lets go of a link whose own half has ended: reads what is left of it, and cuts it off where that does not end. */
export function letGo(link: Duplex, clock: Clock): void {
  if (link.destroyed) return;
  const timer = clock.after(LET_GO_MS, () => link.destroy());
  link.once('close', () => timer.cancel());
  link.resume();
}
