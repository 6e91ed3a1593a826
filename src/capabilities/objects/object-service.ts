/** The objects of the local agents: bytes by their SHA-256, stored below files_root or registered in place. */
import { existsSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { safeName } from '../../foundation/file-name.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import type { ObjectRepository, ObjectRow } from '../../foundation/store/objects.ts';
import { BlobStore, type Incoming } from './blob-store.ts';
import type { Draft } from './drafts.ts';
import { FilesRoot } from './files-root.ts';
import { fingerprintOf, hashFile, isRacy } from './fingerprint.ts';
import { type ObjectQuota, QuotaLedger } from './quota.ts';
import { type OpenedFile, RegisteredFiles } from './registered-files.ts';
import { type ObjectInfo, type ObjectSource, objectUrl } from './types.ts';

export interface ObjectServiceOptions {
  /** The folder. Created when it is first needed. If empty, objects are disabled. */
  readonly filesRoot: string;
  readonly quota?: Partial<ObjectQuota>;
}

/** A file below files_root that is being hashed. */
interface HashedPart {
  readonly aid: Aid;
  /** Below files_root. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Bytes hashed so far. */
  hashed: number;
}

interface MadeInfo extends ObjectInfo {
  /** The agent did not have the object before. */
  readonly isNew: boolean;
}

/** Everything that needs the folder. */
export interface ObjectFiles {
  readonly root: FilesRoot;
  readonly blobs: BlobStore;
  readonly registered: RegisteredFiles;
}

export class ObjectService implements Component {
  readonly #repository: ObjectRepository;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #quota: QuotaLedger;
  readonly #stored = new Listeners<[Aid, string]>();
  /** Files below files_root that are being hashed. */
  readonly #hashing = new Set<HashedPart>();
  #filesRoot: string;
  #files: ObjectFiles | null = null;

  constructor(options: ObjectServiceOptions, repository: ObjectRepository, clock: Clock, log: Log) {
    this.#filesRoot = options.filesRoot;
    this.#repository = repository;
    this.#clock = clock;
    this.#log = log.child('objects');
    this.#quota = new QuotaLedger((aid) => repository.usage(aid), options.quota);
  }

  /**
   * Opens the folder and removes temporary files after a crash. If the folder is not usable, the rest of the daemon
   * still runs.
   */
  async start(): Promise<void> {
    this.#tidy();
  }

  /**
   * Switches to another folder. Stored objects remain in the old folder, and current transfers finish there.
   * @param filesRoot if empty, objects are disabled
   */
  use(filesRoot: string): void {
    this.#filesRoot = filesRoot;
    this.#files = null;
    this.#tidy();
  }

  /**
   * Registers a listener for new objects. It is called before the object is stored. Returns a function that removes it.
   */
  onStored(listener: (aid: Aid, objectId: string) => void): () => void {
    return this.#stored.add(listener);
  }

  /** The number of objects of all local agents. */
  count(): number {
    return this.#repository.count();
  }

  #tidy(): void {
    // The folder is not created before it is needed.
    if (this.#filesRoot === '' || !existsSync(this.#filesRoot)) return;
    try {
      const { root, blobs } = this.#open();
      blobs.clean(this.#clock.now());
      for (const objectId of this.#repository.retired()) this.#discard(blobs, objectId);
      this.#log.info({ files_root: root.path }, 'objects are enabled');
    } catch (error) {
      this.#log.warn({ files_root: this.#filesRoot, err: error }, 'files_root cannot be used');
    }
  }

  async stop(): Promise<void> {
    this.#files = null;
  }

  /**
   * The opened folder.
   * @throws SvcError `files_root_required`, `not_writable`
   */
  files(): ObjectFiles {
    if (this.#filesRoot === '') throw new SvcError('files_root_required');
    return this.#files ?? this.#open();
  }

  #open(): ObjectFiles {
    const root = FilesRoot.open(this.#filesRoot);
    const blobs = new BlobStore(root);
    const registered = new RegisteredFiles(root, blobs, this.#repository, this.#clock);
    this.#files = { root, blobs, registered };
    return this.#files;
  }

  /**
   * Creates an object of an agent from a local file or from bytes.
   * @throws SvcError `files_root_required`, `not_found`, `invalid_request`, `quota_exceeded`, `not_writable`
   */
  put(aid: Aid, source: ObjectSource, name?: string): Promise<ObjectInfo> {
    return 'path' in source ? this.register(aid, source.path, name) : this.store(aid, [source.bytes], name);
  }

  /**
   * Stores a byte stream. When this resolves, the object is on disk and in the database.
   * @param expected the size if known, so that an object over the quota is rejected before the first byte
   * @param draft shows the bytes while they arrive. They must have its size. The object is stored for an offer only
   * @throws SvcError `files_root_required`, `quota_exceeded`, `not_writable`, and the errors of the source
   */
  async store(
    aid: Aid,
    source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    name?: string,
    expected = 0,
    draft?: Draft,
  ): Promise<MadeInfo> {
    const { blobs } = this.files();
    using room = this.#quota.reserve(aid);
    let ahead = expected;
    room.add(expected);
    const incoming = await blobs.receive(
      source,
      (bytes) => {
        const covered = Math.min(ahead, bytes);
        ahead -= covered;
        room.add(bytes - covered);
      },
      draft,
    );
    try {
      if (draft !== undefined && incoming.size !== draft.size) throw changedFile();
      const isNew = this.#repository.get(aid, incoming.objectId) === null;
      if (isNew) room.confirm();
      const info = this.#keep(aid, incoming, blobs, name, draft === undefined);
      draft?.finish(incoming.prefixes);
      return { ...info, isNew };
    } catch (error) {
      await blobs.discard(incoming);
      throw error;
    }
  }

  /** Renames received bytes and stores their row, in one turn of the event loop. */
  #keep(aid: Aid, incoming: Incoming, blobs: BlobStore, name: string | undefined, isSeparate: boolean): ObjectInfo {
    const { objectId, size, prefixes } = incoming;
    const now = this.#clock.now();
    this.#repository.expectBytes(objectId);
    const fingerprint = blobs.commit(incoming);
    const shown = safeName(name, objectId);
    if (isSeparate) this.#stored.notify(aid, objectId);
    const row = { aid, objectId, size, name: shown, createdAt: now, path: null, fingerprint, hashedAt: now };
    this.#repository.put(row, prefixes);
    return infoOf(row);
  }

  /**
   * Registers a file below files_root as an object without copying it.
   * @param draft shows the file while it is hashed. It must have its size. The object is registered for an offer only
   * @throws SvcError `files_root_required`, `not_found`, `invalid_request`, `wrong_state` if it changes meanwhile,
   *   `quota_exceeded`
   */
  async register(aid: Aid, path: string, name?: string, draft?: Draft): Promise<MadeInfo> {
    const { root } = this.files();
    using room = this.#quota.reserve(aid);
    const file = await root.open(path);
    await using handle = file.handle;
    const hashedAt = this.#clock.now();
    const show = async (): Promise<FileHandle> => (await root.open(file.path)).handle;
    const part = { aid, path: file.path, size: (await handle.stat()).size, hashed: 0 };
    this.#hashing.add(part);
    const hashed = await hashFile(handle, (hash) => {
      part.hashed = hash.length;
      draft?.grow(hash.length, hash, show);
    }).finally(() => this.#hashing.delete(part));
    if (hashed === null || (draft !== undefined && hashed.size !== draft.size)) throw changedFile(path);
    const { objectId, size, fingerprint, prefixes } = hashed;
    const known = this.#repository.get(aid, objectId);
    // Stored bytes are preferred to a file that other programs can change.
    if (known !== null && known.path === null) {
      draft?.finish(prefixes);
      return { ...infoOf(known), isNew: false };
    }
    const shown = safeName(name ?? file.path, objectId);
    const createdAt = known?.createdAt ?? hashedAt;
    const row: ObjectRow = { aid, objectId, size, name: shown, createdAt, path: file.path, fingerprint, hashedAt };
    if (known === null) room.confirm();
    if (draft === undefined) this.#stored.notify(aid, objectId);
    this.#repository.put(row, prefixes);
    draft?.finish(prefixes);
    return { ...infoOf(row), isNew: known === null };
  }

  /**
   * Looks at a file below files_root, without reading it.
   * @returns its object if the file is registered and unchanged
   * @throws SvcError `files_root_required`, `not_found`, `invalid_request`
   */
  async find(aid: Aid, path: string) {
    const file = await this.files().root.open(path);
    await using handle = file.handle;
    const stats = await handle.stat({ bigint: true });
    const row = this.#repository.at(aid, file.path);
    const isKnown = row?.fingerprint === fingerprintOf(stats) && !isRacy(stats, row.hashedAt);
    return { size: Number(stats.size), name: basename(file.path), objectId: isKnown ? row.objectId : null };
  }

  /**
   * The prefix hashes of an object of an agent, see `PrefixHash.list`.
   * @throws SvcError `not_found`
   */
  prefixes(aid: Aid, objectId: string): Buffer {
    const hashes = this.#repository.get(aid, objectId) === null ? null : this.#repository.prefixes(objectId);
    if (hashes === null) throw noSuchObject(objectId);
    return hashes;
  }

  /** An object of a local agent, or null. */
  stat(aid: Aid, objectId: string): ObjectInfo | null {
    const row = this.#repository.get(aid, objectId);
    return row === null ? null : infoOf(row);
  }

  /** Stores an agent as a holder of an object, to query it first later. */
  noteHolder(objectId: string, holder: Aid): void {
    this.#repository.addHolder(objectId, holder, this.#clock.now());
  }

  /** The objects of an agent by ID, with its usage and its quota, and the files that are being hashed for it. */
  list(aid: Aid, limit: number, after?: string) {
    const rows = this.#repository.list(aid, limit, after);
    const objects = rows.map((row) => ({ ...infoOf(row), createdAt: row.createdAt, path: row.path }));
    const hashing = [...this.#hashing].filter((part) => part.aid === aid);
    return { objects, usage: this.#repository.usage(aid), quota: this.#quota.quota, hashing };
  }

  /**
   * Deletes an object of an agent. Stored bytes are deleted with the last agent that has them. A file registered in
   * place remains.
   * @throws SvcError `not_found`
   */
  delete(aid: Aid, objectId: string): void {
    if (!this.#repository.delete(aid, objectId)) throw noSuchObject(objectId);
    if (this.#repository.isStored(objectId)) return;
    if (this.#filesRoot === '') return;
    try {
      this.#discard(this.files().blobs, objectId);
    } catch (error) {
      // The next start removes them.
      this.#log.warn({ object_id: objectId, err: error }, 'the bytes of a deleted object could not be removed');
    }
  }

  #discard(blobs: BlobStore, objectId: string): void {
    blobs.remove(objectId);
    this.#repository.removeRetired(objectId);
  }

  /** Deletes all objects of a deleted agent. */
  forgetAgent(aid: Aid): void {
    for (;;) {
      const rows = this.#repository.list(aid, 100);
      for (const { objectId } of rows) this.delete(aid, objectId);
      if (rows.length === 0) return;
    }
  }

  /**
   * Opens an object of an agent. The caller must have checked access.
   * @throws SvcError `not_found`, `gone`
   */
  async open(aid: Aid, objectId: string): Promise<OpenedFile> {
    const row = this.#filesRoot === '' ? null : this.#repository.get(aid, objectId);
    if (row === null) throw noSuchObject(objectId);
    return await this.files().registered.open(row);
  }
}

function changedFile(path?: string): SvcError {
  return new SvcError('wrong_state', {
    message: 'The file changed while it was read. Try again.',
    ...(path === undefined ? {} : { details: { path } }),
  });
}

function noSuchObject(objectId: string): SvcError {
  return new SvcError('not_found', {
    thing: 'object',
    message: 'This agent does not have this object.',
    details: { object_id: objectId },
  });
}

function infoOf({ aid, objectId, size, name }: Pick<ObjectRow, 'aid' | 'objectId' | 'size' | 'name'>): ObjectInfo {
  return { objectId, size, name, url: objectUrl(aid, objectId) };
}
