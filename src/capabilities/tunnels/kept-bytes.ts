/** The bytes that one end of a tunnel connection has sent and the other has not acknowledged. Another link sends them again. */
import { freeMemory } from '../../foundation/bytes.ts';
import { Quota, type QuotaHolder, type QuotaShare } from '../../foundation/quota.ts';

/** Unacknowledged bytes of a connection: more than the window of a QUIC stream, so that this never limits its speed. */
export const MAX_KEPT_BYTES: number = 4 * 1024 * 1024;
/** The same of all connections with one node, bytes. A connection without room continues, and ends with its path. */
export const MAX_KEPT_PER_NODE_BYTES: number = 64 * 1024 * 1024;
/** The same with the strangers on one IPv4 address or IPv6 /64, or in one IPv4 /24 or IPv6 /48, bytes. */
export const MAX_KEPT_PER_SOURCE_BYTES: number = 48 * 1024 * 1024;
/** The same with all nodes, bytes. */
export const MAX_KEPT_ALL_BYTES: number = 256 * 1024 * 1024;
/** The part reserved for callers allowed by name and for called agents. */
export const RESERVED_KEPT_BYTES: number = 192 * 1024 * 1024;
/** Memory of a piece in addition to its bytes. */
const PIECE_BYTES = 256;
/** Dropped pieces before the list is shortened. */
const MAX_GAP = 64;
/** The place of a dropped piece. */
const NONE: Buffer = Buffer.alloc(0);

/** Limits the kept bytes of all connections of one side. */
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
  readonly #share: QuotaShare;
  #pieces: Buffer[] = [];
  /** Index of the first kept piece. */
  #first = 0;
  /** Offset of that piece. */
  #from = 0;

  /** @param onEvict called when all pieces were evicted by another connection */
  constructor(quota: Quota, holder: QuotaHolder, onEvict: () => void) {
    this.#share = quota.share(holder, () => {
      this.#forget();
      onEvict();
    });
  }

  /** True if the other side must acknowledge before more is kept. */
  get isFull(): boolean {
    return this.#share.amount >= MAX_KEPT_BYTES;
  }

  /** Keeps the next piece. False if there is no room. */
  add(piece: Buffer): boolean {
    if (!this.#share.set(this.#share.amount + piece.length + PIECE_BYTES)) return false;
    this.#pieces.push(piece);
    return true;
  }

  /**
   * Drops the bytes before an offset.
   * @param written offsets of pieces that the link has written, so that their memory can be freed
   */
  drop(offset: number, written: { readonly from: number; readonly to: number }): void {
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

  /** The bytes from an offset on. */
  *after(offset: number): Generator<Buffer> {
    let from = this.#from;
    for (const piece of this.#pieces.slice(this.#first)) {
      const end = from + piece.length;
      if (end > offset) yield from >= offset ? piece : piece.subarray(offset - from);
      from = end;
    }
  }

  /** Drops everything. */
  clear(): void {
    this.#share.set(0);
    this.#forget();
  }

  #forget(): void {
    this.#pieces = [];
    this.#first = 0;
  }
}
