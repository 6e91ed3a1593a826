/** The bodies of the two notes about files: an offer, and its end. Formats: docs/protocol-notes.md, steps 14 to 16. */
import {
  CborMap,
  fromBytes,
  hex,
  nullable,
  orElse,
  text,
  toBytes,
  uint,
  type ValueOf,
  word,
} from '../../foundation/cbor-map.ts';
import {
  FILE_OFFER_ID_BYTES,
  MAX_OFFER_MESSAGE_CHARS,
  MAX_OFFERED_BYTES,
} from '../../foundation/domain/file-offers.ts';
import { MAX_FILE_NAME_BYTES, OBJECT_ID_BYTES } from '../../foundation/domain/objects.ts';

/** Largest body of either note, bytes. */
export const MAX_OFFER_BODY_BYTES = 2048;

/** An offered file. */
const OFFER = new CborMap(
  {
    id: ['i', hex(FILE_OFFER_ID_BYTES)],
    /** SHA-256 of the bytes; null if the sender is still hashing them. */
    objectId: ['o', nullable(hex(OBJECT_ID_BYTES))],
    size: ['s', uint(MAX_OFFERED_BYTES)],
    /** As the sender wrote it, not sanitized. */
    name: ['n', text((name) => Buffer.byteLength(name) <= MAX_FILE_NAME_BYTES)],
    message: [
      'm',
      orElse(
        text((message) => message.length <= MAX_OFFER_MESSAGE_CHARS),
        '',
      ),
    ],
  },
  { version: 1 },
);

const END_NOTICE = new CborMap(
  { id: ['i', hex(FILE_OFFER_ID_BYTES)], end: ['e', word(['taken', 'declined', 'withdrawn'])] },
  { version: 1 },
);

export type OfferedFile = ValueOf<typeof OFFER>;
export type OfferEndNotice = ValueOf<typeof END_NOTICE>;
export type OfferEnd = OfferEndNotice['end'];

/** @throws RangeError if a text is not well-formed Unicode */
export function encodeOffer(offer: OfferedFile): Uint8Array {
  return toBytes(OFFER, offer);
}

/** Null if the body is invalid. */
export function decodeOffer(body: Uint8Array): OfferedFile | null {
  return fromBytes(OFFER, body, MAX_OFFER_BODY_BYTES);
}

export function encodeEndNotice(notice: OfferEndNotice): Uint8Array {
  return toBytes(END_NOTICE, notice);
}

/** Null if the body is invalid. */
export function decodeEndNotice(body: Uint8Array): OfferEndNotice | null {
  return fromBytes(END_NOTICE, body, MAX_OFFER_BODY_BYTES);
}
