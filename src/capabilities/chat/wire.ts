/**
 * The messages of a link of purpose `chat`, in both directions: one version byte, then frames. A frame is a length of
 * four bytes and a CBOR map. Format: docs/protocol-chat.md, steps 1 and 2.
 */
import {
  bytes,
  CborMap,
  fromBytes,
  hex,
  nullable,
  text,
  toBytes,
  tuple,
  uint,
  union,
  type ValueOf,
  word,
} from '../../foundation/cbor-map.ts';
import {
  ENTRY_ID_BYTES,
  MAX_REQUEST_NOTE_CHARS,
  MAX_TEXT_BYTES,
  STREAM_ID_BYTES,
} from '../../foundation/domain/chat.ts';
import { MAX_FILE_NAME_BYTES, OBJECT_ID_BYTES } from '../../foundation/domain/objects.ts';
import { MAX_UNIX_MS } from '../../foundation/domain/time.ts';
import { LENGTH_BYTES, u32 } from '../../network/peers/wire.ts';
import { ANSWERS } from './relationship.ts';

/** The first byte of each direction. */
export const CHAT_VERSION = 1;
/** Size of a frame without its text, at most, bytes. */
const MAX_FRAME_OVERHEAD_BYTES = 1024;
/** Largest frame, bytes. */
export const MAX_FRAME_BYTES: number = MAX_TEXT_BYTES + MAX_FRAME_OVERHEAD_BYTES;
const STREAM = bytes(STREAM_ID_BYTES);
const ENTRY_ID = bytes(ENTRY_ID_BYTES);
const ANSWER = word(ANSWERS);
const TEXT = text((value) => Buffer.byteLength(value) <= MAX_TEXT_BYTES);
const FILE = tuple({ objectId: hex(OBJECT_ID_BYTES), name: text(isFileName), size: uint() });
const CONTENT = new CborMap(
  { id: ['i', ENTRY_ID], at: ['t', uint(MAX_UNIX_MS)], text: ['b', nullable(TEXT)], file: ['f', nullable(FILE)] },
  { isOpen: true, isValid: ({ text: words, file }) => words !== null || file !== null },
);
const FRAME = union('kind', 'k', {
  /** `n` numbers the control messages of one link that need an acknowledgment. */
  request: [1, { n: ['n', uint()], stream: ['s', STREAM], note: ['o', text(isNote)] }],
  /** `stream` is our stream, `re` is the stream of the peer's request. */
  accept: [2, { n: ['n', uint()], stream: ['s', STREAM], re: ['r', STREAM] }],
  gone: [3, { n: ['n', uint()], stream: ['s', nullable(STREAM)], re: ['r', nullable(STREAM)] }],
  /** `after` is the ID of the sender's message before this one, or null for the first one. */
  message: [
    4,
    {
      stream: ['s', STREAM],
      after: ['p', nullable(ENTRY_ID)],
      content: [null, CONTENT],
    },
  ],
  heard: [5, { n: ['n', uint()], answer: ['c', ANSWER] }],
  /** `last` is the ID of the last message that is stored, or null if there is none. */
  receipt: [6, { stream: ['s', STREAM], last: ['i', nullable(ENTRY_ID)], answer: ['c', ANSWER] }],
  /** Asks for a receipt unless the message `after`, which has a receipt, is still stored. */
  check: [7, { stream: ['s', STREAM], after: ['p', ENTRY_ID] }],
});

export type Frame = ValueOf<typeof FRAME>;
export type MessageFrame = Extract<Frame, { kind: 'message' }>;

/** Encodes a frame, including its length. */
export function encodeFrame(frame: Frame): Uint8Array {
  const body = toBytes(FRAME, frame);
  return Buffer.concat([u32(body.length), body]);
}

/** Whether a name can be displayed and contains no path separators. */
export function isFileName(name: string): boolean {
  return Buffer.byteLength(name) <= MAX_FILE_NAME_BYTES && !/[/\\\p{Cc}]/u.test(name);
}

/** Whether a text is a valid note of a request. */
export function isNote(note: string): boolean {
  // A character has at most two UTF-16 code units, so longer texts need no counting.
  return note.length <= 2 * MAX_REQUEST_NOTE_CHARS && Array.from(note).length <= MAX_REQUEST_NOTE_CHARS;
}

/** Splits the bytes of a link into frames. Buffers at most one frame. */
export class ChatFrameReader {
  #chunks: Uint8Array[] = [];
  #length = 0;
  /** Bytes needed before the next step can run. */
  #needed = 1;
  #greeted = false;

  /**
   * Returns the frames that these bytes complete.
   * @throws RangeError if the bytes are not valid chat frames
   */
  take(chunk: Uint8Array): Frame[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return [];
    let bytes = Buffer.concat(this.#chunks);
    if (!this.#greeted) {
      if (bytes[0] !== CHAT_VERSION) throw new RangeError('unsupported chat version');
      this.#greeted = true;
      bytes = bytes.subarray(1);
    }
    const frames: Frame[] = [];
    while (bytes.length >= LENGTH_BYTES) {
      const length = bytes.readUInt32BE(0);
      if (length > MAX_FRAME_BYTES) throw new RangeError('a frame is too long');
      this.#needed = LENGTH_BYTES + length;
      if (bytes.length < this.#needed) break;
      const frame = fromBytes(FRAME, bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length), MAX_FRAME_BYTES);
      if (frame === null) throw new RangeError('malformed frame');
      frames.push(frame);
      bytes = bytes.subarray(this.#needed);
    }
    if (bytes.length < LENGTH_BYTES) this.#needed = LENGTH_BYTES;
    this.#chunks = [bytes];
    this.#length = bytes.length;
    return frames;
  }
}
