/**
 * What a channel carries between two processes of one machine: records as `network/bulk/records` has them, but open. Both
 * have shown that they know the secret; who may record packets of the loopback interface can read what clients and services
 * say to their daemons there anyway.
 */
import { SvcError } from '../../../foundation/errors.ts';
import { type LaneRecord, MAX_RECORD_PAYLOAD_BYTES, type RecordKind } from '../udp-lane/records.ts';

const CODE: Readonly<Record<RecordKind, number>> = { hello: 0, data: 1, end: 2, reset: 3 };
const KIND_OF = new Map<number, RecordKind>([
  [CODE.hello, 'hello'],
  [CODE.data, 'data'],
  [CODE.end, 'end'],
  [CODE.reset, 'reset'],
]);
const HEAD_BYTES = 4;
const NOTHING: Buffer = Buffer.alloc(0);

export class FrameWriter {
  /** @param payload at most `MAX_RECORD_PAYLOAD_BYTES`; is not kept */
  seal(kind: RecordKind, payload: Uint8Array = NOTHING): Buffer {
    const frame = Buffer.allocUnsafeSlow(HEAD_BYTES + payload.length);
    frame.writeUInt32BE(((CODE[kind] << 24) | payload.length) >>> 0);
    frame.set(payload, HEAD_BYTES);
    return frame;
  }
}

/** Takes the frames off the bytes of a channel, however these are cut. */
export class FrameOpener {
  readonly #head: Buffer = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  /** What is still to come of the payload. */
  #left = 0;

  /**
   * Gives what has come; a payload in the pieces in which it came.
   * @throws SvcError `protocol_error`
   */
  *feed(chunk: Buffer): Generator<LaneRecord> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left > 0) {
        const piece = Buffer.from(chunk.subarray(at, at + this.#left));
        at += piece.length;
        this.#left -= piece.length;
        yield { kind: 'data', payload: piece };
      } else {
        const taken = chunk.copy(this.#head, this.#headBytes, at);
        this.#headBytes += taken;
        at += taken;
        if (this.#headBytes < HEAD_BYTES) return;
        this.#headBytes = 0;
        const kind = this.#begin(this.#head.readUInt32BE());
        if (kind !== 'data') yield { kind, payload: NOTHING };
      }
    }
  }

  #begin(head: number): RecordKind {
    const kind = KIND_OF.get(head >>> 24);
    const length = head & 0xff_ffff;
    const isRight = kind === 'data' ? length > 0 && length <= MAX_RECORD_PAYLOAD_BYTES : length === 0;
    if (kind === undefined || !isRight)
      throw new SvcError('protocol_error', { message: 'A channel carries what the other side did not send.' });
    this.#left = length;
    return kind;
  }
}
