/** The bodies of the two notes about files: an offer, and its end. Formats: docs/protocol-notes.md, steps 14 to 16. */
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { asMap, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import {
  FILE_OFFER_ID_BYTES,
  MAX_OFFER_MESSAGE_CHARS,
  MAX_OFFERED_BYTES,
} from '../../foundation/domain/file-offers.ts';
import { MAX_FILE_NAME_BYTES, OBJECT_ID_BYTES } from '../../foundation/domain/objects.ts';

const VERSION = 1;
/** Largest body of either note, bytes. */
export const MAX_OFFER_BODY_BYTES = 2048;
/** The ends of an offer. The index is the wire value. */
const ENDS = ['taken', 'declined', 'withdrawn'] as const;
export type OfferEnd = (typeof ENDS)[number];

/** An offered file. */
export interface OfferedFile {
  /** Lower-case hex. */
  readonly id: string;
  /** SHA-256 of the bytes, lower-case hex; null if the sender is still hashing them. */
  readonly objectId: string | null;
  readonly size: number;
  /** As the sender wrote it, not sanitized. */
  readonly name: string;
  readonly message: string;
}

export interface OfferEndNotice {
  /** Lower-case hex. */
  readonly id: string;
  readonly end: OfferEnd;
}

function bytesOf(hex: string): Uint8Array {
  return fromHex(hex) ?? new Uint8Array();
}

/** @throws RangeError if a text is not well-formed Unicode */
export function encodeOffer({ id, objectId, size, name, message }: OfferedFile): Uint8Array {
  const text = message === '' ? undefined : message;
  const object = objectId === null ? undefined : bytesOf(objectId);
  return encodeCbor({ v: VERSION, i: bytesOf(id), o: object, s: size, n: name, m: text });
}

/** Null if the body is invalid. */
export function decodeOffer(body: Uint8Array): OfferedFile | null {
  const map = mapOf(body, ['v', 'i', 's', 'n'], ['o', 'm']);
  if (map === null) return null;
  const { i: id, o: object, s: size, n: name, m: message = '' } = map;
  if (!isBytes(id, FILE_OFFER_ID_BYTES) || !(object === undefined || isBytes(object, OBJECT_ID_BYTES))) return null;
  if (!isUint(size, MAX_OFFERED_BYTES) || typeof name !== 'string' || typeof message !== 'string') return null;
  if (Buffer.byteLength(name) > MAX_FILE_NAME_BYTES || message.length > MAX_OFFER_MESSAGE_CHARS) return null;
  return { id: toHex(id), objectId: object === undefined ? null : toHex(object), size, name, message };
}

export function encodeEndNotice({ id, end }: OfferEndNotice): Uint8Array {
  return encodeCbor({ v: VERSION, i: bytesOf(id), e: ENDS.indexOf(end) });
}

/** Null if the body is invalid. */
export function decodeEndNotice(body: Uint8Array): OfferEndNotice | null {
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
