/** Record types and what each may hold. See docs/protocol.md, "Record types". */

export const RECORD = {
  endpoints: 0x01,
  /** Custom types run from here … */
  customFirst: 0x02,
  /** … to here; the first is the profile card. */
  customLast: 0x0f,
  profile: 0x02,
  service: 0x10,
  encryptionKeys: 0x11,
  note: 0x80,
} as const;

/** Types are one byte. */
export const MAX_RECORD_TYPE = 0xff;

/** One byte that says what a record is. */
export type RecordType = number & { readonly brand?: 'RecordType' };

/** Largest encoded record that travels in one datagram, bytes: endpoints, services and encryption keys must. */
export const MAX_DATAGRAM_RECORD_BYTES = 1000;
/** Largest payload of a custom record, bytes. */
export const MAX_CUSTOM_PAYLOAD_BYTES = 4 * 1024;
/** Largest sealed note, bytes: a body of 32 KiB and what seals it. */
export const MAX_NOTE_PAYLOAD_BYTES = 34 * 1024;
/** Bytes of a digest that tells records apart. */
export const RECORD_DIGEST_BYTES = 8;
/** What removes a note: 16 bytes that only its sender and its recipient know. */
export const REMOVAL_TOKEN_BYTES = 16;
/** Room for what stands around a payload: the proof of a wallet takes most of it. Bytes. */
const MAX_ENVELOPE_BYTES = 1024;
/** Largest encoded record of any type, bytes. */
export const MAX_RECORD_BYTES: number = MAX_NOTE_PAYLOAD_BYTES + MAX_ENVELOPE_BYTES;

/** Longest life of a record, seconds: 30 days, the life of encryption keys. */
export const MAX_TTL_S: number = 30 * 24 * 3600;
/** Longest life of a note, seconds: 7 days. */
export const MAX_NOTE_TTL_S: number = 7 * 24 * 3600;

/** Most entries of a list of labels. */
export const MAX_LABELS = 16;
/** Longest label (protocol, tag, modality), bytes of UTF-8. */
export const MAX_LABEL_BYTES = 64;
/** Longest display name, bytes of UTF-8. */
export const MAX_NAME_BYTES = 64;
/** Longest brief, bytes of UTF-8. */
export const MAX_BRIEF_BYTES = 256;
/** Longest service name, characters. */
export const MAX_SERVICE_NAME_CHARS = 128;
/** Most skills of a profile card. */
export const MAX_SKILLS = 3;
/** Longest skill, bytes of UTF-8. */
export const MAX_SKILL_BYTES = 128;
/** Longest card hash, bytes of UTF-8. */
export const MAX_CARD_HASH_BYTES = 128;

/** Records of one key that a node keeps: services, notes. */
export const MAX_RECORDS_PER_KEY = 1000;

/** True for the types that this version knows. */
export function isRecordType(type: number): type is RecordType {
  return (
    type === RECORD.endpoints ||
    isCustomType(type) ||
    type === RECORD.service ||
    type === RECORD.encryptionKeys ||
    type === RECORD.note
  );
}

/** True for the types that applications choose. */
export function isCustomType(type: number): boolean {
  return Number.isInteger(type) && type >= RECORD.customFirst && type <= RECORD.customLast;
}

/** The most bytes that a payload of a type may have. */
export function maxPayloadBytes(type: RecordType): number {
  if (isCustomType(type)) return MAX_CUSTOM_PAYLOAD_BYTES;
  return type === RECORD.note ? MAX_NOTE_PAYLOAD_BYTES : MAX_DATAGRAM_RECORD_BYTES;
}

/** The most bytes that a whole record of a type may have. */
export function maxRecordBytes(type: RecordType): number {
  if (isCustomType(type)) return MAX_CUSTOM_PAYLOAD_BYTES + MAX_ENVELOPE_BYTES;
  return type === RECORD.note ? MAX_RECORD_BYTES : MAX_DATAGRAM_RECORD_BYTES;
}

/** The longest life that a record of a type may have, seconds. */
export function maxTtlSeconds(type: RecordType): number {
  return type === RECORD.note ? MAX_NOTE_TTL_S : MAX_TTL_S;
}
