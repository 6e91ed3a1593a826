/** Notes: sealed messages that recipients collect. See docs/notes-and-chat.md. */
import type { AgentChange } from '../../foundation/agent-change.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { abortable } from '../../foundation/deadline.ts';
import {
  MAX_NOTE_BODY_BYTES,
  MAX_NOTES_PAGE,
  MAX_NOTES_PAGE_BYTES,
  MAX_QUEUED_NOTES,
  MAX_READ_NOTES,
} from '../../foundation/domain/notes.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { MAX_MOVED_SEEN, type NotesPart } from '../../foundation/moving/agent-document.ts';
import { aidAt, base64At, checkDistinct, hexBytes } from '../../foundation/moving/document-fields.ts';
import { encodeEncryptionKeysPayload } from '../../foundation/records/payloads.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { MAX_TTL_S, RECORD } from '../../foundation/records/types.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { NewQueuedNote, NoteOutboxStore, QueuedNote } from '../../foundation/store/note-outbox.ts';
import type { NewNote, NoteStore, StoredNote } from '../../foundation/store/notes.ts';
import type { Publication } from '../../foundation/store/publications.ts';
import { Inbox, SEEN_MS, viewOf } from './inbox.ts';
import { messageId } from './letter.ts';
import { CopyRemovals, NoteCopies } from './note-copies.ts';
import { NoteFetcher } from './note-fetcher.ts';
import { type ExportedNoteKey, NoteKeys } from './note-keys.ts';
import { NoteLinks, RecipientKeys } from './note-links.ts';
import { type NoteOutbox, NoteSender, type Posted, QUEUED_LIFE_MS, type SendResult } from './note-sender.ts';
import type { Note, NoteHandler, NotesDependencies, NoteTaker } from './types.ts';

/** Milliseconds after which keys are published again, well within their lifetime, because storage nodes change. */
const REPUBLISH_KEYS_MS: number = 24 * 3600 * 1000;
/** Milliseconds until delivered notes are deleted after an error of the disk. */
export const DISCARD_AGAIN_MS = 5000;
/** Milliseconds between deletions of expired message IDs, and if more remain. */
const PURGE_PAUSE_MS = 3600_000;
const PURGE_AGAIN_MS = 200;
const PURGE_BATCH = 1000;
/** Milliseconds until the mailbox of a new agent is fetched, because most clients publish first. */
const FIRST_LOOK_MS = 1000;

/** A page of a mailbox. */
export interface NotePage {
  readonly notes: readonly Note[];
  /** The cursor of the next page; null on the last one. */
  readonly nextCursor: string | null;
}

/** Notes that a client collects. Call exactly one of the two functions. */
export interface TakenNotes {
  readonly notes: readonly Note[];
  readonly more: boolean;
  /** The client received the notes: they are deleted here and on the network. */
  readonly confirm: () => void;
  /** It did not: the notes are pending again. */
  readonly giveBack: () => void;
}

export class Notes implements Component {
  readonly #deps: NotesDependencies;
  readonly #keys: NoteKeys;
  readonly #inbox: Inbox;
  readonly #links: NoteLinks;
  readonly #sender: NoteSender;
  readonly #fetcher: NoteFetcher;
  readonly #copies: NoteCopies;
  readonly #outbox: NoteOutbox;
  readonly #removals: CopyRemovals;
  /** Pending notes of each agent that has some. */
  readonly #waiting = new Map<Aid, number>();
  /** Delivered notes that are still stored. */
  #delivered: number[] = [];
  #purge: RepeatingTask | null = null;
  #discards: RepeatingTask | null = null;
  #stopped = false;

  constructor(dependencies: NotesDependencies) {
    const deps = { ...dependencies, log: dependencies.log.child('notes') };
    this.#deps = deps;
    this.#keys = new NoteKeys(deps.vault, deps.clock, (aid) => deps.identity(aid));
    this.#inbox = new Inbox({ ...deps, keys: this.#keys });
    const inbox: Pick<Inbox, 'accept'> = { accept: (aid, records) => this.#accept(aid, records) };
    this.#links = new NoteLinks({ ...deps, inbox, keys: this.#keys });
    const recipients = new RecipientKeys({ ...deps, keys: this.#keys, links: this.#links });
    this.#copies = new NoteCopies(deps);
    this.#removals = new CopyRemovals(deps);
    this.#sender = new NoteSender({ ...deps, copies: this.#copies, links: this.#links, recipients });
    this.#outbox = this.#sender.outbox;
    this.#fetcher = new NoteFetcher({ ...deps, inbox });
  }

  async start(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const back = store.requeueAll();
    if (back > 0) log.info({ notes: back }, 'notes that a client may not have received are pending again');
    for (const [aid, count] of store.pendingCounts()) this.#waiting.set(aid, count);
    const onError = (error: unknown): void => log.error({ error }, 'expired message IDs could not be deleted');
    this.#purge = every(clock, { firstMs: PURGE_AGAIN_MS, periodMs: PURGE_PAUSE_MS, onError }, () =>
      store.purgeSeen(clock.now(), PURGE_BATCH) ? PURGE_AGAIN_MS : PURGE_PAUSE_MS,
    );
    const onRefusal = (error: unknown): void => log.debug({ error }, 'delivered notes could not be deleted');
    const options = { firstMs: UNTIL_REQUESTED, periodMs: DISCARD_AGAIN_MS, onError: onRefusal };
    this.#discards = every(clock, options, () => {
      this.discardDelivered();
      return UNTIL_REQUESTED;
    });
    this.#fetcher.start();
    this.#copies.start();
    this.#outbox.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#purge?.stop();
    this.#discards?.stop();
    this.#links.stop();
    this.#removals.stop();
    await Promise.all([this.#fetcher.stop(), this.#copies.stop(), this.#sender.stop()]);
  }

  /** Sets the handler for the notes of a type; once each, before `start`. */
  onNote(msgType: number, handler: NoteHandler): void {
    this.#inbox.onNote(msgType, handler);
  }

  /** Sets the receiver of the notes of a type instead of mailboxes; once each, before `start`. */
  claim(msgType: number, taker: NoteTaker): void {
    this.#inbox.claim(msgType, taker);
  }

  /** A receiver has room again: fetches the notes that it had no room for. */
  roomAgain(aid: Aid): void {
    this.#fetcher.reconsider(aid, 'full');
  }

  /**
   * Sends a note for a capability, which retries if that fails. See `NoteSender.send`.
   * @param signal ends the wait. The note may still arrive
   */
  async send(
    sender: Aid,
    recipient: Aid,
    msgType: number,
    body: Uint8Array,
    signal?: AbortSignal,
  ): Promise<SendResult> {
    const sent = this.#sender.send(sender, recipient, msgType, body, false);
    const { settle, ...result } = await abortable(sent, signal);
    this.#guard(sender, () => settle(true));
    return result;
  }

  /**
   * Sends a note for a client, which may not receive the answer. It is queued if no other node stores it.
   * See `NoteSender.send`.
   */
  async post(sender: Aid, recipient: Aid, msgType: number, body: Uint8Array): Promise<Posted> {
    const { settle, ...result } = await this.#sender.send(sender, recipient, msgType, body, true);
    return { ...result, settle: (heard) => this.#guard(sender, () => settle(heard)) };
  }

  /**
   * The notes of an agent that are queued here, oldest first.
   * @throws SvcError `not_found`, `invalid_request` if the cursor is invalid
   */
  queued(aid: Aid, limit: number, cursor?: string): { notes: readonly QueuedNote[]; nextCursor: string | null } {
    this.#mustBeHere(aid);
    const notes = this.#outbox.page(aid, numberOf(cursor), limit + 1);
    const shown = notes.slice(0, limit);
    return { notes: shown, nextCursor: notes.length > limit ? `${shown.at(-1)?.id ?? 0}` : null };
  }

  /**
   * Takes a queued note back. A copy may still arrive if an attempt is under way.
   * @param messageId in hex
   * @throws SvcError `not_found`
   */
  cancelQueued(aid: Aid, messageId: string): void {
    this.#mustBeHere(aid);
    const id = fromHex(messageId);
    if (id === null || !this.#outbox.cancel(aid, id))
      throw new SvcError('not_found', { message: 'No such note is queued for this agent.' });
  }

  /**
   * The notes that wait for an agent, oldest first. Nothing changes.
   * @throws SvcError `not_found`; `invalid_request` if the cursor is invalid
   */
  list(aid: Aid, limit: number, cursor?: string): NotePage {
    this.#mustBeHere(aid);
    const { notes, more } = this.#deps.store.page(aid, numberOf(cursor), limit, MAX_NOTES_PAGE_BYTES);
    const last = notes.at(-1);
    return { notes: notes.map(viewOf), nextCursor: more && last !== undefined ? `${last.id}` : null };
  }

  /** A pending note; null if there is none. @param messageId in hex */
  find(aid: Aid, messageId: string): Note | null {
    const id = fromHex(messageId);
    const note = id === null ? null : this.#deps.store.find(aid, id);
    return note === null ? null : viewOf(note);
  }

  /**
   * Returns the oldest notes and marks them as delivered, durably. No client gets them a second time, unless they are
   * given back or the daemon stops before it knows that they arrived.
   * @throws SvcError `not_found`
   */
  take(aid: Aid): TakenNotes {
    this.#mustBeHere(aid);
    const { store, clock } = this.#deps;
    const { notes, more } = store.take(aid, MAX_NOTES_PAGE, MAX_NOTES_PAGE_BYTES, clock.now());
    // The notes are marked already: an error would hide them until the next start.
    this.#guard(aid, () => this.#recount(aid));
    const ids = notes.map((note) => note.id);
    return {
      notes: notes.map(viewOf),
      more,
      confirm: () => this.#guard(aid, () => this.#confirm(aid, notes)),
      giveBack: () =>
        this.#guard(aid, () => {
          store.requeue(ids);
          this.#recount(aid);
        }),
    };
  }

  /**
   * Deletes one pending note. Further copies of it are ignored.
   * @param messageId in hex
   * @throws SvcError `not_found` if the agent is not here or the note is not pending
   */
  remove(aid: Aid, messageId: string): void {
    this.#mustBeHere(aid);
    const { store, clock } = this.#deps;
    const id = fromHex(messageId);
    const note = id === null ? null : store.takeOne(aid, id, clock.now());
    if (note === null) throw new SvcError('not_found', { message: 'This agent has no such note.' });
    this.#recount(aid);
    this.#confirm(aid, [note]);
  }

  /**
   * Marks a pending note as read: it is no longer pending. Does nothing if it is not.
   * @param messageId in hex
   */
  markRead(aid: Aid, messageId: string): void {
    const { store, clock } = this.#deps;
    const id = fromHex(messageId);
    const note = id === null ? null : store.markRead(aid, id, clock.now(), MAX_READ_NOTES);
    if (note === null) return;
    this.#recount(aid);
    this.#fetcher.reconsider(aid, 'full');
    this.#removals.add(aid, [note]);
  }

  /** The last notes that were marked as read, oldest first. @throws SvcError `not_found` */
  listRead(aid: Aid): readonly Note[] {
    this.#mustBeHere(aid);
    return this.#deps.store.read(aid).map(viewOf);
  }

  /** Pending notes of each agent that has some. */
  pending(): ReadonlyMap<Aid, number> {
    return this.#waiting;
  }

  /** Handles a change of an agent. */
  agentChanged({ aid, kind }: AgentChange): void {
    if (kind === 'registered' || kind === 'rotated') {
      this.#recount(aid);
      this.#fetcher.reconsider(aid, 'unknown_key');
      this.#outbox.soon();
      if (kind === 'rotated') this.#fetcher.soon(aid);
      else if (!this.#deps.isNew(aid)) this.#fetcher.soon(aid, FIRST_LOOK_MS);
    } else if (kind === 'deleted') {
      this.#keys.forget(aid);
      this.#fetcher.forget(aid);
      this.#waiting.delete(aid);
    }
  }

  /**
   * The key record to publish with the endpoint record of an agent, so that senders find both. Null if the published one
   * is recent.
   * @throws SvcError `key_damaged`
   */
  keyToPublish(aid: Aid): Publication | null {
    if (this.#deps.identity(aid) === null) return null;
    const { directory, clock } = this.#deps;
    const payload = encodeEncryptionKeysPayload([this.#keys.current(aid)]);
    const known = directory.published(aid, RECORD.encryptionKeys);
    const isNew = known === null || Buffer.compare(known.payload, payload) !== 0;
    const isOld = clock.now() - (known?.publishedAt ?? 0) >= REPUBLISH_KEYS_MS;
    return isNew || isOld ? { type: RECORD.encryptionKeys, name: '', payload, ttl: MAX_TTL_S } : null;
  }

  /** Handles a published record: publishes the key after an endpoint record, unless that was done with it. */
  published({ aid, type }: SignedRecord): void {
    if (type !== RECORD.endpoints || this.#deps.identity(aid) === null) return;
    this.#publishKey(aid).catch((error: unknown) =>
      this.#deps.log.warn({ aid, error }, 'the encryption key of this agent was not published, svcd will retry'),
    );
  }

  /** Call it before the operational key of an agent is replaced: pending notes are sealed to keys that derive from it. */
  beforeRotation(aid: Aid): void {
    if (this.#deps.identity(aid) === null) return;
    try {
      this.#keys.secure(aid);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'key_damaged') throw error;
      this.#deps.log.error(
        { aid, error },
        'the encryption keys of this agent cannot be read: notes for it may be lost',
      );
    }
  }

  /** The private keys that open notes, for an export of the agent. */
  exportSecrets(aid: Aid): readonly ExportedNoteKey[] {
    return this.#keys.export(aid);
  }

  /**
   * Stores the private keys of an export.
   * @throws SvcError `bad_key`, `too_large`
   */
  importSecrets(aid: Aid, keys: readonly ExportedNoteKey[]): void {
    this.#keys.import(aid, keys);
    this.#fetcher.reconsider(aid, 'unknown_key');
  }

  /** Reverts `importSecrets` after a failed import of the agent. */
  discardSecrets(aid: Aid): void {
    this.#keys.forget(aid);
  }

  async #accept(aid: Aid, records: readonly SignedRecord[]) {
    const receipts = await this.#inbox.accept(aid, records);
    if (receipts.some(({ verdict }) => verdict === 'kept')) this.#recount(aid);
    return receipts;
  }

  async #publishKey(aid: Aid): Promise<void> {
    const { directory } = this.#deps;
    const due = this.keyToPublish(aid);
    if (due !== null) await directory.publishRecord(aid, due.type, due.payload, due.ttl);
  }

  #confirm(aid: Aid, notes: readonly StoredNote[]): void {
    if (notes.length === 0) return;
    this.#delivered.push(...notes.map((note) => note.id));
    this.discardDelivered();
    this.#fetcher.reconsider(aid, 'full');
    this.#removals.add(aid, notes);
  }

  /** Deletes delivered notes: an export or the next start would deliver them again. Repeats it after an error of the disk. */
  discardDelivered(): void {
    if (this.#delivered.length === 0) return;
    try {
      this.#deps.store.discard(this.#delivered);
      this.#delivered = [];
    } catch (error) {
      this.#discards?.soon(DISCARD_AGAIN_MS);
      throw error;
    }
  }

  /** Runs work that follows an answer. After a stop, the next start does it. */
  #guard(aid: Aid, work: () => void): void {
    if (this.#stopped) return;
    try {
      work();
    } catch (error) {
      this.#deps.log.error({ aid, error }, 'the result of a delivery could not be stored');
    }
  }

  #recount(aid: Aid): void {
    const { count } = this.#deps.store.load(aid);
    if (count > 0) this.#waiting.set(aid, count);
    else this.#waiting.delete(aid);
  }

  #mustBeHere(aid: Aid): void {
    if (this.#deps.identity(aid) === null) throw noSuchAgent(aid);
  }
}

/** @throws SvcError `invalid_request` */
function numberOf(cursor = '0'): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new SvcError('invalid_request', { message: 'Invalid cursor.', details: { in: 'query', path: '/cursor' } });
}

type NotesMovingParts = Pick<Notes, 'discardDelivered' | 'exportSecrets' | 'importSecrets'> & {
  readonly store: NoteStore;
  readonly outbox: NoteOutboxStore;
};

/** The mailbox of an agent and its keys, for its move to another node. @throws SvcError `not_writable` */
export function exportNotes(deps: NotesMovingParts, aid: Aid): NotesPart {
  const { store, outbox } = deps;
  deps.discardDelivered();
  const queued = outbox.page(aid, 0, MAX_QUEUED_NOTES).map((note) => ({
    recipient: note.recipient,
    msg_type: note.msgType,
    body_base64: toBase64(note.body),
    nonce_hex: toHex(note.nonce),
    sent_at: note.sentAt,
  }));
  return {
    keys: deps.exportSecrets(aid).map((key) => ({ private_key_hex: key.privateKeyHex, created_at: key.createdAt })),
    waiting: store.all(aid).map((note) => ({
      message_id: toHex(note.messageId),
      sender: note.sender,
      msg_type: note.msgType,
      body_base64: toBase64(note.body),
      sent_at: note.sentAt,
      received_at: note.receivedAt,
      digest_hex: toHex(note.digest),
      token_hex: toHex(note.token),
    })),
    queued,
    seen: store.seenOf(aid, MAX_MOVED_SEEN).map(({ messageId, until }) => ({ id: toHex(messageId), until })),
  };
}

/**
 * Checks a mailbox from another node.
 * @param now Unix milliseconds
 * @returns a function that stores it
 * @throws SvcError `bad_file`
 */
export function importNotes(deps: NotesMovingParts, aid: Aid, part: NotesPart, now: number): () => void {
  const notes = part.waiting.map((one, i): NewNote => {
    const path = `/notes/waiting/${i}`;
    return {
      aid,
      messageId: hexBytes(one.message_id),
      sender: aidAt(`${path}/sender`, one.sender),
      msgType: one.msg_type,
      body: base64At(`${path}/body_base64`, one.body_base64, MAX_NOTE_BODY_BYTES),
      sentAt: one.sent_at,
      receivedAt: one.received_at,
      digest: hexBytes(one.digest_hex),
      token: hexBytes(one.token_hex),
    };
  });
  const queued = part.queued.map((one, i): NewQueuedNote => {
    const path = `/notes/queued/${i}`;
    const recipient = aidAt(`${path}/recipient`, one.recipient);
    const body = base64At(`${path}/body_base64`, one.body_base64, MAX_NOTE_BODY_BYTES);
    const sentAt = Math.min(one.sent_at, now);
    const letter = { recipient, msgType: one.msg_type, body, nonce: hexBytes(one.nonce_hex), sentAt };
    const id = messageId({ ...letter, sender: aid });
    return { ...letter, aid, messageId: id, until: sentAt + QUEUED_LIFE_MS, dueAt: now, attempts: 0 };
  });
  const ids = part.waiting.map((one) => one.message_id);
  checkDistinct('/notes/waiting', ids);
  const latest = now + SEEN_MS;
  const seen = new Map(part.seen.map(({ id, until }) => [id, Math.min(until, latest)]));
  const keys = part.keys.map((key) => ({ privateKeyHex: key.private_key_hex, createdAt: key.created_at }));
  return () => {
    deps.importSecrets(aid, keys);
    for (const note of notes) deps.store.add(note, seen.get(toHex(note.messageId)) ?? latest);
    for (const note of queued) deps.outbox.add(note);
    for (const [id, until] of seen) deps.store.markSeen(aid, hexBytes(id), until);
  };
}
