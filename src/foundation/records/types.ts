/** Record types and their limits. See docs/protocol.md, "Record types". */

export const RECORD = {
  endpoints: 0x01,
  /** First custom type, the profile. */
  customFirst: 0x02,
  /** Last custom type. */
  customLast: 0x0f,
  profile: 0x02,
  service: 0x10,
  encryptionKeys: 0x11,
  note: 0x80,
} as const;

/** Types are one byte. */
export const MAX_RECORD_TYPE = 0xff;

/** The type of a record, one byte. */
export type RecordType = number & { readonly brand?: 'RecordType' };

/** Maximum size of a record that must fit into one datagram, in bytes: endpoints, services and encryption keys. */
export const MAX_DATAGRAM_RECORD_BYTES = 1000;
/** Maximum payload of a custom record, in bytes. */
export const MAX_CUSTOM_PAYLOAD_BYTES = 4 * 1024;
/** Maximum size of a sealed note, in bytes: a body of 32 KiB and the encryption overhead. */
export const MAX_NOTE_PAYLOAD_BYTES = 34 * 1024;
/** Length of a digest that identifies a record, in bytes. */
export const RECORD_DIGEST_BYTES = 8;
/** Length of a token that removes a note, in bytes. Only its sender and its recipient know it. */
export const REMOVAL_TOKEN_BYTES = 16;
/** Maximum overhead around a payload, in bytes. A wallet's delegation needs the largest part. */
const MAX_ENVELOPE_BYTES = 1024;
/** Maximum size of an encoded record of any type, in bytes. */
export const MAX_RECORD_BYTES: number = MAX_NOTE_PAYLOAD_BYTES + MAX_ENVELOPE_BYTES;

/** Maximum lifetime of a record, in seconds: 30 days, the lifetime of encryption keys. */
export const MAX_TTL_S: number = 30 * 24 * 3600;
/** Maximum lifetime of a note, in seconds: 7 days. */
export const MAX_NOTE_TTL_S: number = 7 * 24 * 3600;

/** Maximum number of entries in a list of labels. */
export const MAX_LABELS = 16;
/** Maximum length of a label (protocol, tag, modality), in bytes of UTF-8. */
export const MAX_LABEL_BYTES = 64;
/** Maximum length of a display name, in bytes of UTF-8. */
export const MAX_NAME_BYTES = 64;
/** Maximum length of a brief, in bytes of UTF-8. */
export const MAX_BRIEF_BYTES = 256;
/** Maximum length of a service name, in characters. */
export const MAX_SERVICE_NAME_CHARS = 128;
/** Maximum number of skills in a profile. */
export const MAX_SKILLS = 3;
/** Maximum length of a skill, in bytes of UTF-8. */
export const MAX_SKILL_BYTES = 128;
/** Maximum length of a card hash, in bytes of UTF-8. */
export const MAX_CARD_HASH_BYTES = 128;

/** Maximum number of records that a node stores under one key: services, notes. */
export const MAX_RECORDS_PER_KEY = 1000;

/** True for record types that this version supports. */
export function isRecordType(type: number): type is RecordType {
  return (
    type === RECORD.endpoints ||
    isCustomType(type) ||
    type === RECORD.service ||
    type === RECORD.encryptionKeys ||
    type === RECORD.note
  );
}

/** True for custom types, which applications define. */
export function isCustomType(type: number): boolean {
  return Number.isInteger(type) && type >= RECORD.customFirst && type <= RECORD.customLast;
}

/** Maximum payload of a type, in bytes. */
export function maxPayloadBytes(type: RecordType): number {
  if (isCustomType(type)) return MAX_CUSTOM_PAYLOAD_BYTES;
  return type === RECORD.note ? MAX_NOTE_PAYLOAD_BYTES : MAX_DATAGRAM_RECORD_BYTES;
}

/** Maximum size of a record of a type, in bytes. */
export function maxRecordBytes(type: RecordType): number {
  if (isCustomType(type)) return MAX_CUSTOM_PAYLOAD_BYTES + MAX_ENVELOPE_BYTES;
  return type === RECORD.note ? MAX_RECORD_BYTES : MAX_DATAGRAM_RECORD_BYTES;
}

/** Maximum lifetime of a record of a type, in seconds. */
export function maxTtlSeconds(type: RecordType): number {
  return type === RECORD.note ? MAX_NOTE_TTL_S : MAX_TTL_S;
}

/** Longest start time in a profile or a service record, seconds. */
export const MAX_WAKES_WITHIN_S = 3600;
