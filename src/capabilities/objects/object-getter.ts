/** `group_object_get`: brings an object to a file below files_root. */
import { open, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../foundation/clock.ts';
import { codeOf, type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { KeyedMutex } from '../../foundation/keyed-mutex.ts';
import { READ_CAREFULLY } from './files-root.ts';
import { type HashedFile, hashFile, READ_BYTES } from './fingerprint.ts';
import type { Holders } from './holders.ts';
import type { ObjectService } from './object-service.ts';
import { PartFile, taken } from './part-file.ts';
import type { RemoteObjects } from './remote-objects.ts';
import { type Brought, type Failures, Transfer } from './transfer.ts';

/** Where objects go for which no place is named, below files_root. */
const DOWNLOADS = 'downloads';
/** What a download leaves free on the disk, bytes. */
export const MIN_FREE_BYTES = 128 * 1024 * 1024;
/** Downloads at once. */
export const MAX_DOWNLOADS = 16;

export interface GetRequest {
  /** The local agent that gets it. */
  readonly aid: Aid;
  readonly objectId: string;
  /** Absolute or below files_root; left out: `downloads/<object_id>`. */
  readonly dest?: string | undefined;
  /** Who may have it. */
  readonly hint?: Aid | undefined;
  /** Makes it an object of the agent, so that others can get it here. */
  readonly register: boolean;
  /** Gets it although it is here, and overwrites what has its name. */
  readonly force: boolean;
  readonly accessToken?: string | undefined;
  /** What it must be long, bytes, where that is known. */
  readonly size?: number | undefined;
  readonly signal: AbortSignal;
}

export interface ObjectGetterDependencies {
  readonly objects: ObjectService;
  readonly holders: Holders;
  readonly remote: RemoteObjects;
  readonly clock: Clock;
}

/** Which failure of several holders says most. */
const TELLING: readonly ErrorCode[] = ['access_denied', 'rate_limited', 'timeout', 'protocol_error', 'gone'];

export class ObjectGetter {
  readonly #deps: ObjectGetterDependencies;
  /** The last download of each object that is under way: two of the same would write to one file. */
  readonly #turns = new KeyedMutex();
  /** What has come of the downloads under way, by object. */
  readonly #parts = new Map<string, PartFile>();

  constructor(dependencies: ObjectGetterDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Gets an object. A download that fails or is cancelled is taken up by the next one.
   * @returns the absolute `path` of the file, and `from` whom it is: null where it was there already
   * @throws SvcError `files_root_required`, `not_found` where nobody is known to have it, `wrong_state` where its name is
   *   taken, `rate_limited`, `not_writable`, and why the holders failed
   */
  async get(request: GetRequest) {
    if (!this.#turns.has(request.objectId) && this.#turns.size >= MAX_DOWNLOADS)
      throw new SvcError('rate_limited', { message: `At most ${MAX_DOWNLOADS} objects are got at once.` });
    return this.#turns.run(request.objectId, () => this.#get(request));
  }

  /** Bytes that are here of an object whose download is under way; null where none is. */
  progress(objectId: string): number | null {
    return this.#parts.get(objectId)?.length ?? null;
  }

  async #get(request: GetRequest) {
    const { objects } = this.#deps;
    const { objectId, force, register, aid } = request;
    if (request.signal.aborted) throw new SvcError('cancelled');
    const { root } = objects.files();
    const target = await root.destination(request.dest ?? join(DOWNLOADS, objectId));
    const there = force ? null : await hashOf(target);
    if (there !== null && there.objectId !== objectId) throw taken(target);
    const from = there === null ? await this.#bring(request, target) : null;
    if (register) await objects.register(aid, target, from?.name);
    const size = there?.size ?? from?.size ?? 0;
    return { objectId, size, path: target, from: from?.from ?? null, registered: register };
  }

  async #bring(request: GetRequest, target: string): Promise<Brought & { readonly size: number }> {
    const { objects, holders, remote, clock } = this.#deps;
    const { aid, objectId, hint, size, accessToken, signal, force } = request;
    const { root } = objects.files();
    const part = await PartFile.open(join(root.parts, objectId));
    this.#parts.set(objectId, part);
    try {
      const failures: Failures = new Map();
      const own = force ? null : await this.#copyOwn(aid, objectId, part);
      const candidates = holders.candidates(aid, objectId, hint);
      const admit = (bytes: number): Promise<void> => checkRoom(root.parts, bytes);
      const wanted = { local: aid, objectId, holders: candidates, size, accessToken, signal };
      const transferred = own ?? (await new Transfer({ remote, clock, admit }, wanted, part).run(failures));
      // `force` prefers another copy to the agent's own one, and takes that if there is no other.
      const brought = transferred ?? (force ? await this.#copyOwn(aid, objectId, part) : null);
      for (const [holder, { code }] of failures)
        if (code === 'not_found' || code === 'gone') holders.learn(objectId, holder, false);
      if (brought === null) throw failureOf(failures);
      await part.moveTo(target, force, () => root.checkDestination(target));
      if (brought.from !== aid) holders.learn(objectId, brought.from, true);
      return { ...brought, size: part.length };
    } finally {
      this.#parts.delete(objectId);
      await part.close();
    }
  }

  /** Copies what the agent has itself; null where it has none, or no longer. */
  async #copyOwn(aid: Aid, objectId: string, part: PartFile): Promise<Brought | null> {
    const object = await this.#deps.objects.open(aid, objectId).catch(nullWhereAbsent);
    if (object === null) return null;
    await using handle = object.handle;
    await part.reset();
    for (;;) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, part.length);
      if (bytesRead === 0) break;
      await part.append(buffer.subarray(0, bytesRead));
    }
    if (part.is(objectId)) return { from: aid, name: object.name };
    await part.reset();
    return null;
  }
}

/** Null where an object could not be opened because it is not here, or no longer. */
function nullWhereAbsent(error: unknown): null {
  if (error instanceof SvcError && (error.code === 'not_found' || error.code === 'gone')) return null;
  throw error;
}

/** @throws SvcError `not_writable` where the disk has no room for so many bytes */
async function checkRoom(directory: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bytes + MIN_FREE_BYTES <= bavail * bsize) return;
  throw new SvcError('not_writable', {
    message: 'The disk of files_root has no room for this object.',
    details: { object_bytes: bytes },
  });
}

/** What the file that has a name holds; null where none has. */
async function hashOf(file: string): Promise<HashedFile | null> {
  await using handle = await open(file, READ_CAREFULLY).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw taken(file);
  });
  if (handle === null) return null;
  const hashed = (await handle.stat()).isFile() ? await hashFile(handle) : null;
  if (hashed === null) throw taken(file);
  return hashed;
}

/** What the failures of all holders come to. */
function failureOf(failures: Failures): SvcError {
  const errors = [...failures.values()];
  const [first] = errors;
  if (first === undefined)
    throw new SvcError('not_found', {
      thing: 'object',
      message: 'Nobody is known to have this object: name a holder with hint_aid.',
    });
  const telling = TELLING.map((code) => errors.find((error) => error.code === code)).find(
    (error) => error !== undefined,
  );
  const { code, message } = telling ?? first;
  const holders = [...failures].map(([aid, error]) => ({ aid, error: error.code }));
  return new SvcError(code, { message, details: { holders } });
}
