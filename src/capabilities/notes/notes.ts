/** Notes: sealed messages that wait for their recipient. See docs/notes-and-chat.md. */
import type { AgentChange } from '../../foundation/agent-change.ts';
import { fromHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { MAX_NOTES_PAGE, MAX_NOTES_PAGE_BYTES } from '../../foundation/domain/notes.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { encodeEncryptionKeysPayload } from '../../foundation/records/payloads.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { MAX_TTL_S, RECORD } from '../../foundation/records/types.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { NoteCopyStore } from '../../foundation/store/note-copies.ts';
import type { NoteOutboxStore, QueuedNote } from '../../foundation/store/note-outbox.ts';
import type { NoteStore, StoredNote } from '../../foundation/store/notes.ts';
import type { Publication } from '../../foundation/store/publications.ts';
import type { Links } from '../../network/links/types.ts';
import { CopyRemovals } from './copy-removals.ts';
import { Inbox, viewOf } from './inbox.ts';
import { NoteCopies } from './note-copies.ts';
import { type AgentsPage, NoteFetcher } from './note-fetcher.ts';
import { type ExportedNoteKey, NoteKeys, type SecretVault } from './note-keys.ts';
import { NoteLinks } from './note-links.ts';
import { NoteOutbox } from './note-outbox.ts';
import { NoteSender, type Posted } from './note-sender.ts';
import { RecipientKeys } from './recipient-keys.ts';
import type { KeyDirectory, LocalIdentity, MailNetwork, Note, NoteHandler, NoteTaker, SendResult } from './types.ts';

/** Milliseconds after which published keys go out again, well within their life: nodes that keep them come and go. */
const REPUBLISH_KEYS_MS: number = 24 * 3600 * 1000;
/** Milliseconds between the removals of message ids whose time is over, and where many are left. */
const PURGE_PAUSE_MS = 3600_000;
const PURGE_AGAIN_MS = 200;
const PURGE_BATCH = 1000;
/** Milliseconds until the mailbox of an agent that was registered is looked at: most clients publish at once, and wait for that. */
const FIRST_LOOK_MS = 1000;

export interface NotesDependencies {
  readonly store: NoteStore;
  readonly copies: NoteCopyStore;
  readonly outbox: NoteOutboxStore;
  readonly network: MailNetwork;
  readonly links: Links;
  readonly vault: SecretVault;
  readonly directory: KeyDirectory;
  readonly delegations: DelegationVerifier;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  /** The identity of an agent here; null where it is not here. Never the node's own. */
  identity(aid: Aid): LocalIdentity | null;
  /** The local agents, in a stable order. */
  agents(cursor: string | undefined, limit: number): AgentsPage;
  /** True of an AID whose keys were made here a moment ago: nobody has written to it yet. */
  isNew(aid: Aid): boolean;
  /** Unix seconds of the newest delegation that was seen of an agent; 0 where none was. */
  newestDelegation(aid: Aid): number;
  /** The owner of an agent here knows another one: it let that in by name, labelled it, or they are friends in chat. */
  isKnown(aid: Aid, peer: Aid): boolean;
  /** A number from 0 to below 1. */
  random(): number;
  /** By how much this clock is ahead of the clocks of other nodes, milliseconds; 0 if that is not known. */
  clockAheadMs?(): number;
}

/** A page of a mailbox. */
export interface NotePage {
  readonly notes: readonly Note[];
  /** Where the next page begins; null where this is the last. */
  readonly nextCursor: string | null;
}

/** Notes that were handed out: exactly one of the two is to be called. */
export interface TakenNotes {
  readonly notes: readonly Note[];
  readonly more: boolean;
  /** The answer has reached the client: the notes are gone, here and on the network. */
  readonly confirm: () => void;
  /** It has not: the notes wait again. */
  readonly giveBack: () => void;
}

export class Notes implements Component {
  readonly #deps: NotesDependencies;
  readonly #keys: NoteKeys;
  readonly #inbox: Inbox;
  readonly #links: NoteLinks;
  readonly #noteSender: NoteSender;
  readonly #fetcher: NoteFetcher;
  readonly #copies: NoteCopies;
  readonly #outbox: NoteOutbox;
  readonly #removals: CopyRemovals;
  /** How many notes wait, of those agents that have some. */
  readonly #waiting = new Map<Aid, number>();
  #purge: RepeatingTask | null = null;
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
    this.#outbox = new NoteOutbox({ ...deps, send: (letter, signal) => this.#noteSender.resend(letter, signal) });
    const parts = { copies: this.#copies, outbox: this.#outbox, links: this.#links, recipients };
    this.#noteSender = new NoteSender({ ...deps, ...parts });
    this.#fetcher = new NoteFetcher({ ...deps, inbox });
  }

  async start(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const back = store.requeueAll();
    if (back > 0) log.info({ notes: back }, 'notes whose answer may not have arrived wait again');
    for (const [aid, count] of store.pendingCounts()) this.#waiting.set(aid, count);
    const onError = (error: unknown): void => log.error({ error }, 'old message ids could not be forgotten');
    this.#purge = every(clock, { firstMs: PURGE_AGAIN_MS, periodMs: PURGE_PAUSE_MS, onError }, () =>
      store.purgeSeen(clock.now(), PURGE_BATCH) ? PURGE_AGAIN_MS : PURGE_PAUSE_MS,
    );
    this.#fetcher.start();
    this.#copies.start();
    this.#outbox.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#purge?.stop();
    this.#links.stop();
    this.#removals.stop();
    await Promise.all([this.#fetcher.stop(), this.#copies.stop(), this.#outbox.stop()]);
  }

  /** Names who is told of the notes of a type; once each, before `start`. */
  onNote(msgType: number, handler: NoteHandler): void {
    this.#inbox.onNote(msgType, handler);
  }

  /** Names who takes the notes of a type, which do not come into mailboxes then; once each, before `start`. */
  claim(msgType: number, taker: NoteTaker): void {
    this.#inbox.claim(msgType, taker);
  }

  /** A taker has room again: looks for what it passed over. */
  roomAgain(aid: Aid): void {
    this.#fetcher.reconsider(aid, 'full');
  }

  /** Sends a note for a capability, which sends it again by itself if that fails. See `NoteSender.send`. */
  async send(sender: Aid, recipient: Aid, msgType: number, body: Uint8Array): Promise<SendResult> {
    const { settle, ...result } = await this.#noteSender.send(sender, recipient, msgType, body, false);
    this.#guard(sender, () => settle(true));
    return result;
  }

  /**
   * Sends a note for a client whose answer may be lost. It is queued if no other node keeps it for now.
   * See `NoteSender.send`.
   */
  async post(sender: Aid, recipient: Aid, msgType: number, body: Uint8Array): Promise<Posted> {
    const { settle, ...result } = await this.#noteSender.send(sender, recipient, msgType, body, true);
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
   * @throws SvcError `not_found`; `invalid_request` where the cursor is none of ours
   */
  list(aid: Aid, limit: number, cursor?: string): NotePage {
    this.#mustBeHere(aid);
    const { notes, more } = this.#deps.store.page(aid, numberOf(cursor), limit, MAX_NOTES_PAGE_BYTES);
    const last = notes.at(-1);
    return { notes: notes.map(viewOf), nextCursor: more && last !== undefined ? `${last.id}` : null };
  }

  /**
   * Hands out the oldest notes, in one durable step: nobody gets them a second time, unless they are
   * given back or the daemon ends before it knows that they arrived.
   * @throws SvcError `not_found`
   */
  take(aid: Aid): TakenNotes {
    this.#mustBeHere(aid);
    const { store, clock } = this.#deps;
    const { notes, more } = store.take(aid, MAX_NOTES_PAGE, MAX_NOTES_PAGE_BYTES, clock.now());
    this.#recount(aid);
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
   * Deletes one note that waits; it is not shown again where another copy of it comes.
   * @param messageId in hex
   * @throws SvcError `not_found` where the agent is not here, or no such note waits
   */
  remove(aid: Aid, messageId: string): void {
    this.#mustBeHere(aid);
    const { store, clock } = this.#deps;
    const id = fromHex(messageId);
    const note = id === null ? null : store.takeOne(aid, id, clock.now());
    if (note === null) throw new SvcError('not_found', { message: 'No such note waits for this agent.' });
    this.#recount(aid);
    this.#confirm(aid, [note]);
  }

  /** How many notes wait, of those agents that have some. */
  pending(): ReadonlyMap<Aid, number> {
    return this.#waiting;
  }

  /** Takes notice of what happened to an agent. */
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
   * What goes out beside the endpoint record of an agent: where it can be found, its key can be as well. Null where the
   * key that is published will do.
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

  /** Takes notice of a record that was published here: a key that should have gone out beside it goes out now. */
  published({ aid, type }: SignedRecord): void {
    if (type !== RECORD.endpoints || this.#deps.identity(aid) === null) return;
    this.#publishKey(aid).catch((error: unknown) =>
      this.#deps.log.warn({ aid, error }, 'the encryption key of this agent was not published; it is tried again'),
    );
  }

  /** To be called before an agent gets another operational key: notes that are sealed to what follows from it wait. */
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
   * Takes in the private keys of an export.
   * @throws SvcError `bad_key`, `too_large`
   */
  importSecrets(aid: Aid, keys: readonly ExportedNoteKey[]): void {
    this.#keys.import(aid, keys);
    this.#fetcher.reconsider(aid, 'unknown_key');
  }

  /** Undoes `importSecrets` where the agent did not come here after all. */
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
    this.#deps.store.discard(notes.map((note) => note.id));
    this.#fetcher.reconsider(aid, 'full');
    this.#removals.add(aid, notes);
  }

  /** What comes after an answer: nobody waits for it, and after a stop it is left to the next start. */
  #guard(aid: Aid, work: () => void): void {
    if (this.#stopped) return;
    try {
      work();
    } catch (error) {
      this.#deps.log.error({ aid, error }, 'what became of notes could not be written down');
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
