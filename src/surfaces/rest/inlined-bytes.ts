/**
 * Bytes that a response carries as base64, written directly into the response. As separate JavaScript strings, they
 * would stay in the heap until a garbage collection, which may not happen in an idle daemon.
 */
import { randomBytes } from 'node:crypto';
import { base64Length, writeBase64 } from '../../foundation/base64.ts';
import { allocateTransferable } from '../../foundation/collected-bytes.ts';
import type { AnswerBytes } from '../../operations/operation.ts';

/** Random bytes of the placeholder. Data from the remote side must not contain it. */
const MARK_BYTES = 16;

export class InlinedBytes {
  /** The placeholder in the response. */
  readonly mark: string = randomBytes(MARK_BYTES).toString('hex');
  readonly #bytes: AnswerBytes;

  constructor(bytes: AnswerBytes) {
    this.#bytes = bytes;
  }

  /** Replaces the placeholder, which must occur once in the JSON text, with the bytes and frees them. */
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
