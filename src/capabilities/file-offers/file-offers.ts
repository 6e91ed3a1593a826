/**
 * File offers between agents: a file of the sender, and a sealed note that describes it. The note waits in the network
 * while the recipient is offline. The recipient reads the bytes from the sender when it accepts the offer. The offer is
 * made before the file is hashed. The recipient reads the part that is hashed already. See docs/files.md.
 */

import { join } from 'node:path';
import type { JitteredBackoff } from '../../foundation/backoff.ts';
import type { Timer } from '../../foundation/clock.ts';
import { KeyedMutex, Semaphore, WorkUnderWay } from '../../foundation/concurrency.ts';
import {
  FILE_OFFER_LIFE_MS,
  type FileOfferDirection,
  MAX_OFFERED_BYTES,
  MAX_OPEN_OFFERS,
  MAX_OPEN_OFFERS_MADE,
  MAX_OPEN_OFFERS_OF_STRANGERS,
  MAX_OPEN_OFFERS_PER_SENDER,
} from '../../foundation/domain/file-offers.ts';
import { NOTE_TYPE, type NoteOutcome } from '../../foundation/domain/notes.ts';
import { rangeCount } from '../../foundation/domain/objects.ts';
import { REPEAT_MS } from '../../foundation/domain/time.ts';
import { DueQueue, type NetworkState } from '../../foundation/due-queue.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import { causeOf, type EventSink } from '../../foundation/events.ts';
import { numberedName, receivedName } from '../../foundation/file-name.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import type { PrefixHashes } from '../../foundation/prefix-hashes.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { FileOfferRow, FileOfferStore } from '../../foundation/store/file-offers.ts';
import type { OfferAccess } from './offer-access.ts';
import type {
  FileOffer,
  FileToRead,
  MadeObject,
  OfferedBytes,
  OfferFiles,
  OfferNote,
  OfferNotes,
  OfferObjects,
  OfferRequest,
  OfferSource,
  OfferSources,
} from './types.ts';
import { decodeEndNotice, decodeOffer, encodeEndNotice, encodeOffer, type OfferEnd } from './wire.ts';

/** Interval of the check for expired offers and pending notifications, milliseconds. */
const OFFERS_TICK_MS = 15_000;
/** A client must begin to send the file of an offer in this time, milliseconds. */
export const UPLOAD_START_MS = 60_000;
/** Files below files_root that are hashed at the same time. Others wait. */
const MAX_CONCURRENT_HASHES = 2;
/** Milliseconds until a notice of the end of an offer is sent again. */
const RETRY: JitteredBackoff = { firstMs: 30_000, maxMs: 3600_000, jitter: 0.3 };
/** Notices that are sent concurrently, in total and to one agent. */
const CONCURRENT_NOTICES = { total: 8, perKey: 2 } as const;
/** Offers that expire in one step. */
const BATCH = 64;

export interface FileOffersDependencies extends RandomParts {
  readonly store: FileOfferStore;
  readonly notes: OfferNotes;
  readonly objects: OfferObjects;
  readonly files: OfferFiles;
  readonly offered: OfferAccess;
  readonly events: EventSink;
  readonly network?: NetworkState;
  /** Whether an agent is registered on this node. */
  readonly isHere: (aid: Aid) => boolean;
  /** Whether the owner of an agent has blocked another one, in the access list or in chat. */
  readonly isBlocked: (aid: Aid, peer: Aid) => boolean;
  /** Whether the owner of an agent has labeled another one, or allowed it by name. */
  readonly isKnown: (aid: Aid, peer: Aid) => boolean;
  /** Checks again whether current readers of an agent's objects may continue. */
  readonly recheck: (aid: Aid) => void;
  /** Returns a new unique ID, hex. */
  readonly newId: () => string;
}

/** An offer, and whether the recipient's node has received it. */
interface OfferMade {
  readonly offer: FileOffer;
  readonly delivered: boolean;
}

/** An offer that a client made. */
export interface PostedOffer extends OfferMade {
  /** Call it once, with whether the client received the result. */
  readonly settle: (heard: boolean) => void;
}

/** Errors that leave open whether the recipient has the note. */
const UNCERTAIN: ReadonlySet<string> = new Set(['timeout', 'not_acknowledged']);

export class FileOffers implements Component {
  readonly #deps: FileOffersDependencies;
  /** Notifies the other side of the end of an offer until the note is stored or the offer has expired. */
  readonly #endings: DueQueue<FileOfferRow>;
  /** Local agents with offers that ended after the last cleanup. */
  readonly #ended = new Set<Aid>();
  readonly #offering = new WorkUnderWay();
  /** Offers whose note is being sent. A repeated request gets the result of the first one. */
  readonly #making = new Map<string, Promise<OfferMade>>();
  /** Offers whose file the client has not begun to send, by agent and ID. */
  readonly #awaited = new Map<string, Timer>();
  readonly #hashing = new Semaphore(MAX_CONCURRENT_HASHES);
  readonly #stop = new AbortController();
  #looks: RepeatingTask | null = null;

  /** Registers the handlers for notes about files. */
  constructor(dependencies: FileOffersDependencies) {
    const { store, notes } = dependencies;
    const log = dependencies.log.child('files');
    this.#deps = { ...dependencies, log };
    this.#endings = new DueQueue(
      { name: 'notices of ended file offers', retry: RETRY, atOnce: CONCURRENT_NOTICES },
      { ...this.#deps, table: store.endings, work: (row, signal) => this.#notify(row, signal) },
    );
    notes.claim(NOTE_TYPE.fileOffer, (recipient, note) => this.#offerReceived(recipient, note));
    notes.claim(NOTE_TYPE.fileNews, (recipient, note) => this.#endReceived(recipient, note));
  }

  async start(): Promise<void> {
    const { clock, log, store } = this.#deps;
    // A client whose upload was interrupted sends the file again.
    for (const row of store.unhashed()) this.#await(row, stopped());
    const onError = (error: unknown): void => log.warn({ error }, 'expired file offers could not be processed');
    const options = { periodMs: OFFERS_TICK_MS, firstMs: 0, onError };
    this.#looks = every(clock, options, () => {
      this.#expire();
      this.#cleanUp();
    });
    this.#endings.start();
  }

  async stop(): Promise<void> {
    this.#looks?.stop();
    this.#stop.abort(new SvcError('cancelled'));
    for (const timer of this.#awaited.values()) timer.cancel();
    for (const { aid, id } of this.#deps.store.unhashed()) this.#deps.files.cancel(aid, id, stopped());
    await Promise.all([this.#endings.stop(), this.#offering.idle()]);
  }

  /**
   * Offers a file of a local agent to another agent. The recipient may read it immediately, even if the access list
   * denies agents that it does not name. A file that is no object is hashed afterwards; if that fails, the offer is
   * withdrawn. A repeated request joins the first one. If no client received its result, the request repeats the same
   * offer for an hour, so the recipient does not see it twice.
   * @returns the offer, and whether the recipient's node has received it
   * @throws SvcError `not_found`, `self`, `access_denied` if the recipient is blocked, `too_large`, `quota_exceeded`,
   *   `invalid_request`, `files_root_required`, and the errors of sending a note. After an error, nothing is offered: the
   *   recipient is notified of the withdrawal if it may have received the note
   */
  async offer(aid: Aid, request: OfferRequest): Promise<PostedOffer> {
    const { recipient, source, name, message, temporary } = request;
    const key = JSON.stringify([aid, recipient, source, name, message, temporary]);
    const making =
      this.#making.get(key) ??
      this.#offering.run(() => this.#offer(aid, request)).finally(() => this.#making.delete(key));
    this.#making.set(key, making);
    const made = await making;
    const settle = (heard: boolean): void => {
      if (heard && !this.#stop.signal.aborted) this.#setHeard(aid, made.offer.id);
    };
    return { ...made, settle };
  }

  #setHeard(aid: Aid, id: string): void {
    const { store, log } = this.#deps;
    try {
      store.setHeard(aid, id);
    } catch (error) {
      log.error({ aid, error }, 'the response to an offer could not be recorded');
    }
  }

  async #offer(aid: Aid, request: OfferRequest): Promise<OfferMade> {
    const { store, notes, clock, newId } = this.#deps;
    const { recipient, source, message = '', temporary } = request;
    this.#mustBeAllowed(aid, request);
    const { objectId, size, name: ownName } = await this.#fileOf(aid, source);
    if (size > MAX_OFFERED_BYTES) throw new SvcError('too_large');
    const name = receivedName(request.name ?? ownName);
    const content = { peer: recipient, objectId, size, name, message };
    const before = store.findUnanswered(aid, content, clock.now() - REPEAT_MS);
    if (before !== null && objectId !== null) store.setTemporary(aid, before.id, temporary);
    if (before !== null && before.state !== 'open') {
      this.#offerEnded(aid);
      return { offer: this.get(aid, before.id), delivered: true };
    }
    if (before === null) this.#mustHaveRoom(aid);
    const file = { id: before?.id ?? newId(), objectId, size, name, message };
    const at = clock.now();
    const row = { ...file, ...content, at, expiresAt: at + FILE_OFFER_LIFE_MS, aid, temporary };
    // Stored before the note is sent, because the recipient may request the file immediately.
    if (before === null && !store.add({ ...row, direction: 'out' })) throw noSuchAgent(aid);
    if (before === null) this.#begin(row, source);
    try {
      const { delivered } = await notes.send(aid, recipient, NOTE_TYPE.fileOffer, encodeOffer(file), this.#stop.signal);
      return { offer: this.get(aid, file.id), delivered };
    } catch (error) {
      // The recipient may have received the note, so it must be notified of the withdrawal.
      const isUncertain = error instanceof SvcError && UNCERTAIN.has(error.code);
      const tellAt = before !== null || this.#stop.signal.aborted || isUncertain ? clock.now() : null;
      if (this.#settle(aid, file.id, 'withdrawn', tellAt)) this.#offerEnded(aid);
      throw error;
    }
  }

  #mustBeAllowed(aid: Aid, { recipient, source, name, message = '' }: OfferRequest): void {
    const { isHere, isBlocked } = this.#deps;
    if (!isHere(aid)) throw noSuchAgent(aid);
    if (recipient === aid) throw new SvcError('self');
    if (isBlocked(aid, recipient))
      throw new SvcError('access_denied', { message: 'You have blocked this agent, so it could not accept the file.' });
    if (!message.isWellFormed())
      throw new SvcError('invalid_request', { message: 'The message is not well-formed Unicode.' });
    if ('size' in source && name === undefined)
      throw new SvcError('invalid_request', { message: 'A file that is sent afterwards needs a name.' });
  }

  async #fileOf(aid: Aid, source: OfferSource) {
    const { objects, files } = this.#deps;
    if ('path' in source) return await files.find(aid, source.path);
    if ('size' in source) return { objectId: null, size: source.size, name: '' };
    const object = objects.stat(aid, source.objectId);
    if (object === null)
      throw new SvcError('not_found', { thing: 'object', message: 'This agent does not have this object.' });
    return { ...object, objectId: source.objectId };
  }

  /** Hashes the file of a new offer, or waits for it. */
  #begin(row: NewOffer, source: OfferSource): void {
    const { files, log } = this.#deps;
    const { aid, id, size, name, objectId } = row;
    if (objectId !== null || 'objectId' in source) return;
    if ('size' in source) return this.#await(row, unsent());
    files.begin(aid, id, size);
    const make = () => this.#hashing.run(() => files.register(aid, id, source.path, name), this.#stop.signal);
    this.#offering
      .run(() => this.#hash(row, make))
      .catch((error: unknown) => log.debug({ aid, error }, 'an offered file could not be hashed'));
  }

  /** Waits for the client that sends the file of an offer. @param late the cause if it does not */
  #await({ aid, id, size }: NewOffer, late: SvcError): void {
    const { files, clock } = this.#deps;
    files.begin(aid, id, size);
    const timer = clock.after(UPLOAD_START_MS, () => this.#fail(aid, id, late));
    this.#awaited.set(keyOf(aid, id), timer);
  }

  /**
   * Receives the file of an offer from the client that made it. The recipient can read it meanwhile.
   * @throws SvcError `not_found`, `wrong_state` if the offer does not wait for a file, or the file has another size,
   *   and the errors of storing an object. After an error the offer is withdrawn. After an interruption the client can
   *   send the file again
   */
  async upload(aid: Aid, id: string, source: AsyncIterable<Uint8Array>): Promise<FileOffer> {
    const row = this.#row(aid, id);
    const timer = this.#awaited.get(keyOf(aid, id));
    if (timer === undefined) throw wrongState('The offer does not wait for a file.');
    timer.cancel();
    this.#awaited.delete(keyOf(aid, id));
    await this.#offering.run(() => this.#hash(row, () => this.#deps.files.store(aid, id, source, row.name)));
    return this.get(aid, id);
  }

  async #hash(row: NewOffer, make: () => Promise<MadeObject>): Promise<void> {
    const { store, files } = this.#deps;
    const { aid, id, temporary } = row;
    try {
      const { objectId, isNew } = await make();
      // An object that the agent had before remains, unless it exists only for other offers.
      store.setTemporary(aid, id, temporary && (isNew || store.isTemporary(aid, objectId)));
      store.setObject(aid, id, objectId);
      files.finish(aid, id);
      // The object of an offer that ended meanwhile is deleted.
      if (store.get(aid, id)?.state !== 'open') this.#offerEnded(aid);
    } catch (error) {
      if (this.#stop.signal.aborted) throw error;
      if (error instanceof SvcError && error.code === 'cancelled' && store.get(aid, id)?.state === 'open')
        this.#await(row, unsent());
      else this.#fail(aid, id, error);
      throw error;
    }
  }

  /** Withdraws an offer whose file cannot be read. */
  #fail(aid: Aid, id: string, error: unknown): void {
    const { store, files, clock } = this.#deps;
    const cause = error instanceof SvcError ? error : new SvcError('internal', { cause: error });
    files.cancel(aid, id, cause);
    if (!this.#settle(aid, id, 'withdrawn', clock.now())) return;
    store.setProblem(aid, id, cause.message);
    this.#offerEnded(aid);
  }

  #mustHaveRoom(aid: Aid): void {
    const { store } = this.#deps;
    const made = [...store.openByPeer(aid, 'out').values()].reduce((sum, n) => sum + n, 0);
    if (made >= MAX_OPEN_OFFERS_MADE)
      throw new SvcError('quota_exceeded', {
        message: `An agent can have at most ${MAX_OPEN_OFFERS_MADE} open offers. Withdraw some with "svc files rm".`,
      });
  }

  /**
   * The offers of a local agent, newest first.
   * @throws SvcError `not_found`
   */
  list(aid: Aid, direction: FileOfferDirection | undefined, onlyOpen: boolean): readonly FileOffer[] {
    const { store, isHere } = this.#deps;
    if (!isHere(aid)) throw noSuchAgent(aid);
    return store.list(aid, direction, onlyOpen).map((row) => this.#view(row));
  }

  /** @throws SvcError `not_found` */
  get(aid: Aid, id: string): FileOffer {
    return this.#view(this.#row(aid, id));
  }

  /**
   * An offer to a local agent that it can accept.
   * @throws SvcError `not_found`, `wrong_state`
   */
  acceptable(aid: Aid, id: string): FileOffer {
    const row = this.#row(aid, id);
    if (row.direction === 'out') throw wrongState('This agent made the offer.');
    if (row.state !== 'open') throw wrongState(`The offer is already ${row.state}.`);
    if (row.expiresAt <= this.#deps.clock.now()) throw wrongState('The offer has expired.');
    return this.#view(row);
  }

  /** Marks an offer as accepted, after its whole file has arrived. @throws SvcError `not_found`, `wrong_state` */
  taken(aid: Aid, id: string): FileOffer {
    this.acceptable(aid, id);
    return this.#end(aid, id, 'taken');
  }

  /** Declines an offer and notifies its sender. @throws SvcError `not_found`, `wrong_state` */
  decline(aid: Aid, id: string): FileOffer {
    this.acceptable(aid, id);
    return this.#end(aid, id, 'declined');
  }

  /**
   * Withdraws an offer. It no longer allows the recipient to read the file. @throws SvcError `not_found`, `wrong_state`
   */
  withdraw(aid: Aid, id: string): FileOffer {
    const row = this.#row(aid, id);
    if (row.direction === 'in') throw wrongState('This agent received the offer. Decline it instead.');
    if (row.state !== 'open') throw wrongState(`The offer is already ${row.state}.`);
    return this.#end(aid, id, 'withdrawn');
  }

  #end(aid: Aid, id: string, end: OfferEnd): FileOffer {
    if (!this.#settle(aid, id, end, this.#deps.clock.now())) throw wrongState('The offer has already ended.');
    this.#offerEnded(aid);
    return this.get(aid, id);
  }

  async #notify({ aid, id, peer, state, expiresAt }: FileOfferRow, signal: AbortSignal): Promise<void> {
    const { store, notes, clock } = this.#deps;
    if (state !== 'open' && state !== 'expired' && expiresAt > clock.now())
      await notes.send(aid, peer, NOTE_TYPE.fileNews, encodeEndNotice({ id, end: state }), signal);
    store.scheduleNotification(aid, id, null);
  }

  /** Ends an open offer. Returns false if it is not open. */
  #settle(aid: Aid, id: string, state: OfferEnd | 'expired', tellAt: number | null): boolean {
    const { store, clock, files, isKnown } = this.#deps;
    const isSettled = store.settle({ aid, id, state, now: clock.now(), tellAt, isKnown });
    if (!isSettled) return false;
    if (tellAt !== null) this.#endings.soon();
    this.#awaited.get(keyOf(aid, id))?.cancel();
    this.#awaited.delete(keyOf(aid, id));
    files.cancel(aid, id, wrongState(`The offer is ${state}.`));
    return true;
  }

  /**
   * Schedules the cleanup after the end of an offer of an agent, or to it. The cleanup runs outside of transactions.
   */
  #offerEnded(aid: Aid): void {
    this.#ended.add(aid);
    this.#looks?.soon();
  }

  #expire(): void {
    const { store, clock } = this.#deps;
    for (const { aid, id } of store.expired(clock.now(), BATCH))
      if (this.#settle(aid, id, 'expired', null)) this.#ended.add(aid);
  }

  /** Disconnects readers of objects that are no longer offered, reports free space, and deletes temporary objects. */
  #cleanUp(): void {
    const { store, objects, notes, offered, recheck, log } = this.#deps;
    const ended = [...this.#ended];
    this.#ended.clear();
    for (const aid of ended) {
      recheck(aid);
      notes.roomAgain(aid);
      offered.forget(aid);
    }
    for (const { aid, objectId } of store.orphanedObjects(BATCH)) {
      store.keepObject(aid, objectId);
      try {
        objects.delete(aid, objectId);
      } catch (error) {
        log.debug({ aid, error }, 'the object of an ended offer was already deleted');
      }
    }
  }

  /**
   * Stores an offer of another agent. Runs in a transaction. Dropped offers are not reported, so the sender cannot
   * detect that it is blocked.
   */
  #offerReceived(aid: Aid, { sender, body, sentAt }: OfferNote): NoteOutcome {
    // protocol-notes.md, step 14
    const { store, events, isHere, isBlocked, isKnown } = this.#deps;
    if (!isHere(aid)) return 'full';
    const file = decodeOffer(body);
    if (file === null || sender === aid || isBlocked(aid, sender)) return 'dropped';
    if (!this.#hasRoom(aid, sender)) return 'full';
    const name = receivedName(file.name);
    const times = { at: sentAt, expiresAt: sentAt + FILE_OFFER_LIFE_MS };
    if (!store.add({ ...file, ...times, name, aid, peer: sender, direction: 'in', temporary: false })) return 'dropped';
    events.emit(aid, 'file.offered', { offer_id: file.id, from: sender }, causeOf(sender, isKnown(aid, sender)));
    return 'kept';
  }

  #hasRoom(aid: Aid, sender: Aid): boolean {
    const { store, isKnown } = this.#deps;
    const open = store.openByPeer(aid, 'in');
    if ((open.get(sender) ?? 0) >= MAX_OPEN_OFFERS_PER_SENDER) return false;
    const sum = (all: readonly (readonly [Aid, number])[]): number => all.reduce((total, [, n]) => total + n, 0);
    if (sum([...open]) >= MAX_OPEN_OFFERS) return false;
    // AIDs are free, so part of the offers is reserved for agents that the owner knows.
    if (isKnown(aid, sender)) return true;
    return sum([...open].filter(([peer]) => !isKnown(aid, peer))) < MAX_OPEN_OFFERS_OF_STRANGERS;
  }

  /** Stores how an offer ended on the other side. Runs in a transaction. */
  #endReceived(aid: Aid, { sender, body, sentAt }: OfferNote): NoteOutcome {
    // protocol-notes.md, step 16
    const { store, events, isHere, isBlocked, isKnown } = this.#deps;
    const notice = decodeEndNotice(body);
    if (notice === null) return 'dropped';
    const row = store.get(aid, notice.id);
    if (row === null && notice.end === 'withdrawn' && isHere(aid) && !isBlocked(aid, sender)) {
      // The offer may arrive later, and must not be open then.
      const times = { at: sentAt, expiresAt: sentAt + FILE_OFFER_LIFE_MS };
      const empty = { objectId: null, size: 0, name: '', message: '', temporary: false };
      store.add({ ...empty, ...times, id: notice.id, aid, peer: sender, direction: 'in' });
      this.#settle(aid, notice.id, 'withdrawn', null);
      return 'kept';
    }
    if (row === null || row.peer !== sender) return 'dropped';
    // Only the sender can withdraw an offer, and only the recipient can accept or decline it.
    if ((notice.end === 'withdrawn') !== (row.direction === 'in')) return 'dropped';
    if (!this.#settle(aid, row.id, notice.end, null)) return 'dropped';
    const cause = causeOf(sender, row.direction === 'out' || isKnown(aid, sender));
    events.emit(aid, 'file.answered', { offer_id: row.id, peer: sender, state: notice.end }, cause);
    this.#offerEnded(aid);
    return 'kept';
  }

  /**
   * Stores the hash of a received file, which its sender named while it sent the file.
   * @throws SvcError `protocol_error` if the sender named another one before
   */
  learn(aid: Aid, id: string, objectId: string): void {
    const { store } = this.#deps;
    store.setObject(aid, id, objectId);
    const known = store.get(aid, id)?.objectId;
    if (known !== undefined && known !== objectId)
      throw new SvcError('protocol_error', { message: 'The sender changed the file after it had offered it.' });
  }

  #row(aid: Aid, id: string): FileOfferRow {
    const { store, isHere } = this.#deps;
    if (!isHere(aid)) throw noSuchAgent(aid);
    const row = store.get(aid, id);
    if (row === null)
      throw new SvcError('not_found', { thing: 'offer', message: 'This agent has no file offer with this ID.' });
    return row;
  }

  #view(row: FileOfferRow): FileOffer {
    const { aid, id, direction, state, size } = row;
    if (direction === 'in') return { ...row, sentBytes: null, hashedBytes: null };
    const { offered, files } = this.#deps;
    const sentBytes = state === 'taken' ? size : offered.readBytes(aid, id);
    return { ...row, sentBytes, hashedBytes: files.hashed(aid, id) };
  }
}

type NewOffer = Pick<FileOfferRow, 'aid' | 'id' | 'objectId' | 'size' | 'name' | 'temporary'>;

function keyOf(aid: Aid, id: string): string {
  return `${aid} ${id}`;
}

function unsent(): SvcError {
  return new SvcError('timeout', { message: 'The file was not sent completely. Send it again.' });
}

function stopped(): SvcError {
  return new SvcError('cancelled', { message: 'svcd stopped while it read the file. Send it again.' });
}

function wrongState(message: string): SvcError {
  return new SvcError('wrong_state', { message: `${message} See "svc files list --all" for the state of all offers.` });
}

// Downloads offered files: to a folder of the daemon, or to a client that stores them itself.

/** Folder of accepted files, below files_root. */
const RECEIVED = 'received';
/** Limit of names that are tried for one file. */
const MAX_NAMES = 100;

export class OfferReceiver<B extends OfferedBytes> {
  readonly #offers: FileOffers;
  readonly #sources: OfferSources<B>;
  /** A repeated request waits for the first one, so that no second copy is downloaded. */
  readonly #accepting = new KeyedMutex();

  constructor(offers: FileOffers, sources: OfferSources<B>) {
    this.#offers = offers;
    this.#sources = sources;
  }

  /**
   * Downloads the file of an offer below files_root and notifies its sender. After a failed or canceled request, the next
   * one resumes.
   * @returns the absolute path of the file
   * @throws SvcError `not_found`, `wrong_state`, `protocol_error` if it is not the offered file, and the errors of
   *   getting an object
   */
  async accept(aid: Aid, id: string, signal: AbortSignal): Promise<string> {
    return await this.#accepting.run(`${aid} ${id}`, async () => {
      signal.throwIfAborted();
      const { path, objectId } = await this.#get(this.#offers.acceptable(aid, id), signal);
      this.#offers.learn(aid, id, objectId);
      this.#offers.taken(aid, id);
      return path;
    });
  }

  /** Downloaded bytes of an offer to a local agent, or null if it is not being downloaded below files_root. */
  received({ aid, id, direction, state }: FileOffer): number | null {
    return direction === 'in' && state === 'open' ? this.#sources.progress(aid, id) : null;
  }

  async #get(offer: FileOffer, signal: AbortSignal) {
    for (let number = 0; ; number++) {
      const dest = join(RECEIVED, numberedName(offer.name, number));
      try {
        return await this.#sources.get({ ...fileOf(offer, signal), objectId: offer.objectId, dest });
      } catch (error) {
        // Another file has this name.
        const isTaken = error instanceof SvcError && error.code === 'wrong_state';
        if (!isTaken || number + 1 === MAX_NAMES) throw error;
      }
    }
  }

  /**
   * Requests the bytes of an offer from its sender.
   * @param range the `Range` header of an HTTP request
   * @throws SvcError `not_found`, `wrong_state`, `protocol_error` if the size differs from the offer, and the errors of
   *   reading from a sender
   */
  async read(aid: Aid, id: string, range: string | undefined, signal: AbortSignal): Promise<B> {
    const offer = this.#offers.acceptable(aid, id);
    const headers = range === undefined ? {} : { range };
    const file = await this.#sources.read({ ...fileOf(offer, signal), headers });
    if (file.size === offer.size && file.status !== 304) return file;
    file.body.destroy();
    throw new SvcError('protocol_error', { message: 'The size of the file differs from the offer.' });
  }

  /**
   * Requests the prefix hashes of an offer from its sender. The last one is stored as the hash of the file.
   * @throws SvcError `not_found`, `wrong_state`. `at` throws the errors of reading from a sender
   */
  hashes(aid: Aid, id: string, signal: AbortSignal): OfferedHashes {
    const offer = this.#offers.acceptable(aid, id);
    const count = rangeCount(offer.size);
    const hashes = this.#sources.hashes(fileOf(offer, signal));
    const at = async (index: number): Promise<Buffer> => {
      const hash = await hashes.at(index);
      if (index === count - 1) this.#offers.learn(aid, id, hash.toString('hex'));
      return hash;
    };
    return { size: offer.size, count, at, close: () => hashes.close() };
  }
}

/** The prefix hashes of an offered file, see `PrefixHashes`. */
export interface OfferedHashes extends Pick<PrefixHashes, 'at' | 'close'> {
  /** Size of the file, bytes. */
  readonly size: number;
  readonly count: number;
}

function fileOf({ aid: local, peer: holder, id, size }: FileOffer, signal: AbortSignal): FileToRead {
  return { local, holder, id, size, signal };
}
