/**
 * What a lasting tunnel connection carries on each of its links, both ways: docs/protocol-tunnels.md, step 7.
 * Payloads are handed on piece by piece as they come, so that no length makes us keep anything.
 */
import { SvcError } from '../../../foundation/errors.ts';
import { OFFSET_BYTES } from '../wide/frames.ts';

const KIND = { data: 1, ack: 2, end: 3 } as const;

const LENGTH_BYTES = 3;
const DATA_HEAD_BYTES = 1 + LENGTH_BYTES;
const ACK_BYTES = 1 + OFFSET_BYTES;

/** Payloads up to this length go in one write with their head, bytes: a copy costs less than a second write. */
const JOINED_BYTES = 4096;

/** Bytes of a frame before its payload, by its kind; undefined for a kind that there is not. */
const HEAD_BYTES: Readonly<Record<number, number>> = {
  [KIND.data]: DATA_HEAD_BYTES,
  [KIND.ack]: ACK_BYTES,
  [KIND.end]: 1,
};

/** Where frames are written to. */
interface FrameSink {
  write(bytes: Uint8Array): boolean;
  cork(): void;
  uncork(): void;
}

/** A data frame of memory of its own. */
export function framedData(payload: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(DATA_HEAD_BYTES + payload.length);
  frame.writeUInt32BE((KIND.data << 24) | payload.length);
  frame.set(payload, DATA_HEAD_BYTES);
  return frame;
}

/** Writes a data frame; false where the stream wants no more for now. */
export function writeData(stream: FrameSink, payload: Buffer): boolean {
  const { length } = payload;
  if (length <= JOINED_BYTES) return stream.write(framedData(payload));
  const head = Buffer.allocUnsafe(DATA_HEAD_BYTES);
  head.writeUInt32BE((KIND.data << 24) | length);
  stream.cork();
  stream.write(head);
  const wantsMore = stream.write(payload);
  stream.uncork();
  return wantsMore;
}

/** @param received how many bytes have come; the end counts as one more */
export function receivedFrame(received: number): Buffer {
  const frame = Buffer.alloc(ACK_BYTES);
  frame[0] = KIND.ack;
  frame.writeUIntBE(received, 1, OFFSET_BYTES);
  return frame;
}

/** No byte follows. */
export function lastFrame(): Buffer {
  return Buffer.of(KIND.end);
}

/** Is told of frames as they come. */
export interface FrameTaker {
  /** The next bytes: a part of the chunk that was fed. */
  onData(piece: Buffer): void;
  onAck(received: number): void;
  onEnd(): void;
}

/** Takes the frames off the bytes of one link, however these are cut. */
export class FrameReader {
  readonly #taker: FrameTaker;
  /** The beginning of a head that is not whole yet. */
  #head: Buffer | null = null;
  #headBytes = 0;
  /** What is still to come of the payload. */
  #payloadBytes = 0;

  constructor(taker: FrameTaker) {
    this.#taker = taker;
  }

  /** @throws SvcError `protocol_error` */
  feed(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#payloadBytes > 0) {
        const piece =
          at === 0 && chunk.length <= this.#payloadBytes ? chunk : chunk.subarray(at, at + this.#payloadBytes);
        at += piece.length;
        this.#payloadBytes -= piece.length;
        this.#taker.onData(piece);
      } else if (this.#head === null && chunk[at] === KIND.data && at + DATA_HEAD_BYTES <= chunk.length) {
        this.#payload(chunk.readUIntBE(at + 1, LENGTH_BYTES));
        at += DATA_HEAD_BYTES;
      } else this.#collect(chunk[at++] ?? 0);
    }
  }

  #payload(bytes: number): void {
    if (bytes === 0) throw new SvcError('protocol_error', { message: 'The tunnel carries an empty frame.' });
    this.#payloadBytes = bytes;
  }

  #collect(byte: number): void {
    this.#head ??= Buffer.alloc(ACK_BYTES);
    this.#head[this.#headBytes++] = byte;
    const kind = this.#head[0] ?? 0;
    const length = HEAD_BYTES[kind];
    if (length === undefined) throw new SvcError('protocol_error', { message: 'The tunnel carries an unknown frame.' });
    if (this.#headBytes < length) return;
    const head = this.#head;
    this.#head = null;
    this.#headBytes = 0;
    if (kind === KIND.data) this.#payload(head.readUIntBE(1, LENGTH_BYTES));
    else if (kind === KIND.ack) this.#taker.onAck(head.readUIntBE(1, OFFSET_BYTES));
    else this.#taker.onEnd();
  }
}
