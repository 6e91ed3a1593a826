/** What one end of a lasting connection has sent and the other has not acknowledged: it goes again after a change of path. */
import { freeMemory } from '../../../foundation/bytes.ts';

/** What a connection may have unacknowledged, bytes: more than one stream's window, so that it bounds no path that QUIC does not. */
export const MAX_KEPT_BYTES: number = 4 * 1024 * 1024;
/** With one other node, bytes; a connection beyond it goes on, and does not outlive its path. */
export const MAX_KEPT_PER_PEER_BYTES: number = 64 * 1024 * 1024;
/** With all of them, bytes. */
export const MAX_KEPT_ALL_BYTES: number = 256 * 1024 * 1024;
/** What each piece costs beside its own bytes. */
const PIECE_BYTES = 256;
/** Pieces that were let go before the list of them is cut. */
const MAX_GAP = 64;
/** Stands for a piece that was let go. */
const NONE: Buffer = Buffer.alloc(0);

/** Bytes that are kept for one other node, and for all of them. */
export class KeptShare {
  readonly #all: { bytes: number };
  #bytes = 0;
  /** Connections that use it. */
  users = 0;

  constructor(all: { bytes: number }) {
    this.#all = all;
  }

  /** Takes bytes; false where there is no room. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_KEPT_PER_PEER_BYTES || this.#all.bytes + bytes > MAX_KEPT_ALL_BYTES) return false;
    this.#bytes += bytes;
    this.#all.bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
    this.#all.bytes -= bytes;
  }
}

/** What all lasting connections of this node keep together. */
export class KeptBudget {
  readonly #all = { bytes: 0 };
  readonly #shares = new Map<string, KeptShare>();

  /** Bytes that are kept. */
  get bytes(): number {
    return this.#all.bytes;
  }

  /** The share of one other node, for a connection that gives it back by `leave`. */
  join(peer: string): KeptShare {
    const share = this.#shares.get(peer) ?? new KeptShare(this.#all);
    this.#shares.set(peer, share);
    share.users++;
    return share;
  }

  leave(peer: string): void {
    const share = this.#shares.get(peer);
    if (share !== undefined && --share.users === 0) this.#shares.delete(peer);
  }
}

export class KeptBytes {
  readonly #share: KeptShare;
  #pieces: Buffer[] = [];
  /** Index of the first piece that is still kept. */
  #first = 0;
  /** Offset of that piece. */
  #from = 0;
  #cost = 0;

  constructor(share: KeptShare) {
    this.#share = share;
  }

  /** True where the other side must acknowledge before more is sent. */
  get isFull(): boolean {
    return this.#cost >= MAX_KEPT_BYTES;
  }

  /** Keeps the piece that follows; false where there is no room for it. */
  add(piece: Buffer): boolean {
    const cost = piece.length + PIECE_BYTES;
    if (!this.#share.take(cost)) return false;
    this.#cost += cost;
    this.#pieces.push(piece);
    return true;
  }

  /**
   * Lets go of what stands before an offset.
   * @param written where pieces stand whose memory nobody looks at any more, so that it can be freed at once
   */
  letGo(offset: number, written: { readonly from: number; readonly to: number }): void {
    for (let piece = this.#pieces[this.#first]; piece !== undefined; piece = this.#pieces[this.#first]) {
      const end = this.#from + piece.length;
      if (end > offset) break;
      const isWritten = this.#from >= written.from && end <= written.to;
      this.#from = end;
      this.#pieces[this.#first++] = NONE;
      this.#cost -= piece.length + PIECE_BYTES;
      this.#share.give(piece.length + PIECE_BYTES);
      if (isWritten) freeMemory(piece);
    }
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
    this.#share.give(this.#cost);
    this.#cost = 0;
    this.#pieces = [];
    this.#first = 0;
  }
}
