/** `group_object_get`: downloads an object to a file below files_root. */
import { open, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../foundation/clock.ts';
import { KeyedMutex } from '../../foundation/concurrency.ts';
import { type HolderStatus, MAX_HOLDERS_PER_OBJECT } from '../../foundation/domain/objects.ts';
import { codeOf, type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { ObjectRepository } from '../../foundation/store/objects.ts';
import { fileExistsError, PartFile } from './file-sink.ts';
import { SAFE_READ_FLAGS } from './files-root.ts';
import { type HashedFile, hashFile, READ_BYTES } from './fingerprint.ts';
import type { ObjectService } from './object-service.ts';
import {
  type OfferedFile,
  objectResource,
  offeredHashes,
  offeredResource,
  type RemoteObjects,
} from './remote-objects.ts';
import { type BytesCheck, type Downloaded, type Failures, Transfer, WrongRange } from './transfer.ts';
import type { ObjectInfo } from './types.ts';

/** Default folder of downloads, below files_root. */
const DOWNLOADS = 'downloads';
/** Free space that a download must leave on the disk, bytes. */
export const MIN_FREE_BYTES = 128 * 1024 * 1024;
/** Limit of concurrent downloads. */
export const MAX_DOWNLOADS = 16;

export interface GetRequest {
  /** The local agent that downloads. */
  readonly aid: Aid;
  readonly objectId: string;
  /** Absolute or relative to files_root. Default: `downloads/<object_id>`. */
  readonly dest?: string | undefined;
  /** An agent that may have the object. */
  readonly hint?: Aid | undefined;
  /** Registers the file as an object of the agent, so that others can get it here. */
  readonly register: boolean;
  /** Downloads even if the agent has the object, and overwrites an existing file. */
  readonly force: boolean;
  readonly accessToken?: string | undefined;
  /** The required size, bytes, if known. */
  readonly size?: number | undefined;
  readonly signal: AbortSignal;
}

/** An offered file to download. */
export interface OfferedRequest extends OfferedFile {
  /** SHA-256 of the file, if known. */
  readonly objectId: string | null;
  /** Absolute or relative to files_root. */
  readonly dest: string;
}

/** If several holders fail, the first of these codes is reported. */
const ERROR_PRIORITY: readonly ErrorCode[] = ['access_denied', 'rate_limited', 'timeout', 'protocol_error', 'gone'];

export class ObjectGetter {
  readonly #objects: ObjectService;
  readonly #holders: Holders;
  readonly #remote: RemoteObjects;
  readonly #clock: Clock;
  readonly #freeBytes: (directory: string) => Promise<number>;
  /** Serializes downloads of the same object, because they use the same temporary file. */
  readonly #turns = new KeyedMutex();
  /** Downloads in progress, by object ID or `offeredKey`. */
  readonly #parts = new Map<string, PartFile>();

  /** @param freeBytes the free disk space of a directory */
  constructor(
    objects: ObjectService,
    holders: Holders,
    remote: RemoteObjects,
    clock: Clock,
    freeBytes: (directory: string) => Promise<number> = freeBytesOf,
  ) {
    this.#objects = objects;
    this.#holders = holders;
    this.#remote = remote;
    this.#clock = clock;
    this.#freeBytes = freeBytes;
  }

  /**
   * Downloads an object. A failed or canceled download is continued by the next one.
   * @returns the absolute `path` of the file, and the holder (`from`), or null if the file already existed
   * @throws SvcError `files_root_required`, `not_found` if no holder is known, `wrong_state` if another file has its
   *   name, `rate_limited`, `not_writable`, and the errors of the holders
   */
  async get(request: GetRequest) {
    return await this.#inTurn(request.objectId, () => this.#get(request));
  }

  /**
   * Downloads an offered file from its sender, and compares each range with its hash when it arrives. A failed or
   * canceled download is continued by the next one.
   * @returns the absolute path of the file, and its SHA-256
   * @throws SvcError `files_root_required`, `wrong_state` if another file has its name, `protocol_error` if a range is
   *   wrong each time, `rate_limited`, `not_writable`, and the errors of the sender
   */
  async getOffered(request: OfferedRequest) {
    const key = offeredKey(request.local, request.id);
    return await this.#inTurn(key, () => this.#getOffered(request, key));
  }

  #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (!this.#turns.has(key) && this.#turns.size >= MAX_DOWNLOADS)
      throw new SvcError('rate_limited', { message: `At most ${MAX_DOWNLOADS} downloads can run at the same time.` });
    return this.#turns.run(key, work);
  }

  /** Downloaded bytes of an object or an offered file, or null if it is not being downloaded. */
  progress(key: string): number | null {
    return this.#parts.get(key)?.length ?? null;
  }

  async #getOffered(request: OfferedRequest, key: string) {
    const { local, holder, id, size, objectId, signal } = request;
    if (signal.aborted) throw new SvcError('cancelled');
    const { root } = this.#objects.files();
    const target = await root.destination(request.dest);
    const there = await hashExisting(target);
    if (there !== null && there.objectId !== objectId) throw fileExistsError(target);
    if (there !== null) return { path: target, objectId: there.objectId };
    const part = await PartFile.open(join(root.parts, key));
    this.#parts.set(key, part);
    const hashes = offeredHashes(this.#remote, request);
    const check: BytesCheck = {
      arrived: async (file) => {
        if (!(await file.verify(hashes, size))) throw new WrongRange();
      },
      stop: () => hashes.close(),
      isWhole: (file) => file.hash.isConfirmed(size) && (objectId === null || file.is(objectId)),
    };
    try {
      const failures: Failures = new Map();
      const resource = offeredResource(id, 'file');
      const wanted = { local, resource, check, holders: [holder], size, signal };
      const admit = async (bytes: number): Promise<void> => checkFreeSpace(await this.#freeBytes(root.parts), bytes);
      const got = await new Transfer(this.#remote, this.#clock, admit, wanted, part).run(failures);
      if (got === null) throw combinedError(failures);
      await part.moveTo(target, false, () => root.checkDestination(target));
      return { path: target, objectId: part.digest() };
    } finally {
      hashes.close();
      this.#parts.delete(key);
      await part.close();
    }
  }

  async #get(request: GetRequest) {
    const { objectId, force, register, aid } = request;
    if (request.signal.aborted) throw new SvcError('cancelled');
    const { root } = this.#objects.files();
    const target = await root.destination(request.dest ?? join(DOWNLOADS, objectId));
    const there = force ? null : await hashExisting(target);
    if (there !== null && there.objectId !== objectId) throw fileExistsError(target);
    const from = there === null ? await this.#download(request, target) : null;
    if (register) await this.#objects.register(aid, target, from?.name);
    const size = there?.size ?? from?.size ?? 0;
    return { objectId, size, path: target, from: from?.from ?? null, registered: register };
  }

  async #download(request: GetRequest, target: string): Promise<Downloaded & { readonly size: number }> {
    const { aid, objectId, hint, size, accessToken, signal, force } = request;
    const { root } = this.#objects.files();
    const part = await PartFile.open(join(root.parts, objectId));
    this.#parts.set(objectId, part);
    try {
      const failures: Failures = new Map();
      const own = force ? null : await this.#copyOwn(aid, objectId, part);
      const candidates = this.#holders.candidates(aid, objectId, hint);
      const admit = async (bytes: number): Promise<void> => checkFreeSpace(await this.#freeBytes(root.parts), bytes);
      const check: BytesCheck = { isWhole: (file) => file.is(objectId) };
      const resource = objectResource(objectId);
      const wanted = { local: aid, resource, check, holders: candidates, size, accessToken, signal };
      const transferred = own ?? (await new Transfer(this.#remote, this.#clock, admit, wanted, part).run(failures));
      // `force` prefers a copy of another agent. Without any, the agent's own copy is used.
      const brought = transferred ?? (force ? await this.#copyOwn(aid, objectId, part) : null);
      for (const [holder, { code }] of failures)
        if (code === 'not_found' || code === 'gone') this.#holders.learn(objectId, holder, false);
      if (brought === null) throw combinedError(failures);
      await part.moveTo(target, force, () => root.checkDestination(target));
      if (brought.from !== aid) this.#holders.learn(objectId, brought.from, true);
      return { ...brought, size: part.length };
    } finally {
      this.#parts.delete(objectId);
      await part.close();
    }
  }

  /** Copies the agent's own object. Null if it has none or the file has changed. */
  async #copyOwn(aid: Aid, objectId: string, part: PartFile): Promise<Downloaded | null> {
    const object = await this.#objects.open(aid, objectId).catch(nullIfAbsent);
    if (object === null) return null;
    await using handle = object.handle;
    await part.reset();
    for (;;) {
      const buffer = Buffer.allocUnsafe(READ_BYTES);
      const { bytesRead } = await handle.read(buffer, 0, READ_BYTES, part.length);
      if (bytesRead === 0) break;
      await part.append(buffer.subarray(0, bytesRead));
    }
    if (part.is(objectId)) return { from: aid, name: object.name };
    await part.reset();
    return null;
  }
}

/** Names the temporary file of an offered file. Other agents choose the IDs of offers, so they are no names alone. */
export function offeredKey(aid: Aid, offerId: string): string {
  return `${aid}-${offerId}`;
}

/** Null for an error that means that the object is not here. */
function nullIfAbsent(error: unknown): null {
  if (error instanceof SvcError && (error.code === 'not_found' || error.code === 'gone')) return null;
  throw error;
}

async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** @throws SvcError `not_writable` if the disk has not enough free space */
function checkFreeSpace(free: number, bytes: number): void {
  if (bytes + MIN_FREE_BYTES <= free) return;
  throw new SvcError('not_writable', {
    message: 'The disk of files_root does not have enough free space for this object.',
    details: { object_bytes: bytes },
  });
}

/** Size and hash of an existing file, or null if there is none. */
async function hashExisting(file: string): Promise<HashedFile | null> {
  await using handle = await open(file, SAFE_READ_FLAGS).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw fileExistsError(file);
  });
  if (handle === null) return null;
  const hashed = (await handle.stat()).isFile() ? await hashFile(handle) : null;
  if (hashed === null) throw fileExistsError(file);
  return hashed;
}

/** Combines the errors of all holders. */
function combinedError(failures: Failures): SvcError {
  const errors = [...failures.values()];
  const [first] = errors;
  if (first === undefined)
    throw new SvcError('not_found', {
      thing: 'object',
      message: 'No holder of this object is known. Name one with hint_aid.',
    });
  const telling = ERROR_PRIORITY.map((code) => errors.find((error) => error.code === code)).find(
    (error) => error !== undefined,
  );
  const { code, message } = telling ?? first;
  const holders = [...failures].map(([aid, error]) => ({ aid, error: error.code }));
  return new SvcError(code, { message, details: { holders } });
}

// Finds the holders of an object.

/** Timeout for one holder, milliseconds. */
const ASK_TIMEOUT_MS = 10_000;

interface HolderView {
  readonly aid: Aid;
  readonly status: HolderStatus;
  /** The size that the holder reports. Absent if it does not have the object. */
  readonly size?: number;
  readonly name?: string;
}

const STATUS_OF: Partial<Record<ErrorCode, HolderStatus>> = {
  access_denied: 'denied',
  not_found: 'not_found',
  gone: 'gone',
};

export class Holders {
  readonly #repository: ObjectRepository;
  readonly #remote: RemoteObjects;
  readonly #objects: { stat(aid: Aid, objectId: string): ObjectInfo | null };
  readonly #clock: Clock;

  constructor(
    repository: ObjectRepository,
    remote: RemoteObjects,
    objects: { stat(aid: Aid, objectId: string): ObjectInfo | null },
    clock: Clock,
  ) {
    this.#repository = repository;
    this.#remote = remote;
    this.#objects = objects;
    this.#clock = clock;
  }

  /** Agents that may have an object, most likely first: the hint, earlier holders, other local agents. */
  candidates(aid: Aid, objectId: string, hint?: Aid): readonly Aid[] {
    const all = [
      ...(hint === undefined ? [] : [hint]),
      ...this.#repository.holders(objectId),
      ...this.#repository.agentsWith(objectId, MAX_HOLDERS_PER_OBJECT),
    ];
    return [...new Set(all)].filter((one) => one !== aid).slice(0, MAX_HOLDERS_PER_OBJECT);
  }

  /** Stores whether an agent has the object. */
  learn(objectId: string, holder: Aid, has: boolean): void {
    if (has) this.#repository.addHolder(objectId, holder, this.#clock.now());
    else this.#repository.removeHolder(objectId, holder);
  }

  /**
   * Queries all candidates concurrently, without reading the object.
   * @returns the agent's own object, and the answers
   */
  async locate(aid: Aid, objectId: string, hint: Aid | undefined, signal: AbortSignal) {
    const asked = this.candidates(aid, objectId, hint).map((holder) => this.#ask(aid, holder, objectId, signal));
    return { local: this.#objects.stat(aid, objectId), holders: await Promise.all(asked) };
  }

  async #ask(local: Aid, holder: Aid, objectId: string, outer: AbortSignal): Promise<HolderView> {
    using limit = awakeTimeout(this.#clock, ASK_TIMEOUT_MS, outer);
    try {
      const resource = objectResource(objectId);
      const request = { local, holder, resource, method: 'HEAD', headers: {}, signal: limit.signal } as const;
      const { body, size, name } = await this.#remote.read(request);
      body.resume();
      this.learn(objectId, holder, true);
      return { aid: holder, status: 'available', size, name };
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      if (error.code === 'not_found' || error.code === 'gone') this.learn(objectId, holder, false);
      return { aid: holder, status: STATUS_OF[error.code] ?? 'unreachable' };
    }
  }
}
