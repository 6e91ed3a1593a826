/**
 * What the links that others opened keep for readers that are behind: bytes that were written and that the engine has not
 * taken. A reader that stops costs a stranger nothing, so these bytes have a budget. When little of it is left, streams
 * buffer less before they hold their writers back; when none is left, the stream that has been stalled longest of
 * whichever stranger holds most is cut off.
 */
import type { Duplex } from 'node:stream';
import { detach } from '../../foundation/detached.ts';
import { Quota, type QuotaHolder, type QuotaLimits } from '../../foundation/quota.ts';
import { ResizableShare } from '../../foundation/resizable-share.ts';
import { STREAM_BUFFER_BYTES } from '../transport/stream.ts';
import type { Stream } from '../transport/types.ts';

/** Bytes for the strangers of one node. */
export const MAX_HELD_PER_NODE_BYTES: number = 32 * 1024 * 1024;
/** The same for those of one IPv4 address or IPv6 /64, and of one IPv4 /24 or IPv6 /48. */
export const MAX_HELD_PER_SOURCE_BYTES: number = 48 * 1024 * 1024;
/** The same for all strangers. */
export const MAX_HELD_BYTES: number = 64 * 1024 * 1024;
/** Bytes for the callers of one node whom an owner let in by name. */
export const MAX_HELD_PER_NAMED_NODE_BYTES: number = 256 * 1024 * 1024;
/** The same for all such callers. */
export const MAX_HELD_NAMED_BYTES: number = 512 * 1024 * 1024;
/** What may be under way on streams that were cut off and that the engine has not let go of, of one node, bytes. */
export const MAX_STUCK_PER_NODE_BYTES: number = 8 * 1024 * 1024;
/** The same of one source or network. */
export const MAX_STUCK_PER_SOURCE_BYTES: number = 16 * 1024 * 1024;
/** The same of all nodes, half of it for callers let in by name. */
export const MAX_STUCK_BYTES: number = 48 * 1024 * 1024;
/** Less than this is not counted, bytes: every stream may have it. */
export const UNCOUNTED_BYTES: number = 8 * 1024;
/** Memory that a waiting byte takes: once here, once in the engine. */
const COPIES = 2;
/** The part of a budget from which on streams buffer less. */
const TIGHT_PART = 1 / 4;
/** What a stream then buffers before it holds its writer back, bytes. */
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

/** The streams that can be watched. */
type Watched = Duplex &
  Pick<Stream, 'watchQueue'> &
  Partial<Pick<Stream, 'whenReleased'>> & { readonly connection?: Pick<Stream['connection'], 'close'> };

export class HeldBytes {
  readonly #strangers = new Quota(STRANGERS, { ownYields: true });
  readonly #named = new Quota(NAMED, { ownYields: true });

  readonly #stuck = new Quota(STUCK);

  /** Memory that is held for strangers, bytes. */
  get ofStrangers(): number {
    return this.#strangers.used;
  }

  /** Memory of streams that were cut off and that the engine has not let go of, bytes. */
  get stuck(): number {
    return this.#stuck.used;
  }

  /** Counts what a stream keeps, until it closes; cuts it off if there is no room. */
  watch(stream: Watched, holder: QuotaHolder): void {
    const [quota, limits] = holder.named ? [this.#named, NAMED] : [this.#strangers, STRANGERS];
    const share = new ResizableShare(quota, holder, () => stream.destroy());
    const count = (): void => {
      if (stream.destroyed) return;
      const waiting = stream.writableLength;
      if (share.set(waiting > UNCOUNTED_BYTES ? COPIES * waiting : 0)) return;
      share.set(0);
      stream.destroy();
    };
    const isTight = (): boolean =>
      quota.used > TIGHT_PART * limits.total || quota.usedBy(holder.node) > TIGHT_PART * limits.perNode;
    stream.watchQueue({
      buffer: () => (isTight() ? TIGHT_BUFFER_BYTES : STREAM_BUFFER_BYTES),
      added: count,
      taken: () => {
        share.touch();
        count();
      },
    });
    stream.once('close', () => {
      share.set(0);
      // While a write is under way, Node keeps what waits behind it.
      const underway = stream.writableLength;
      if (underway > UNCOUNTED_BYTES) this.#countStuck(stream, holder, COPIES * underway);
    });
  }

  /** The engine keeps a write that has no end until its connection has ended, so the budget of those is paid with connections. */
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
