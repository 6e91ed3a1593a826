/**
 * The bodies of the two notes about files: an offer, and word of how it ended. Formats: docs/protocol-notes.md,
 * steps 14 to 16.
 */
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { asMap, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import {
  FILE_OFFER_ID_BYTES,
  MAX_OFFER_MESSAGE_CHARS,
  MAX_OFFERED_BYTES,
} from '../../foundation/domain/file-offers.ts';
import { MAX_FILE_NAME_BYTES, OBJECT_ID_BYTES } from '../../foundation/domain/objects.ts';

const VERSION = 1;
/** Longest body of either, bytes. */
export const MAX_OFFER_BODY_BYTES = 2048;
/** How an offer ended, as its number on the wire. */
const ENDS = ['taken', 'declined', 'withdrawn'] as const;
export type OfferEnd = (typeof ENDS)[number];

/** A file as it is offered. */
export interface OfferedFile {
  /** Lower-case hex. */
  readonly id: string;
  /** SHA-256 of the bytes, lower-case hex. */
  readonly objectId: string;
  readonly size: number;
  /** As the sender wrote it. */
  readonly name: string;
  readonly message: string;
}

export interface OfferNews {
  /** Lower-case hex. */
  readonly id: string;
  readonly end: OfferEnd;
}

function bytesOf(hex: string): Uint8Array {
  return fromHex(hex) ?? new Uint8Array();
}

/** @throws RangeError where a text is not well-formed Unicode */
export function encodeOffer({ id, objectId, size, name, message }: OfferedFile): Uint8Array {
  const text = message === '' ? undefined : message;
  return encodeCbor({ v: VERSION, i: bytesOf(id), o: bytesOf(objectId), s: size, n: name, m: text });
}

/** Null where a stranger wrote something else. */
export function decodeOffer(body: Uint8Array): OfferedFile | null {
  const map = mapOf(body, ['v', 'i', 'o', 's', 'n'], ['m']);
  if (map === null) return null;
  const { i: id, o: object, s: size, n: name, m: message = '' } = map;
  if (!isBytes(id, FILE_OFFER_ID_BYTES) || !isBytes(object, OBJECT_ID_BYTES)) return null;
  if (!isUint(size, MAX_OFFERED_BYTES) || typeof name !== 'string' || typeof message !== 'string') return null;
  if (Buffer.byteLength(name) > MAX_FILE_NAME_BYTES || message.length > MAX_OFFER_MESSAGE_CHARS) return null;
  return { id: toHex(id), objectId: toHex(object), size, name, message };
}

export function encodeNews({ id, end }: OfferNews): Uint8Array {
  return encodeCbor({ v: VERSION, i: bytesOf(id), e: ENDS.indexOf(end) });
}

/** Null where a stranger wrote something else. */
export function decodeNews(body: Uint8Array): OfferNews | null {
  const map = mapOf(body, ['v', 'i', 'e'], []);
  if (map === null) return null;
  const { i: id, e: number } = map;
  const end = typeof number === 'number' ? ENDS[number] : undefined;
  return isBytes(id, FILE_OFFER_ID_BYTES) && end !== undefined ? { id: toHex(id), end } : null;
}

function mapOf(body: Uint8Array, members: readonly string[], optional: readonly string[]) {
  try {
    const map = asMap(decodeCbor(body, MAX_OFFER_BODY_BYTES), members, optional);
    return map === null || map['v'] !== VERSION ? null : map;
  } catch {
    return null;
  }
}
