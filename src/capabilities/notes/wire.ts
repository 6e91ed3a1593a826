/**
 * What is said on a link of purpose `note`: the caller hands over a note record, or asks for the
 * encryption keys of the agent that it called. Format: docs/protocol-notes.md, "Note links".
 */
import { MAX_DATAGRAM_RECORD_BYTES, MAX_RECORD_BYTES } from '../../foundation/records/types.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { BinaryReader, readExactly, readFrame, u16 } from '../../network/links/wire.ts';
import type { Verdict } from './inbox.ts';

/** First byte of a request. */
export const REQUEST = { note: 1, keys: 2 } as const;
/** Answers to a note. */
const ANSWERS = ['kept', 'known', 'full', 'unknown_key', 'refused', 'limited'] as const;
/** What a recipient's node says to a note. */
export type NoteAnswer = Verdict | 'limited';

/** What hands over a note. */
export function noteRequest(record: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(REQUEST.note), u16(record.length), record]);
}

/** What asks for the payload of the encryption key record. */
export function keysRequest(): Uint8Array {
  return Uint8Array.of(REQUEST.keys);
}

/** What is said to a note; null where that makes no sense. Rejects as `readExactly`. */
export async function readAnswer(link: LinkStream, signal: AbortSignal): Promise<NoteAnswer | null> {
  const [answer = 255] = await readExactly(link, 1, signal);
  return ANSWERS[answer] ?? null;
}

/** The payload of the encryption key record. Rejects as `readFrame`. */
export function readKeys(link: LinkStream, signal: AbortSignal): Promise<Uint8Array> {
  return readFrame(link, MAX_DATAGRAM_RECORD_BYTES, signal);
}

/** Reads a request: the record of a note, or `keys`. Rejects as `readFrame`. */
export async function readRequest(link: LinkStream, signal: AbortSignal): Promise<Uint8Array | 'keys' | null> {
  const kind = new BinaryReader(await readExactly(link, 1, signal)).u8();
  if (kind === REQUEST.keys) return 'keys';
  return kind === REQUEST.note ? readFrame(link, MAX_RECORD_BYTES, signal) : null;
}

export function answerNote(link: LinkStream, answer: NoteAnswer): void {
  link.end(Uint8Array.of(ANSWERS.indexOf(answer)));
}

export function answerKeys(link: LinkStream, payload: Uint8Array): void {
  link.end(Buffer.concat([u16(payload.length), payload]));
}
