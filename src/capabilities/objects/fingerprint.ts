/** Detects changes of a hashed file without reading it again. */
import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { PrefixHash } from '../../foundation/prefix-hashes.ts';

interface Readable {
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

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

/** Hashes a file. @param onRead called after each read */
export async function hashInto(hash: PrefixHash, handle: Readable, onRead?: () => void): Promise<void> {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, hash.length);
    if (bytesRead === 0) return;
    hash.update(buffer.subarray(0, bytesRead));
    onRead?.();
  }
}

export interface HashedFile {
  readonly objectId: string;
  readonly size: number;
  readonly fingerprint: string;
  /** See `PrefixHash.list`. */
  readonly prefixes: Buffer;
}

/**
 * Hashes an open file. Null if it changed meanwhile.
 * @param onRead called after each read. If it throws, so does this
 */
export async function hashFile(handle: FileHandle, onRead?: (hash: PrefixHash) => void): Promise<HashedFile | null> {
  const before = fingerprintOf(await handle.stat({ bigint: true }));
  const hash = new PrefixHash();
  await hashInto(hash, handle, () => onRead?.(hash));
  if (fingerprintOf(await handle.stat({ bigint: true })) !== before) return null;
  return { objectId: hash.digest(), size: hash.length, fingerprint: before, prefixes: hash.list() };
}
