/** Puts the frames of several lanes into order, within a window that its reader has opened. */
import { SvcError } from '../../../foundation/errors.ts';

/** Frames that may wait for earlier ones or for the reader. A sender keeps to it as to the window. */
export const MAX_FRAMES_AHEAD = 4096;
/** Shorter frames are joined to about this length for the reader, bytes: each piece costs hundreds of bytes beside its own. */
const JOINED_BYTES = 16 * 1024;

export class Reassembly {
  /** Frames that wait, by the offset of their first byte. */
  readonly #held = new Map<number, Buffer>();
  /** Bytes of the frames that wait. */
  #heldBytes = 0;
  #framesHanded = 0;
  /** Bytes handed out; those that stand without a gap behind them. */
  #handed = 0;
  #whole = 0;
  #furthest = 0;
  #end: number | null = null;

  /** Bytes handed out. */
  get handed(): number {
    return this.#handed;
  }

  /** Frames handed out. */
  get framesHanded(): number {
    return this.#framesHanded;
  }

  /** True where all bytes and their end have come, handed out or not. */
  get whole(): boolean {
    return this.#whole === this.#end;
  }

  /** True where the end has come, though bytes before it may not have. */
  get endKnown(): boolean {
    return this.#end !== null;
  }

  /** True where all bytes have been handed out. */
  get ended(): boolean {
    return this.#handed === this.#end;
  }

  /**
   * Takes a frame; one that came before is ignored, since frames of a lost lane are sent again.
   * @param limit offset that no byte may stand at or behind
   * @throws SvcError `protocol_error` where it does not fit to what has come, or is beyond the limit
   */
  take(offset: number, payload: Buffer, limit: number): void {
    const end = offset + payload.length;
    if (end <= this.#handed || this.#held.get(offset)?.length === payload.length) return;
    const isBeyond = end > limit || (this.#end !== null && end > this.#end);
    // Frames that overlap would hold more memory than the window that was opened for them.
    const isTooMuch = this.#held.size >= MAX_FRAMES_AHEAD || this.#heldBytes + payload.length > limit - this.#handed;
    if (isBeyond || isTooMuch || offset < this.#handed || this.#held.has(offset))
      throw new SvcError('protocol_error', { message: 'The tunnel carries bytes where there is no room for them.' });
    this.#held.set(offset, payload);
    this.#heldBytes += payload.length;
    this.#furthest = Math.max(this.#furthest, end);
    for (let next = this.#held.get(this.#whole); next !== undefined; next = this.#held.get(this.#whole))
      this.#whole += next.length;
  }

  /**
   * Takes the end.
   * @throws SvcError `protocol_error` where bytes have come behind it, or another end
   */
  finish(offset: number): void {
    if ((this.#end ?? offset) !== offset || this.#furthest > offset)
      throw new SvcError('protocol_error', { message: 'The tunnel carries bytes behind its end.' });
    this.#end = offset;
  }

  /** The next bytes in order, of short frames several; null where they have not come. */
  next(): Buffer | null {
    const first = this.#nextFrame();
    if (first === null) return null;
    const pieces = [first];
    let { length } = first;
    while (length < JOINED_BYTES) {
      const piece = this.#nextFrame();
      if (piece === null) break;
      pieces.push(piece);
      length += piece.length;
    }
    return pieces.length === 1 ? first : Buffer.concat(pieces, length);
  }

  #nextFrame(): Buffer | null {
    const payload = this.#held.get(this.#handed);
    if (payload === undefined) return null;
    this.#held.delete(this.#handed);
    this.#heldBytes -= payload.length;
    this.#handed += payload.length;
    this.#framesHanded++;
    return payload;
  }
}
