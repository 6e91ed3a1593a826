/** A SHA-256 in paths, bodies and files: lower-case hex. */
export const SHA256_PATTERN = '^[0-9a-f]{64}$';

const SHA256 = new RegExp(SHA256_PATTERN);

export function isSha256(text: string): boolean {
  return SHA256.test(text);
}

// Objects: bytes named by their hash. Rules: docs/objects.md.

/** Responses of an agent to an object lookup. */
export const HOLDER_STATUSES = ['available', 'denied', 'not_found', 'gone', 'unreachable'] as const;
export type HolderStatus = (typeof HOLDER_STATUSES)[number];

/** Size of a SHA-256, bytes. */
export const OBJECT_ID_BYTES = 32;
/** A file is verified while it arrives, in ranges of this many bytes. */
export const RANGE_BYTES: number = 4 * 1024 * 1024;
/** A range is requested this many times if its bytes are wrong. */
export const MAX_RANGE_ATTEMPTS = 3;

/** The ranges of a file; 1 for an empty one. @param size bytes */
export function rangeCount(size: number): number {
  return Math.max(1, Math.ceil(size / RANGE_BYTES));
}

/** Longest path of a file, characters. */
export const MAX_FILE_PATH_CHARS = 4096;
/** Longest file name, bytes of UTF-8: the limit of file systems. */
export const MAX_FILE_NAME_BYTES = 255;
/** Agents that are cached, and tried, as holders of one object. */
export const MAX_HOLDERS_PER_OBJECT = 16;

/** The missing bytes of a transfer are requested again after this time without a byte, milliseconds. */
export const TRANSFER_SILENT_MS = 3_000;
