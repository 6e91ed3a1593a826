/** Receives notes from links and from the record network: opens them, verifies their senders, and stores each once. */
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { MAX_MAILBOX_NOTES } from '../../foundation/domain/notes.ts';
import { CLOCK_SKEW_S } from '../../foundation/domain/time.ts';
import { SvcError } from '../../foundation/errors.ts';
import { causeOf, type EventCause, STRANGERS } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { decodeNotePayload, removalHash } from '../../foundation/records/notes.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { MAX_NOTE_TTL_S } from '../../foundation/records/types.ts';
import { type MailboxLoad, type NewNote, noteSize } from '../../foundation/store/notes.ts';
import { decodeLetter, type Letter, LetterVerifier, messageId } from './letter.ts';
import type { NoteKeys } from './note-keys.ts';
import type { Note, NoteHandler, NotesDependencies, NoteTaker } from './types.ts';

/** Bytes in one mailbox. */
export const MAX_MAILBOX_BYTES: number = 16 * 1024 * 1024;
/** Notes of one sender in one mailbox. */
export const MAX_SENDER_NOTES = 300;
/** Notes of all strangers in one mailbox. Strangers are senders that the owner does not know. */
export const MAX_STRANGERS_NOTES = 800;
/** Bytes of all strangers in one mailbox. */
export const MAX_STRANGERS_BYTES: number = 12 * 1024 * 1024;
/** Bytes of one sender in one mailbox. */
export const MAX_SENDER_BYTES: number = 6 * 1024 * 1024;
/** Milliseconds for which a message ID is stored after it was sent: longer than the lifetime of any copy. */
export const SEEN_MS: number = 9 * 24 * 3600 * 1000;
const LIFE_MS: number = MAX_NOTE_TTL_S * 1000;
const SKEW_MS: number = CLOCK_SKEW_S * 1000;

/**
 * `kept`: new and on disk. `known`: stored before. `full`: the mailbox has no room. `unknown_key`: it is sealed to a key
 * that the agent does not have. `refused`: it is invalid.
 */
export type Verdict = 'kept' | 'known' | 'full' | 'unknown_key' | 'refused';

/** The result for one note. */
export interface Receipt {
  readonly verdict: Verdict;
  /** Removes the copies of a note that was read; null for others. */
  readonly removal: { readonly digest: Uint8Array; readonly token: Uint8Array } | null;
}

type InboxParts = Pick<
  NotesDependencies,
  'store' | 'delegations' | 'clock' | 'log' | 'events' | 'newestDelegation' | 'isKnown'
> & { readonly keys: NoteKeys };

interface Opened {
  readonly note: NewNote;
  readonly seenUntil: number;
}

const REFUSED: Receipt = { verdict: 'refused', removal: null };

export class Inbox {
  readonly #deps: InboxParts;
  readonly #verifier: LetterVerifier;
  readonly #handlers = new Map<number, NoteHandler>();
  readonly #takers = new Map<number, NoteTaker>();

  constructor(dependencies: InboxParts) {
    this.#deps = dependencies;
    this.#verifier = new LetterVerifier(dependencies);
  }

  /** Sets the handler for the notes of a type, once. */
  onNote(msgType: number, handler: NoteHandler): void {
    if (this.#handlers.has(msgType)) throw new Error(`notes of type ${msgType} already have a receiver`);
    this.#handlers.set(msgType, handler);
  }

  /** Sets the receiver of the notes of a type instead of the mailbox, once. */
  claim(msgType: number, taker: NoteTaker): void {
    if (this.#takers.has(msgType)) throw new Error(`notes of type ${msgType} already have a receiver`);
    this.#takers.set(msgType, taker);
  }

  /**
   * Receives records of the mailbox of a local agent. Returns a receipt for each, in the same order. The signer of a
   * record does not matter: anyone can create an identity for it, and the letter inside has its own signature.
   */
  async accept(aid: Aid, records: readonly SignedRecord[]): Promise<Receipt[]> {
    const opened = await Promise.all(records.map((record) => this.#open(aid, record)));
    const { store, events } = this.#deps;
    // Also if nothing is new: a note counts as known only when it is on disk.
    return store.commit(() => {
      const message_ids: string[] = [];
      let cause: EventCause = STRANGERS;
      const receipts = opened.map((one): Receipt => {
        if ('verdict' in one) return one;
        const taker = this.#takers.get(one.note.msgType);
        if (taker !== undefined) return this.#handOver(one, taker);
        const verdict = this.#keep(one);
        if (verdict === 'kept') {
          message_ids.push(toHex(one.note.messageId));
          if (cause === STRANGERS) cause = causeOf(one.note.sender, this.#deps.isKnown(aid, one.note.sender));
        }
        return { verdict, removal: null };
      });
      if (message_ids.length > 0)
        events.emit(aid, 'mailbox.received', { count: message_ids.length, message_ids }, cause);
      return receipts;
    }, 'now');
  }

  /** Opens and verifies a note. Returns a receipt if it is not stored. */
  async #open(aid: Aid, record: SignedRecord): Promise<Opened | Receipt> {
    // protocol-notes.md, steps 6 to 12
    const { keys, store, clock, log } = this.#deps;
    const sealed = decodeNotePayload(record.payload);
    if (sealed === null || !equalBytes(sealed.mailbox, mailboxKey(aid))) return REFUSED;
    const opener = keys.opener(aid, sealed.keyId);
    if (opener === null) return { verdict: 'unknown_key', removal: null };
    try {
      const letter = decodeLetter(opener.open(sealed, aid), aid);
      if (!equalBytes(removalHash(letter.nonce), sealed.removalHash)) return REFUSED;
      const id = messageId(letter);
      const digest = recordDigest(record.encoded);
      const removal = { digest, token: letter.nonce };
      if (store.seen(aid, id)) return { verdict: 'known', removal: store.isStored(aid, id) ? null : removal };
      this.#checkTime(letter);
      await this.#verifier.verify(letter, opener.publicKey);
      const { sender, msgType, body, sentAt, nonce: token } = letter;
      const note = { aid, messageId: id, sender, msgType, body, sentAt, receivedAt: clock.now(), digest, token };
      return { note, seenUntil: sentAt + SEEN_MS };
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      log.debug({ aid, reason: error.message }, 'refused a note');
      return REFUSED;
    }
  }

  /** @throws SvcError `bad_record` */
  #checkTime({ sender, sentAt, delegation }: Letter): void {
    const now = this.#deps.clock.now();
    if (Math.max(sentAt, delegation.issuedAt * 1000) > now + SKEW_MS)
      throw new SvcError('bad_record', { message: 'The note is from the future.' });
    if (sentAt < now - LIFE_MS - SKEW_MS) throw new SvcError('bad_record', { message: 'The note has expired.' });
    const newest = this.#deps.newestDelegation(sender);
    if (delegation.issuedAt < newest && sentAt > newest * 1000 + SKEW_MS)
      throw new SvcError('bad_record', { message: 'The note was signed with a key that had been replaced.' });
  }

  /** Stores a note if there is room. Runs in a transaction. */
  #keep({ note, seenUntil }: Opened): Verdict {
    const { store } = this.#deps;
    if (store.seen(note.aid, note.messageId)) return 'known';
    const size = noteSize(note.body);
    const all = store.load(note.aid);
    if (all.count >= MAX_MAILBOX_NOTES || all.bytes + size > MAX_MAILBOX_BYTES) return 'full';
    const own = store.load(note.aid, note.sender);
    if (own.count >= MAX_SENDER_NOTES || own.bytes + size > MAX_SENDER_BYTES) return 'full';
    const isKnown = this.#deps.isKnown(note.aid, note.sender);
    const isCrowded = all.count >= MAX_STRANGERS_NOTES || all.bytes + size > MAX_STRANGERS_BYTES;
    if (!isKnown && isCrowded && !this.#strangersHaveRoom(note.aid, size)) return 'full';
    // The agent may have been deleted while its note was opened.
    if (!store.add(note, seenUntil, isKnown)) return 'refused';
    this.#tell(note);
    return 'kept';
  }

  #strangersHaveRoom(aid: Aid, size: number): boolean {
    const strangers = [...this.#deps.store.senders(aid)].filter(([sender]) => !this.#deps.isKnown(aid, sender));
    const sum = (of: (load: MailboxLoad) => number): number => strangers.reduce((n, [, load]) => n + of(load), 0);
    return sum(({ count }) => count) < MAX_STRANGERS_NOTES && sum(({ bytes }) => bytes) + size <= MAX_STRANGERS_BYTES;
  }

  /** Gives a note to the receiver of its type, once. Runs in a transaction. */
  #handOver({ note, seenUntil }: Opened, taker: NoteTaker): Receipt {
    const { store, log } = this.#deps;
    const { aid, messageId: id, digest, token, msgType } = note;
    const removal = { digest, token };
    if (store.seen(aid, id)) return { verdict: 'known', removal };
    try {
      return store.transaction(() => {
        const taken = taker(aid, viewOf(note));
        if (taken === 'full') return { verdict: 'full', removal: null };
        if (taken === 'kept') store.markSeen(aid, id, seenUntil, this.#deps.isKnown(aid, note.sender));
        return { verdict: 'kept', removal };
      });
    } catch (error) {
      log.error({ aid, msgType, error }, 'the receiver of a note failed');
      return REFUSED;
    }
  }

  #tell(note: NewNote): void {
    const { aid, msgType } = note;
    const handler = this.#handlers.get(msgType);
    if (handler === undefined) return;
    try {
      this.#deps.store.transaction(() => handler(aid, viewOf(note)));
    } catch (error) {
      this.#deps.log.error({ aid, msgType, error }, 'the handler of a note failed');
    }
  }
}

/** A note as callers see it. */
export function viewOf({ messageId: id, sender, msgType, body, sentAt }: Omit<NewNote, 'aid' | 'receivedAt'>): Note {
  return { messageId: toHex(id), sender, msgType, body, sentAt };
}
