/**
 * The messages of a link of purpose `chat`, in both directions: one version byte, then frames. A frame is a length of
 * four bytes and a CBOR map. Format: docs/protocol-chat.md, steps 1 and 2.
 */
import { asMap, type CborValue, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import {
  ENTRY_ID_BYTES,
  MAX_REQUEST_NOTE_CHARS,
  MAX_TEXT_BYTES,
  STREAM_ID_BYTES,
} from '../../foundation/domain/chat.ts';
import { MAX_FILE_NAME_BYTES, OBJECT_ID_BYTES } from '../../foundation/domain/objects.ts';
import { MAX_UNIX_MS } from '../../foundation/domain/time.ts';
import type { ChatContent, ChatFile } from '../../foundation/store/chat-log.ts';
import { LENGTH_BYTES, u32 } from '../../network/peers/wire.ts';
import { ANSWERS, type Answer } from './relationship.ts';

/** The first byte of each direction. */
export const CHAT_VERSION = 1;
/** Size of a frame without its text, at most, bytes. */
const MAX_FRAME_OVERHEAD_BYTES = 1024;
/** Largest frame, bytes. */
export const MAX_FRAME_BYTES: number = MAX_TEXT_BYTES + MAX_FRAME_OVERHEAD_BYTES;
const KIND = { request: 1, accept: 2, gone: 3, message: 4, heard: 5, receipt: 6, check: 7 } as const;

export type Frame =
  /** `n` numbers the control messages of one link that need an acknowledgment. */
  | { readonly kind: 'request'; readonly n: number; readonly stream: Uint8Array; readonly note: string }
  /** `stream` is our stream, `re` is the stream of the peer's request. */
  | { readonly kind: 'accept'; readonly n: number; readonly stream: Uint8Array; readonly re: Uint8Array }
  | { readonly kind: 'gone'; readonly n: number; readonly stream: Uint8Array | null; readonly re: Uint8Array | null }
  /** `after` is the ID of the sender's message before this one, or null for the first one. */
  | {
      readonly kind: 'message';
      readonly stream: Uint8Array;
      readonly after: Uint8Array | null;
      readonly content: ChatContent;
    }
  | { readonly kind: 'heard'; readonly n: number; readonly answer: Answer }
  /** `last` is the ID of the last message that is stored, or null if there is none. */
  | {
      readonly kind: 'receipt';
      readonly stream: Uint8Array;
      readonly last: Uint8Array | null;
      readonly answer: Answer;
    }
  /** Asks for a receipt unless the message `after`, which has a receipt, is still stored. */
  | { readonly kind: 'check'; readonly stream: Uint8Array; readonly after: Uint8Array };

export type MessageFrame = Extract<Frame, { kind: 'message' }>;

function fileValue({ objectId, name, size }: ChatFile): CborValue {
  return [Uint8Array.from(Buffer.from(objectId, 'hex')), name, size];
}

function valueOf(frame: Frame): Parameters<typeof encodeCbor>[0] {
  const k = KIND[frame.kind];
  switch (frame.kind) {
    case 'request':
      return { k, n: frame.n, s: frame.stream, o: frame.note };
    case 'accept':
      return { k, n: frame.n, s: frame.stream, r: frame.re };
    case 'gone':
      return { k, n: frame.n, s: frame.stream ?? undefined, r: frame.re ?? undefined };
    case 'message': {
      const { id, at, text, file } = frame.content;
      const f = file === null ? undefined : fileValue(file);
      return { k, s: frame.stream, p: frame.after ?? undefined, i: id, t: at, b: text ?? undefined, f };
    }
    case 'heard':
      return { k, n: frame.n, c: ANSWERS.indexOf(frame.answer) };
    case 'receipt':
      return { k, s: frame.stream, i: frame.last ?? undefined, c: ANSWERS.indexOf(frame.answer) };
    case 'check':
      return { k, s: frame.stream, p: frame.after };
  }
}

/** Encodes a frame, including its length. */
export function encodeFrame(frame: Frame): Uint8Array {
  const body = encodeCbor(valueOf(frame));
  return Buffer.concat([u32(body.length), body]);
}

type Values = Readonly<Record<string, unknown>>;

function isStream(value: unknown): value is Uint8Array {
  return isBytes(value, STREAM_ID_BYTES);
}

function isEntryId(value: unknown): value is Uint8Array {
  return isBytes(value, ENTRY_ID_BYTES);
}

function answerOf(value: unknown): Answer | null {
  return isUint(value, ANSWERS.length - 1) ? (ANSWERS[value] ?? null) : null;
}

function readFile(value: unknown): ChatFile | null {
  if (!Array.isArray(value) || value.length !== 3) return null;
  const [objectId, name, size]: unknown[] = value;
  if (!isBytes(objectId, OBJECT_ID_BYTES) || typeof name !== 'string' || !isUint(size)) return null;
  return isFileName(name) ? { objectId: Buffer.from(objectId).toString('hex'), name, size } : null;
}

/** Whether a name can be displayed and contains no path separators. */
export function isFileName(name: string): boolean {
  return Buffer.byteLength(name) <= MAX_FILE_NAME_BYTES && !/[/\\\p{Cc}]/u.test(name);
}

function readMessage(map: Values): MessageFrame | null {
  const { s: stream, p: after, i: id, t: at, b: text = null, f } = map;
  if (!isStream(stream) || !isEntryId(id) || !isUint(at, MAX_UNIX_MS)) return null;
  if (after !== undefined && !isEntryId(after)) return null;
  if (text !== null && (typeof text !== 'string' || Buffer.byteLength(text) > MAX_TEXT_BYTES)) return null;
  const file = f === undefined ? null : readFile(f);
  if ((f !== undefined && file === null) || (text === null && file === null)) return null;
  return { kind: 'message', stream, after: after ?? null, content: { id, at, text, file } };
}

function readFrame(bytes: Uint8Array): Frame | null {
  const map = asMap(decodeCbor(bytes, MAX_FRAME_BYTES), ['k'], 'any');
  if (map === null) return null;
  const { n, s: stream, r: re } = map;
  switch (map['k']) {
    case KIND.request: {
      const note = map['o'];
      if (!isUint(n) || !isStream(stream) || typeof note !== 'string') return null;
      return isNote(note) ? { kind: 'request', n, stream, note } : null;
    }
    case KIND.accept:
      return isUint(n) && isStream(stream) && isStream(re) ? { kind: 'accept', n, stream, re } : null;
    case KIND.gone: {
      if (!isUint(n) || (stream !== undefined && !isStream(stream)) || (re !== undefined && !isStream(re))) return null;
      return { kind: 'gone', n, stream: stream ?? null, re: re ?? null };
    }
    case KIND.message:
      return readMessage(map);
    case KIND.heard: {
      const answer = answerOf(map['c']);
      return isUint(n) && answer !== null ? { kind: 'heard', n, answer } : null;
    }
    case KIND.receipt: {
      const answer = answerOf(map['c']);
      const last = map['i'];
      if (!isStream(stream) || answer === null || (last !== undefined && !isEntryId(last))) return null;
      return { kind: 'receipt', stream, last: last ?? null, answer };
    }
    case KIND.check: {
      const after = map['p'];
      return isStream(stream) && isEntryId(after) ? { kind: 'check', stream, after } : null;
    }
    default:
      return null;
  }
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
      const frame = readFrame(bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
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
