/** Whether a file is still what it was when its bytes were hashed, without reading it. */
import { createHash, type Hash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

/** Bytes that are read at once. */
export const READ_BYTES = 512 * 1024;
/** A file that was hashed this soon after it was written may have been written again within one tick of its clock, milliseconds. */
const RACY_MS = 2_000;

/** Size, times and number of a file. The change time cannot be set back by who writes the file. */
export function fingerprintOf({ size, mtimeNs, ctimeNs, ino }: BigIntStats): string {
  return `${size} ${mtimeNs} ${ctimeNs} ${ino}`;
}

/** True where an unchanged fingerprint says little: see `RACY_MS`. */
export function isRacy({ mtimeNs, ctimeNs }: BigIntStats, hashedAt: number): boolean {
  const changed = Number((mtimeNs > ctimeNs ? mtimeNs : ctimeNs) / 1_000_000n);
  return hashedAt - changed < RACY_MS;
}

/** Feeds a file to a hash. Returns how many bytes there were. */
export async function hashInto(hash: Hash, handle: FileHandle): Promise<number> {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (let position = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return position;
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
}

export interface HashedFile {
  readonly objectId: string;
  readonly size: number;
  readonly fingerprint: string;
}

/** Hashes an open file; null where it changed meanwhile. */
export async function hashFile(handle: FileHandle): Promise<HashedFile | null> {
  const before = fingerprintOf(await handle.stat({ bigint: true }));
  const hash = createHash('sha256');
  const size = await hashInto(hash, handle);
  if (fingerprintOf(await handle.stat({ bigint: true })) !== before) return null;
  return { objectId: hash.digest('hex'), size, fingerprint: before };
}
