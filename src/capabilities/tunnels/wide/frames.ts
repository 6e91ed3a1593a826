/**
 * What the lanes of a wide tunnel connection carry, both ways: docs/protocol-tunnels.md, step 12. Lengths are checked before anything is kept.
 */
import { SvcError } from '../../../foundation/errors.ts';

/** Most payload of one frame, bytes. */
export const MAX_PAYLOAD_BYTES = 64 * 1024;

const KIND = { data: 1, end: 2, ack: 3, wider: 4 } as const;

/** Bytes of an offset in a stream. */
export const OFFSET_BYTES = 6;
const DATA_HEAD_BYTES = 1 + OFFSET_BYTES + 3;
const END_BYTES = 1 + OFFSET_BYTES;
const ACK_BYTES = 1 + OFFSET_BYTES + 4 + 4;

export type LaneFrame =
  | { readonly kind: 'data'; readonly offset: number; readonly payload: Buffer }
  /** No byte stands at or behind the offset. */
  | { readonly kind: 'end'; readonly offset: number }
  | {
      readonly kind: 'ack';
      /** Bytes that the reader has taken. */
      readonly consumed: number;
      /** How many bytes may be sent beyond them. */
      readonly window: number;
      /** Data and end frames that have come over this lane. */
      readonly frames: number;
    }
  /** The sender of this frame loses packets: more lanes would help it. */
  | { readonly kind: 'wider' };

/** A data frame with the pieces, copied one behind the other into memory of its own. */
export function dataFrame(offset: number, pieces: readonly Buffer[], length: number): Buffer {
  const frame = Buffer.allocUnsafeSlow(DATA_HEAD_BYTES + length);
  frame[0] = KIND.data;
  frame.writeUIntBE(offset, 1, OFFSET_BYTES);
  frame.writeUIntBE(length, 1 + OFFSET_BYTES, 3);
  let at = DATA_HEAD_BYTES;
  for (const piece of pieces) at += piece.copy(frame, at);
  return frame;
}

export function endFrame(offset: number): Buffer {
  const frame = Buffer.alloc(END_BYTES);
  frame[0] = KIND.end;
  frame.writeUIntBE(offset, 1, OFFSET_BYTES);
  return frame;
}

export function ackFrame(consumed: number, window: number, frames: number): Buffer {
  const frame = Buffer.alloc(ACK_BYTES);
  frame[0] = KIND.ack;
  frame.writeUIntBE(consumed, 1, OFFSET_BYTES);
  frame.writeUInt32BE(window, 1 + OFFSET_BYTES);
  frame.writeUInt32BE(frames, 1 + OFFSET_BYTES + 4);
  return frame;
}

export function widerFrame(): Buffer {
  return Buffer.of(KIND.wider);
}

/** Bytes of a frame before its payload, by its kind; undefined for a kind that there is not. */
const HEAD_BYTES: Readonly<Record<number, number>> = {
  [KIND.data]: DATA_HEAD_BYTES,
  [KIND.end]: END_BYTES,
  [KIND.ack]: ACK_BYTES,
  [KIND.wider]: 1,
};

/** Takes the frames off the bytes of one lane, however these are cut; payloads get memory of their own. */
export class FrameParser {
  readonly #head = Buffer.alloc(ACK_BYTES);
  #headBytes = 0;
  /** The data frame whose payload is coming. */
  #data: { readonly offset: number; readonly payload: Buffer; filled: number } | null = null;

  /**
   * Gives the frames that are whole now.
   * @throws SvcError `protocol_error`
   */
  *feed(chunk: Buffer): Generator<LaneFrame> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#data === null) {
        this.#head[this.#headBytes++] = chunk[at++] ?? 0;
        const frame = this.#takeHead();
        if (frame !== null) yield frame;
      } else {
        const { offset, payload, filled } = this.#data;
        const taken = chunk.copy(payload, filled, at);
        at += taken;
        this.#data.filled += taken;
        if (this.#data.filled < payload.length) return;
        this.#data = null;
        yield { kind: 'data', offset, payload };
      }
    }
  }

  #takeHead(): LaneFrame | null {
    const head = this.#head;
    const kind = head[0] ?? 0;
    const length = HEAD_BYTES[kind];
    if (length === undefined) throw new SvcError('protocol_error', { message: 'The tunnel carries an unknown frame.' });
    if (this.#headBytes < length) return null;
    this.#headBytes = 0;
    if (kind === KIND.wider) return { kind: 'wider' };
    const offset = head.readUIntBE(1, OFFSET_BYTES);
    if (kind === KIND.end) return { kind: 'end', offset };
    if (kind === KIND.ack) {
      const window = head.readUInt32BE(1 + OFFSET_BYTES);
      return { kind: 'ack', consumed: offset, window, frames: head.readUInt32BE(1 + OFFSET_BYTES + 4) };
    }
    const bytes = head.readUIntBE(1 + OFFSET_BYTES, 3);
    if (bytes === 0 || bytes > MAX_PAYLOAD_BYTES)
      throw new SvcError('protocol_error', { message: `The tunnel carries a frame of ${bytes} bytes.` });
    this.#data = { offset, payload: Buffer.allocUnsafeSlow(bytes), filled: 0 };
    return null;
  }
}
