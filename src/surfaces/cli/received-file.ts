/**
 * A file during download, written by `svc` itself. It has a temporary name in the target folder until it is complete
 * and verified, and it never replaces another file.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { numberedName, receivedName } from '../../foundation/file-name.ts';
import { describeDiskError, moveWithoutReplacing, syncDirectory } from '../../foundation/files.ts';
import { PrefixHash, type PrefixHashes } from '../../foundation/prefix-hashes.ts';

/** Names to try for one file. */
const MAX_NAMES = 1000;
/** Chunk size for hashing an existing part, bytes. */
const READ_BYTES: number = 1024 * 1024;

function notWritable(file: string, cause: unknown): SvcError {
  return new SvcError('not_writable', { message: `${file} cannot be written${describeDiskError(cause)}`, cause });
}

/** @throws SvcError `not_found` if the folder does not exist */
export async function checkFolder(folder: string): Promise<void> {
  const there = await stat(folder).catch(() => null);
  if (there?.isDirectory() !== true)
    throw new SvcError('not_found', {
      message: `The folder ${folder} does not exist. Create it, or choose another one with --into.`,
    });
}

/** The name of a partial file contains the ID of its offer. */
const PART = /^\.svc-([0-9a-f]+)\.part$/;

function partOf(folder: string, id: string): string {
  return join(folder, `.svc-${id}.part`);
}

/** Offer IDs of the partial files in a folder. */
export async function partialOffers(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  return names.flatMap((name) => PART.exec(name)?.[1] ?? []);
}

/** Deletes the partial file of an offer that is over. */
export async function deletePart(folder: string, id: string): Promise<void> {
  await rm(partOf(folder, id), { force: true });
}

export class ReceivedFile implements AsyncDisposable {
  readonly #folder: string;
  readonly #part: string;
  readonly #handle: FileHandle;
  #hash = new PrefixHash();

  private constructor(folder: string, part: string, handle: FileHandle) {
    this.#folder = folder;
    this.#part = part;
    this.#handle = handle;
  }

  /**
   * Opens the partial file of an offer, or creates it.
   * @param id identifies the offer; the next attempt finds the part with it
   * @throws SvcError `not_writable`
   */
  static async open(folder: string, id: string): Promise<ReceivedFile> {
    const part = partOf(folder, id);
    try {
      const flags = constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);
      const handle = await open(part, flags, 0o600);
      const file = new ReceivedFile(folder, part, handle);
      await file.#readAll();
      return file;
    } catch (error) {
      throw notWritable(part, error);
    }
  }

  async #readAll(): Promise<void> {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    for (;;) {
      const { bytesRead } = await this.#handle.read(buffer, 0, READ_BYTES, this.length);
      if (bytesRead === 0) return;
      this.#hash.update(buffer.subarray(0, bytesRead));
    }
  }

  /** Number of stored bytes. */
  get length(): number {
    return this.#hash.length;
  }

  /** @throws SvcError `not_writable` */
  async append(bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await this.#handle.write(bytes, at, bytes.length - at, this.length + at);
        at += bytesWritten;
      }
    } catch (error) {
      throw notWritable(this.#part, error);
    }
    this.#hash.update(bytes);
  }

  /** Deletes the stored bytes. @throws SvcError `not_writable` */
  async reset(): Promise<void> {
    await this.#truncate(0);
    this.#hash = new PrefixHash();
  }

  async #truncate(length: number): Promise<void> {
    try {
      await this.#handle.truncate(length);
    } catch (error) {
      throw notWritable(this.#part, error);
    }
  }

  /**
   * Compares the complete ranges with the hashes of the sender. From a wrong range on, the bytes are deleted.
   * @param size of the whole file, bytes
   * @returns whether they are right
   * @throws SvcError `not_writable`, and the errors of reading the hashes
   */
  async verify(hashes: Pick<PrefixHashes, 'at'>, size: number): Promise<boolean> {
    const right = await this.#hash.check(hashes, size);
    if (right === null) return true;
    await this.#truncate(right);
    const cut = this.#hash.cut(right);
    this.#hash = cut ?? new PrefixHash();
    if (cut === null) await this.#readAll();
    return false;
  }

  /** True if all bytes were verified. @param size of the whole file, bytes */
  isWhole(size: number): boolean {
    return this.length === size && this.#hash.isConfirmed(size);
  }

  /** SHA-256 of the stored bytes, lower-case hex. */
  digest(): string {
    return this.#hash.digest();
  }

  /**
   * Flushes the bytes to disk and gives the file its name, with a number if the name is in use.
   * @param mode file mode, before the umask
   * @returns its path
   * @throws SvcError `not_writable`
   */
  async finish(name: string, mode: number): Promise<string> {
    const plain = receivedName(name);
    try {
      await this.#handle.chmod(mode);
      await this.#handle.sync();
      for (let number = 0; number < MAX_NAMES; number++) {
        const target = join(this.#folder, numberedName(plain, number));
        if (!(await moveWithoutReplacing(this.#part, target))) continue;
        syncDirectory(this.#folder);
        return target;
      }
    } catch (error) {
      throw notWritable(join(this.#folder, plain), error);
    }
    throw new SvcError('not_writable', { message: `Too many files are named ${plain}.` });
  }

  /** Deletes the partial file. */
  async discard(): Promise<void> {
    await rm(this.#part, { force: true });
  }

  /** Closes the file. A part that is not empty stays for another attempt. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
    if (this.length === 0) await this.discard();
  }
}
