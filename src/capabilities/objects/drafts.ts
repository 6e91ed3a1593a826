/** A file that is read while it is hashed. */
import type { FileHandle } from 'node:fs/promises';
import { OBJECT_ID_BYTES, rangeCount } from '../../foundation/domain/objects.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { PrefixHash } from '../../foundation/prefix-hashes.ts';
import type { OfferedPart, OpenedBytes, OpenedObject } from './types.ts';

/** A file that is being hashed. */
export class Draft {
  readonly size: number;
  #readable = 0;
  #hash: PrefixHash | null = null;
  #file: (() => Promise<FileHandle>) | null = null;
  #error: SvcError | null = null;
  /** The hashes of the finished file. */
  #list: Buffer | null = null;
  #changed = Promise.withResolvers<void>();

  /** @param size bytes */
  constructor(size: number) {
    this.size = size;
  }

  /** Bytes that are hashed. */
  get hashed(): number {
    return this.#readable;
  }

  /**
   * Shows more of the file to its readers.
   * @param readable bytes from the start that can be read
   * @param open opens the file
   * @throws SvcError the error of `fail`, or `wrong_state` if the file is longer than announced
   */
  grow(readable: number, hash: PrefixHash, open: () => Promise<FileHandle>): void {
    if (this.#error !== null) throw this.#error;
    if (hash.length > this.size) throw changed();
    this.#readable = readable;
    this.#hash = hash;
    this.#file = open;
    this.#wake();
  }

  /** Ends the draft with the whole file. @param list see `PrefixHash.list` */
  finish(list: Buffer): void {
    this.#list = list;
    this.#readable = this.size;
    this.#wake();
  }

  /** Ends the draft. Readers get the error. */
  fail(error: SvcError): void {
    this.#error ??= error;
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Opens the file or its hashes. Reads wait until the bytes exist. */
  open(part: OfferedPart, tag: string, name: string): OpenedObject {
    const isIntact = async (): Promise<boolean> => {
      await this.#until(() => this.#list !== null);
      return true;
    };
    if (part === 'file') return { tag, name, size: this.size, handle: this.#fileBytes(), isIntact };
    return { tag, name, size: OBJECT_ID_BYTES * rangeCount(this.size), handle: this.#hashBytes(), isIntact };
  }

  #fileBytes(): OpenedBytes {
    let opening: Promise<FileHandle> | null = null;
    let isClosed = false;
    return {
      read: async (buffer, offset, length, position) => {
        await this.#until(() => this.#readable > position);
        if (isClosed) throw new SvcError('cancelled');
        opening ??= this.#file?.() ?? null;
        if (opening === null) throw new SvcError('gone');
        return (await opening).read(buffer, offset, Math.min(length, this.#readable - position), position);
      },
      [Symbol.asyncDispose]: async () => {
        isClosed = true;
        // A read may still be opening the file. It gets the error.
        const handle = await opening?.catch(() => null);
        await handle?.close();
      },
    };
  }

  #hashBytes(): OpenedBytes {
    return {
      read: async (buffer, offset, length, position) => {
        const index = Math.floor(position / OBJECT_ID_BYTES);
        // The last hash names the file, so it is shown when the file is known to be unchanged.
        const last = rangeCount(this.size) - 1;
        await this.#until(() => this.#list !== null || (index < last && (this.#hash?.ends().length ?? 0) > index));
        const known = this.#hash?.ends().slice(index, last) ?? [];
        const from = index * OBJECT_ID_BYTES;
        const bytes = this.#list?.subarray(from) ?? Buffer.concat(known);
        return { bytesRead: bytes.copy(buffer, offset, position - from, position - from + length) };
      },
      [Symbol.asyncDispose]: async () => {},
    };
  }

  async #until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      if (this.#error !== null) throw this.#error;
      await this.#changed.promise;
    }
    if (this.#error !== null) throw this.#error;
  }
}

function changed(): SvcError {
  return new SvcError('wrong_state', { message: 'The file changed while it was read. Send it again.' });
}
