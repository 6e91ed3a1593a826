/**
 * The frames of a tunnel connection, in both directions: docs/protocol-tunnels.md, steps 2 and 7. Payloads are
 * passed on in pieces as they arrive, so a length reserves no memory.
 */
import type { Duplex } from 'node:stream';
import { isServiceFault, type ServiceFault } from '../../foundation/domain/service-faults.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import { serviceFailure } from '../../foundation/service-failure.ts';

/** The first byte of the called side, by position: did the service accept? A fault stands for `inbound_unreachable`. */
const OUTCOMES: readonly (ErrorCode | ServiceFault | null)[] = [
  null,
  'no_inbound',
  'refused',
  'access_denied',
  'rate_limited',
  'protocol_error',
  'calls_only',
  'silent',
  'unresolved',
  'closed',
  'replaced',
  'no_room',
];

const KIND = { data: 1, ack: 2, end: 3, lossy: 4 } as const;

/** Bytes of an offset in a stream. */
const OFFSET_BYTES = 6;
const LENGTH_BYTES = 3;
const DATA_HEAD_BYTES = 1 + LENGTH_BYTES;
/** Size of an acknowledgement. */
export const ACK_FRAME_BYTES: number = 1 + OFFSET_BYTES;

/** Payloads up to this length are copied behind their head, bytes: a copy costs less than a second write. */
const JOINED_BYTES = 4096;

/** Bytes before the payload, by kind. */
const HEAD_BYTES: Readonly<Record<number, number>> = {
  [KIND.data]: DATA_HEAD_BYTES,
  [KIND.ack]: ACK_FRAME_BYTES,
  [KIND.end]: 1,
  [KIND.lossy]: 1,
};

/** The byte of an outcome. Null is success. */
export function statusByte(failure: SvcError | null): number {
  const reason = failure?.details?.['reason'];
  const byte = OUTCOMES.indexOf(
    failure?.code === 'inbound_unreachable' && isServiceFault(reason) ? reason : (failure?.code ?? null),
  );
  return byte < 0 ? OUTCOMES.indexOf('protocol_error') : byte;
}

/** The outcome of a byte. Null is success. */
export function outcomeOf(byte: number | undefined): SvcError | null {
  const outcome = byte === undefined ? undefined : OUTCOMES[byte];
  if (outcome === null) return null;
  if (outcome === undefined) return new SvcError('protocol_error');
  return isServiceFault(outcome) ? serviceFailure(outcome) : new SvcError(outcome);
}

/**
 * Reads the outcome from a link that carries nothing else.
 * @throws SvcError with the code of the called side; `protocol_error` if it sends no outcome
 */
export async function readStatus(link: Duplex): Promise<void> {
  const failure = await new Promise<SvcError | null>((resolve) => {
    link.once('data', (chunk: Buffer) => resolve(outcomeOf(chunk[0])));
    link.once('close', () => resolve(outcomeOf(undefined)));
  });
  if (failure !== null) throw failure;
}

interface FrameSink {
  write(bytes: Uint8Array): boolean;
  cork(): void;
  uncork(): void;
}

/** A data frame with its own memory. */
export function framedData(payload: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(DATA_HEAD_BYTES + payload.length);
  frame.writeUInt32BE((KIND.data << 24) | payload.length);
  frame.set(payload, DATA_HEAD_BYTES);
  return frame;
}

/** Writes a data frame. False if the writer must wait for the stream. */
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

/** @param received bytes received; an end counts as one more */
export function receivedFrame(received: number): Buffer {
  const frame = Buffer.alloc(ACK_FRAME_BYTES);
  frame[0] = KIND.ack;
  frame.writeUIntBE(received, 1, OFFSET_BYTES);
  return frame;
}

/** No byte follows. */
export function lastFrame(): Buffer {
  return Buffer.of(KIND.end);
}

/** Packet loss slows the sender of this frame down. */
export function lossyFrame(): Buffer {
  return Buffer.of(KIND.lossy);
}

/** Receives frames as they arrive. */
export interface FrameTaker {
  /** The next bytes: part of the chunk that was fed. */
  onData(piece: Buffer): void;
  onAck(received: number): void;
  onEnd(): void;
  onLossy(): void;
}

/** Reads the frames of one link. Chunks may split them anywhere. */
export class FrameReader {
  readonly #taker: FrameTaker;
  /** An incomplete head. */
  #head: Buffer | null = null;
  #headBytes = 0;
  /** Bytes of the payload that have not arrived. */
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
    this.#head ??= Buffer.alloc(ACK_FRAME_BYTES);
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
    else if (kind === KIND.end) this.#taker.onEnd();
    else this.#taker.onLossy();
  }
}
