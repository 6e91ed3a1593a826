/**
 * Bytes that an answer carries as base64, written straight into it. As a text of its own, and once more as a part of the
 * whole answer, each of their megabytes would stay in JavaScript's heap until a collection that a daemon at rest never
 * makes.
 */
import { randomBytes } from 'node:crypto';
import { base64Length, writeBase64 } from '../../foundation/base64.ts';
import { allocateTransferable } from '../../foundation/collected-bytes.ts';
import type { AnswerBytes } from '../../operations/operation.ts';

/** Bytes of which the mark is made that stands for them: what another side wrote must not hold it. */
const MARK_BYTES = 16;

export class InlinedBytes {
  /** What the answer holds in their place. */
  readonly mark: string = randomBytes(MARK_BYTES).toString('hex');
  readonly #bytes: AnswerBytes;

  constructor(bytes: AnswerBytes) {
    this.#bytes = bytes;
  }

  /** The JSON text of an answer with the bytes in the place of their mark, which it holds once; they are freed. */
  into(json: string): Buffer<ArrayBuffer> {
    const [before = '', after = ''] = json.split(this.mark);
    const bytes = this.#bytes.bytes();
    const head = Buffer.byteLength(before);
    const answer = allocateTransferable(head + base64Length(bytes.length) + Buffer.byteLength(after));
    answer.write(before);
    answer.write(after, writeBase64(answer, head, bytes));
    this.#bytes.free();
    return answer;
  }
}
