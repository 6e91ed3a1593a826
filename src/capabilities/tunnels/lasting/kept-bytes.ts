/** What one end of a lasting connection has sent and the other has not acknowledged: it goes again after a change of path. */
import { freeMemory } from '../../../foundation/bytes.ts';
import { Quota, type QuotaHolder } from '../../../foundation/quota.ts';
import { ResizableShare } from '../../../foundation/resizable-share.ts';

/** What a connection may have unacknowledged, bytes: more than one stream's window, so that it bounds no path that QUIC does not. */
export const MAX_KEPT_BYTES: number = 4 * 1024 * 1024;
/** With one other node, bytes. A connection beyond it goes on, and does not outlive its path. */
export const MAX_KEPT_PER_NODE_BYTES: number = 64 * 1024 * 1024;
/** With the strangers on one IPv4 address or IPv6 /64, or in one IPv4 /24 or IPv6 /48, bytes. */
export const MAX_KEPT_PER_SOURCE_BYTES: number = 48 * 1024 * 1024;
/** With all nodes, bytes. */
export const MAX_KEPT_ALL_BYTES: number = 256 * 1024 * 1024;
/** Of these, the ones that are only for callers let in by name and for agents that are called. */
export const RESERVED_KEPT_BYTES: number = 192 * 1024 * 1024;
/** What each piece costs beside its own bytes. */
const PIECE_BYTES = 256;
/** Pieces that were let go before the list of them is cut. */
const MAX_GAP = 64;
/** Stands for a piece that was let go. */
const NONE: Buffer = Buffer.alloc(0);

/** What all lasting connections of one side keep together. */
export function keptQuota(): Quota {
  return new Quota({
    perNode: MAX_KEPT_PER_NODE_BYTES,
    perSource: MAX_KEPT_PER_SOURCE_BYTES,
    perNetwork: MAX_KEPT_PER_SOURCE_BYTES,
    total: MAX_KEPT_ALL_BYTES,
    reserved: RESERVED_KEPT_BYTES,
  });
}

export class KeptBytes {
  readonly #share: ResizableShare;
  #pieces: Buffer[] = [];
  /** Index of the first piece that is still kept. */
  #first = 0;
  /** Offset of that piece. */
  #from = 0;

  /** @param onEvict called when it has to make room for another: nothing is kept then */
  constructor(quota: Quota, holder: QuotaHolder, onEvict: () => void) {
    this.#share = new ResizableShare(quota, holder, () => {
      this.#forget();
      onEvict();
    });
  }

  /** True where the other side must acknowledge before more is sent. */
  get isFull(): boolean {
    return this.#share.amount >= MAX_KEPT_BYTES;
  }

  /** Keeps the piece that follows; false where there is no room for it. */
  add(piece: Buffer): boolean {
    if (!this.#share.set(this.#share.amount + piece.length + PIECE_BYTES)) return false;
    this.#pieces.push(piece);
    return true;
  }

  /**
   * Lets go of what stands before an offset.
   * @param written where pieces stand whose memory nobody looks at any more, so that it can be freed at once
   */
  letGo(offset: number, written: { readonly from: number; readonly to: number }): void {
    let { amount } = this.#share;
    for (let piece = this.#pieces[this.#first]; piece !== undefined; piece = this.#pieces[this.#first]) {
      const end = this.#from + piece.length;
      if (end > offset) break;
      const isWritten = this.#from >= written.from && end <= written.to;
      this.#from = end;
      this.#pieces[this.#first++] = NONE;
      amount -= piece.length + PIECE_BYTES;
      if (isWritten) freeMemory(piece);
    }
    this.#share.set(amount);
    this.#share.touch();
    if (this.#first === this.#pieces.length) this.#pieces = [];
    else if (this.#first < MAX_GAP) return;
    else this.#pieces = this.#pieces.slice(this.#first);
    this.#first = 0;
  }

  /** What stands at an offset and behind it. */
  *after(offset: number): Generator<Buffer> {
    let from = this.#from;
    for (const piece of this.#pieces.slice(this.#first)) {
      const end = from + piece.length;
      if (end > offset) yield from >= offset ? piece : piece.subarray(offset - from);
      from = end;
    }
  }

  /** Lets go of everything, and keeps nothing that was sent before. */
  clear(): void {
    this.#share.set(0);
    this.#forget();
  }

  #forget(): void {
    this.#pieces = [];
    this.#first = 0;
  }
}
