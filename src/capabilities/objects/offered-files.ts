/**
 * Files that are offered to other agents. A file is offered before it is hashed: while the daemon hashes it, the
 * recipient reads the part that is hashed already.
 */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Draft } from './drafts.ts';
import type { ObjectService } from './object-service.ts';
import type { OfferedPart, OpenedBytes, OpenedObject } from './types.ts';

/** Bytes in memory. */
function memoryBytes(bytes: Buffer): OpenedBytes {
  return {
    read: async (buffer, offset, length, position) => ({
      bytesRead: bytes.copy(buffer, offset, position, position + length),
    }),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** A file that became an object. */
interface MadeObject {
  readonly objectId: string;
  /** The agent did not have it before. */
  readonly isNew: boolean;
}

export class OfferedFiles {
  readonly #objects: ObjectService;
  readonly #objectOf: (aid: Aid, id: string) => string | null;
  /** By agent and offer. */
  readonly #drafts = new Map<string, Draft>();

  /** @param objectOf the object of an offer by a local agent; null if its file is not hashed */
  constructor(objects: ObjectService, objectOf: (aid: Aid, id: string) => string | null) {
    this.#objects = objects;
    this.#objectOf = objectOf;
  }

  /**
   * Looks at a file below files_root, without reading it.
   * @returns its object if it is registered and unchanged
   * @throws SvcError `files_root_required`, `not_found`, `invalid_request`
   */
  find(
    aid: Aid,
    path: string,
  ): Promise<{ readonly size: number; readonly name: string; readonly objectId: string | null }> {
    return this.#objects.find(aid, path);
  }

  /** Announces the file of an offer. Readers wait for it. @param size bytes */
  begin(aid: Aid, id: string, size: number): void {
    this.#drafts.set(keyOf(aid, id), new Draft(size));
  }

  /** Hashed bytes of the file of an offer; null if it is not being hashed. */
  hashed(aid: Aid, id: string): number | null {
    return this.#drafts.get(keyOf(aid, id))?.hashed ?? null;
  }

  /**
   * Registers a file below files_root for an offer that was begun.
   * @throws SvcError `wrong_state` if it changes meanwhile, the error of `cancel`, and the errors of `ObjectService.register`
   */
  register(aid: Aid, id: string, path: string, name: string): Promise<MadeObject> {
    return this.#make(aid, id, (draft) => this.#objects.register(aid, path, name, draft));
  }

  /**
   * Stores the bytes of a client for an offer that was begun.
   * @throws SvcError `wrong_state` if they have another size, the error of `cancel`, and the errors of `ObjectService.store`
   */
  store(aid: Aid, id: string, source: AsyncIterable<Uint8Array>, name: string): Promise<MadeObject> {
    return this.#make(aid, id, (draft) => this.#objects.store(aid, source, name, draft.size, draft));
  }

  async #make(aid: Aid, id: string, make: (draft: Draft) => Promise<MadeObject>): Promise<MadeObject> {
    const key = keyOf(aid, id);
    const draft = this.#drafts.get(key);
    if (draft === undefined) throw new SvcError('wrong_state', { message: 'The offer has ended.' });
    try {
      return await make(draft);
    } catch (error) {
      draft.fail(error instanceof SvcError ? error : new SvcError('internal', { cause: error }));
      throw error;
    }
  }

  /** The object is stored in the offer, so new readers get it from there. */
  finish(aid: Aid, id: string): void {
    this.#drafts.delete(keyOf(aid, id));
  }

  /** Stops hashing the file of an offer. Its readers get the error. */
  cancel(aid: Aid, id: string, error: SvcError): void {
    const key = keyOf(aid, id);
    this.#drafts.get(key)?.fail(error);
    this.#drafts.delete(key);
  }

  /**
   * Opens the file of an offer of a local agent, or its hashes. The caller must have checked access.
   * @throws SvcError `not_found`, `gone`
   */
  async open(aid: Aid, id: string, part: OfferedPart): Promise<OpenedObject> {
    const tag = part === 'file' ? id : `${id}-hashes`;
    const objectId = this.#objectOf(aid, id);
    const draft = this.#drafts.get(keyOf(aid, id));
    if (objectId === null && draft !== undefined) return draft.open(part, tag, id);
    if (objectId === null) throw new SvcError('not_found');
    if (part === 'file') return { ...(await this.#objects.open(aid, objectId)), tag };
    const hashes = this.#objects.prefixes(aid, objectId);
    return { tag, name: id, size: hashes.length, handle: memoryBytes(hashes), isIntact: async () => true };
  }
}

function keyOf(aid: Aid, id: string): string {
  return `${aid} ${id}`;
}
