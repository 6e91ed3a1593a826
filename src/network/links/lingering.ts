/**
 * Streams that linger after our last word until the other side has read it: refused ones, and links that are let go. Each costs some 13 KiB
 * and a stranger nothing, so a quota bounds them: its holder's oldest is cut off to make room.
 */
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { Quota, type QuotaHolder } from '../../foundation/quota.ts';

/** Lingering streams of one node. */
export const MAX_LINGERING_PER_NODE = 512;
/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const MAX_LINGERING_PER_SOURCE = 768;
/** The same of those in one IPv4 /24 or IPv6 /48. */
export const MAX_LINGERING_PER_NETWORK = 1024;
/** The same of all nodes together. */
export const MAX_LINGERING = 2048;
/** Of these, the ones that only known nodes may have. */
export const RESERVED_LINGERING = 512;

/** Time for the other side to end its half of a stream that is done with, milliseconds. */
const DRAIN_TIMEOUT_MS = 5000;

/** A stream that counts itself while it lingers, as links do that another node opened. */
interface Lingering extends Duplex {
  lingers?(): void;
}

/** Lets go of a link whose own half has ended: discards the rest of it, and destroys it if the other side does not end it in time. */
export function drainAndDestroy(link: Lingering, clock: Clock): void {
  if (link.destroyed) return;
  const timer = clock.after(DRAIN_TIMEOUT_MS, () => link.destroy());
  link.once('close', () => timer.cancel());
  link.resume();
  link.lingers?.();
}

export class RefusedStreams {
  readonly #quota = new Quota(
    {
      perNode: MAX_LINGERING_PER_NODE,
      perSource: MAX_LINGERING_PER_SOURCE,
      perNetwork: MAX_LINGERING_PER_NETWORK,
      total: MAX_LINGERING,
      reserved: RESERVED_LINGERING,
    },
    { ownYields: true },
  );
  readonly #counted = new WeakSet<Duplex>();

  get size(): number {
    return this.#quota.used;
  }

  /** Counts a stream once, until it closes; one without room is cut off at once. */
  count(stream: Duplex, holder: QuotaHolder): void {
    if (stream.destroyed || this.#counted.has(stream)) return;
    this.#counted.add(stream);
    const share = this.#quota.take(holder, { onEvict: () => stream.destroy() });
    if (share === null) stream.destroy();
    else stream.once('close', () => share.release());
  }
}
