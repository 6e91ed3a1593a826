/**
 * Limits the unsent bytes of links that other nodes opened. A reader that stops costs a stranger nothing, so these
 * bytes have a budget. If little of it is left, streams buffer less. Without any budget left, the stranger with the most bytes
 * loses the stream that stalled longest.
 */
import type { Duplex } from 'node:stream';
import { detach } from '../../foundation/detached.ts';
import { Quota, type QuotaHolder, type QuotaLimits } from '../../foundation/quota.ts';
import { STREAM_BUFFER_BYTES } from '../transport/stream.ts';
import type { Stream } from '../transport/types.ts';

/** Bytes for the strangers of one node. */
export const MAX_HELD_PER_NODE_BYTES: number = 32 * 1024 * 1024;
/** The same for strangers at one IPv4 address or IPv6 /64, and in one IPv4 /24 or IPv6 /48. */
export const MAX_HELD_PER_SOURCE_BYTES: number = 48 * 1024 * 1024;
/** The same for all strangers. */
export const MAX_HELD_BYTES: number = 64 * 1024 * 1024;
/** Bytes for callers of one node that an owner named. */
export const MAX_HELD_PER_NAMED_NODE_BYTES: number = 256 * 1024 * 1024;
/** The same for all named callers. */
export const MAX_HELD_NAMED_BYTES: number = 512 * 1024 * 1024;
/** Bytes of destroyed streams of one node that the engine still stores. */
export const MAX_STUCK_PER_NODE_BYTES: number = 8 * 1024 * 1024;
/** The same for one source or network. */
export const MAX_STUCK_PER_SOURCE_BYTES: number = 16 * 1024 * 1024;
/** The same for all nodes. One half is reserved for named callers. */
export const MAX_STUCK_BYTES: number = 48 * 1024 * 1024;
/** Smaller amounts do not count, bytes. */
export const UNCOUNTED_BYTES: number = 8 * 1024;
/** Copies of an unsent byte: one in Node and one in the engine. */
const COPIES = 2;
/** Above this share of a budget, streams buffer less. */
const TIGHT_PART = 1 / 4;
/** The reduced buffer of a stream, bytes. */
const TIGHT_BUFFER_BYTES: number = 32 * 1024;

const STRANGERS: QuotaLimits & { readonly perNode: number } = {
  perNode: MAX_HELD_PER_NODE_BYTES,
  perSource: MAX_HELD_PER_SOURCE_BYTES,
  perNetwork: MAX_HELD_PER_SOURCE_BYTES,
  total: MAX_HELD_BYTES,
};
const NAMED: QuotaLimits & { readonly perNode: number } = {
  perNode: MAX_HELD_PER_NAMED_NODE_BYTES,
  total: MAX_HELD_NAMED_BYTES,
};

const STUCK: QuotaLimits = {
  perNode: MAX_STUCK_PER_NODE_BYTES,
  perSource: MAX_STUCK_PER_SOURCE_BYTES,
  perNetwork: MAX_STUCK_PER_SOURCE_BYTES,
  total: MAX_STUCK_BYTES,
  reserved: MAX_STUCK_BYTES / 2,
};

/** A stream with a watchable queue. */
type Watched = Duplex &
  Pick<Stream, 'watchQueue'> &
  Partial<Pick<Stream, 'whenReleased'>> & { readonly connection?: Pick<Stream['connection'], 'close'> };

export class HeldBytes {
  readonly #strangers = new Quota(STRANGERS, { ownYields: true });
  readonly #named = new Quota(NAMED, { ownYields: true });

  readonly #stuck = new Quota(STUCK);

  /** Bytes stored for strangers. */
  get ofStrangers(): number {
    return this.#strangers.used;
  }

  /** Bytes of destroyed streams that the engine still stores. */
  get stuck(): number {
    return this.#stuck.used;
  }

  /** Counts the unsent bytes of a stream until it closes. Destroys the stream without room. */
  watch(stream: Watched, holder: QuotaHolder): void {
    const [quota, limits] = holder.named ? [this.#named, NAMED] : [this.#strangers, STRANGERS];
    const share = quota.share(holder, () => stream.destroy());
    let isCounted = false;
    const count = (): void => {
      const waiting = stream.writableLength;
      if (stream.destroyed || (waiting <= UNCOUNTED_BYTES && !isCounted)) return;
      isCounted = waiting > UNCOUNTED_BYTES;
      if (share.set(isCounted ? COPIES * waiting : 0)) return;
      share.set(0);
      stream.destroy();
    };
    stream.watchQueue({
      buffer: () =>
        quota.used > TIGHT_PART * limits.total || quota.usedBy(holder.node) > TIGHT_PART * limits.perNode
          ? TIGHT_BUFFER_BYTES
          : STREAM_BUFFER_BYTES,
      added: count,
      taken: () => {
        if (isCounted) share.touch();
        count();
      },
    });
    stream.once('close', () => {
      share.set(0);
      // During a write, Node stores the data after it.
      const underway = stream.writableLength;
      if (underway > UNCOUNTED_BYTES) this.#countStuck(stream, holder, COPIES * underway);
    });
  }

  /** The engine stores an unfinished write until its connection closes, so a full budget closes connections. */
  #countStuck(stream: Watched, holder: QuotaHolder, amount: number): void {
    const { connection } = stream;
    const released = stream.whenReleased?.();
    if (connection === undefined || released === undefined) return;
    const close = (): void => connection.close();
    const share = this.#stuck.take(holder, { amount, onEvict: close });
    if (share === null) close();
    else detach(released.then(() => share.release()));
  }
}
