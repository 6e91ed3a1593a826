/** Detects changes of a hashed file without reading it again. */
import { createHash, type Hash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

/** Bytes of one read. */
export const READ_BYTES = 512 * 1024;
/** Within this time after a write, another write may leave the times of a file unchanged, milliseconds. */
const RACY_MS = 2_000;

/** Size, times and inode of a file. The writer of a file cannot set its change time back. */
export function fingerprintOf({ size, mtimeNs, ctimeNs, ino }: BigIntStats): string {
  return `${size} ${mtimeNs} ${ctimeNs} ${ino}`;
}

/** Whether an unchanged fingerprint is not reliable, see `RACY_MS`. */
export function isRacy({ mtimeNs, ctimeNs }: BigIntStats, hashedAt: number): boolean {
  const changed = Number((mtimeNs > ctimeNs ? mtimeNs : ctimeNs) / 1_000_000n);
  return hashedAt - changed < RACY_MS;
}

/** Hashes a file. Returns its size. */
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

/** Hashes an open file. Null if it changed meanwhile. */
export async function hashFile(handle: FileHandle): Promise<HashedFile | null> {
  const before = fingerprintOf(await handle.stat({ bigint: true }));
  const hash = createHash('sha256');
  const size = await hashInto(hash, handle);
  if (fingerprintOf(await handle.stat({ bigint: true })) !== before) return null;
  return { objectId: hash.digest('hex'), size, fingerprint: before };
}
