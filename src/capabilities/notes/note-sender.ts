/**
 * Sends notes: sealed to the recipient's key, straight to its node where it answers, and always
 * also to the record network, where they wait. Where the recipient's node has one, its copies follow (`note-copies.ts`).
 */
import { createHash, randomBytes } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { toHex } from '../../foundation/bytes.ts';
import { encodeCbor } from '../../foundation/cbor.ts';
import { assertClockNotAhead, type Clock, type Timer, unixSeconds } from '../../foundation/clock.ts';
import { abortable, deadline } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { MAX_NOTE_BODY_BYTES, MAX_NOTE_TYPE } from '../../foundation/domain/notes.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import { checkWindow } from '../../foundation/identity/grant.ts';
import type { Log } from '../../foundation/log.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { type SignedRecord, signRecord } from '../../foundation/records/record.ts';
import { MAX_NOTE_TTL_S, RECORD, REMOVAL_TOKEN_BYTES } from '../../foundation/records/types.ts';
import type { NoteStore } from '../../foundation/store/notes.ts';
import { EphemeralIdentities } from './ephemeral-identities.ts';
import { encodeLetter, type LetterContent, messageId } from './letter.ts';
import type { LeftCopy, NoteCopies } from './note-copies.ts';
import type { NoteLinks } from './note-links.ts';
import type { NoteOutbox } from './note-outbox.ts';
import type { RecipientKeys } from './recipient-keys.ts';
import { sealLetter } from './sealing.ts';
import type { LocalIdentity, MailNetwork, SendResult } from './types.ts';
import type { NoteAnswer } from './wire.ts';

/** Notes that one local agent may send per second, and at once. */
const SENDS_PER_S = 20;
const SEND_BURST = 300;
const MAX_SENDERS = 16_384;
/** Milliseconds that the recipient's node has for its answer before the note goes to the network as well. */
export const HEAD_START_MS = 100;
/** Milliseconds that the slower of the two ways may take once the other has worked. */
const GRACE_MS = 1500;
/** Where the recipient's node has the note and it cannot be left to be copied, so many nodes of the network are enough to answer. */
const ENOUGH_REPLICAS = 2;
/** Milliseconds for both ways together. */
const SEND_TIMEOUT_MS = 20_000;
/** Milliseconds for which sending the same content again goes on with a failed attempt. */
export const RETRY_MS: number = 3600_000;
/** How often a note is sealed anew because the recipient has another key by now. */
const MAX_SEALINGS = 2;

interface NoteSenderDependencies {
  readonly network: Pick<MailNetwork, 'put' | 'reachability'>;
  readonly links: NoteLinks;
  readonly recipients: RecipientKeys;
  readonly copies: Pick<NoteCopies, 'leave' | 'release' | 'drop'>;
  readonly outbox: Pick<NoteOutbox, 'add'>;
  readonly store: NoteStore;
  readonly clock: Clock;
  readonly log: Log;
  identity(aid: Aid): LocalIdentity | null;
  /** See `NotesDependencies`. */
  clockAheadMs?(): number;
}

export interface Posted extends SendResult {
  /** To be called once: whether who asked for it has heard that the note was sent. */
  readonly settle: (heard: boolean) => void;
}

export class NoteSender {
  readonly #deps: NoteSenderDependencies;
  readonly #rate: RateLimiter;
  /** Contents that are under way: the same content beside them is another note. */
  readonly #underWay = new Set<string>();
  readonly #identities = new EphemeralIdentities();

  constructor(dependencies: NoteSenderDependencies) {
    this.#deps = dependencies;
    this.#rate = new RateLimiter({ perSecond: SENDS_PER_S, burst: SEND_BURST, maxKeys: MAX_SENDERS }, dependencies);
  }

  /**
   * Sends a note. It is sent once another node keeps it: the recipient's node or a node of the network. If it fails, or
   * the caller never hears that it was sent, sending the same content again within an hour continues with the same note:
   * a copy that did arrive is not shown twice.
   * @param queues if no other node keeps the note for now, it is queued instead
   * @throws SvcError `not_found`, `too_large`, `invalid_request`, `rate_limited`, `resolve_failed`,
   *   `bad_delegation`, `not_acknowledged`, `quota_exceeded`, `timeout`, `clock_wrong`
   */
  async send(sender: Aid, recipient: Aid, msgType: number, body: Uint8Array, queues: boolean): Promise<Posted> {
    const identity = this.#check(sender, msgType, body);
    const { store, clock } = this.#deps;
    const fresh = { nonce: new Uint8Array(randomBytes(REMOVAL_TOKEN_BYTES)), sentAt: clock.now() };
    const fingerprint = fingerprintOf(recipient, msgType, body);
    const name = `${sender} ${toHex(fingerprint)}`;
    if (this.#underWay.has(name)) {
      const letter = { sender, recipient, msgType, body, ...fresh };
      const result = await this.#deliverOrQueue(identity, letter, queues);
      return { ...result, settle: () => {} };
    }
    this.#underWay.add(name);
    try {
      const attempt = await store.attempt(sender, fingerprint, fresh, clock.now() - RETRY_MS);
      const letter = { sender, recipient, msgType, body, ...attempt };
      const result = await this.#deliverOrQueue(identity, letter, queues);
      const settle = (heard: boolean): void => {
        this.#underWay.delete(name);
        if (heard) store.endAttempt(sender, fingerprint);
      };
      return { ...result, settle };
    } catch (error) {
      this.#underWay.delete(name);
      throw error;
    }
  }

  /** Sends a queued note again, under the id that it has. @throws SvcError as `send` */
  async resend(letter: LetterContent, signal: AbortSignal): Promise<SendResult> {
    return await this.#deliver(this.#identity(letter.sender), letter, signal);
  }

  async #deliverOrQueue(identity: LocalIdentity, letter: LetterContent, queues: boolean): Promise<SendResult> {
    const { outbox, log, network } = this.#deps;
    try {
      return await this.#deliver(identity, letter);
    } catch (error) {
      if (!queues || !isPassing(error, network.reachability().ready)) throw error;
      log.debug({ aid: letter.sender, error }, 'a note is queued');
      outbox.add(letter);
      return { messageId: toHex(messageId(letter)), replicas: 0, delivered: false, queued: true };
    }
  }

  #identity(sender: Aid): LocalIdentity {
    const identity = this.#deps.identity(sender);
    if (identity === null) throw noSuchAgent(sender);
    checkWindow(identity.delegation, unixSeconds(this.#deps.clock));
    return identity;
  }

  #check(sender: Aid, msgType: number, body: Uint8Array): LocalIdentity {
    const identity = this.#identity(sender);
    if (!Number.isSafeInteger(msgType) || msgType < 0 || msgType > MAX_NOTE_TYPE)
      throw new SvcError('invalid_request', { message: `msg_type is 0 to ${MAX_NOTE_TYPE}.` });
    if (body.length > MAX_NOTE_BODY_BYTES)
      throw new SvcError('too_large', {
        message: `The body has ${body.length} bytes; a note takes ${MAX_NOTE_BODY_BYTES}.`,
        details: { size: body.length, limit: MAX_NOTE_BODY_BYTES },
      });
    if (!this.#rate.take(sender))
      throw new SvcError('rate_limited', {
        message: 'This agent sends too many notes.',
        details: { retry_after_s: Math.ceil(this.#rate.retryAfterMs(sender) / 1000) },
      });
    return identity;
  }

  async #deliver(identity: LocalIdentity, letter: LetterContent, outer?: AbortSignal): Promise<SendResult> {
    using limit = deadline(this.#deps.clock, SEND_TIMEOUT_MS, outer);
    const { signal } = limit;
    for (let sealing = 1; ; sealing++) {
      const record = await this.#seal(identity, letter, sealing > 1, signal);
      const isLast = sealing === MAX_SEALINGS;
      const { replicas, answer } = await this.#bothWays(letter, record, isLast, signal);
      // A copy that its recipient cannot open is of no use, wherever it is kept.
      if (answer === 'unknown_key' && !isLast) continue;
      const delivered = isTaken(answer);
      // Once the answer is on its way.
      setImmediate(() => this.#identities.prepare());
      if (replicas > 0 || delivered) return { messageId: toHex(messageId(letter)), replicas, delivered, queued: false };
      throw undelivered(answer);
    }
  }

  async #seal(
    identity: LocalIdentity,
    letter: LetterContent,
    anew: boolean,
    signal: AbortSignal,
  ): Promise<SignedRecord> {
    const { recipients } = this.#deps;
    const key = await recipients.find(letter.sender, letter.recipient, anew, signal);
    // The search for the key has brought the times of other nodes.
    assertClockNotAhead(this.#deps.clockAheadMs?.() ?? 0);
    const { key: once, delegation, box } = this.#identities.take();
    const payload = sealLetter(encodeLetter(letter, identity, key), letter.nonce, letter.recipient, key, box);
    const timestamp = unixSeconds(this.#deps.clock);
    const ttl = MAX_NOTE_TTL_S;
    return signRecord({ aid: delegation.agent, type: RECORD.note, seq: 1, timestamp, ttl, payload, delegation }, once);
  }

  /**
   * Hands the note over, and stores it on the network as well where the recipient's node does not answer soon. Once one
   * has worked, the other one gets a moment more; what is handed over and left to be copied needs none.
   */
  async #bothWays(letter: LetterContent, record: SignedRecord, isLast: boolean, signal: AbortSignal) {
    // protocol-notes.md, step 5
    const outcome: Outcome = { replicas: 0, answer: null };
    const { network, links, clock, log } = this.#deps;
    const { sender, recipient } = letter;
    const enough = Promise.withResolvers<void>();
    const stored = Promise.withResolvers<void>();
    const timers: Timer[] = [];
    const after = (ms: number, work: () => void) => timers.push(clock.after(ms, work));
    const grace = () => after(GRACE_MS, () => enough.resolve());
    const kept = (replicas: number): void => {
      outcome.replicas = replicas;
      if (isTaken(outcome.answer) && replicas >= ENOUGH_REPLICAS) enough.resolve();
    };
    let isStoring = false;
    const store = (): void => {
      if (isStoring) return;
      isStoring = true;
      const storing = network.put(mailboxKey(recipient), record, { signal, onKept: kept }).then(
        ({ replicas }) => {
          kept(replicas);
          if (replicas > 0) grace();
        },
        (error: unknown) => log.debug({ aid: sender, error }, 'a note was not stored'),
      );
      stored.resolve(storing);
    };
    after(HEAD_START_MS, store);
    const isGone = Promise.withResolvers<boolean>();
    const offering = links.offer(sender, recipient, record, { signal, onGone: () => isGone.resolve(true) });
    const handed = offering.then(
      (answer) => {
        outcome.answer = answer;
        kept(outcome.replicas);
        if (answer === 'unknown_key' && !isLast) enough.resolve();
      },
      (error: unknown) => {
        log.debug({ aid: sender, error }, 'a note was not handed over');
        isGone.resolve(false);
      },
    );
    const left = this.#leave(letter, record, isGone.promise);
    const taken = Promise.all([left, handed]).then(([copy]) => {
      if (outcome.answer === 'unknown_key' && !isLast) return;
      if (!isTaken(outcome.answer)) store();
      else if (copy !== null) enough.resolve();
      else {
        store();
        grace();
      }
    });
    try {
      await abortable(Promise.race([Promise.all([stored.promise, taken]), enough.promise]), signal);
    } finally {
      for (const timer of timers) timer.cancel();
      const isStored = isStoring ? stored.promise.then(() => outcome.replicas > 0) : Promise.resolve(false);
      detach(this.#settleCopy(left, isTaken(outcome.answer), isStored));
    }
    return { ...outcome };
  }

  /** Leaves a note to be copied, once it is on its way to the recipient; null where it never was, or that cannot be. */
  async #leave(
    { sender, recipient }: LetterContent,
    record: SignedRecord,
    isGone: Promise<boolean>,
  ): Promise<LeftCopy | null> {
    if (!(await isGone)) return null;
    // What is about to be written leaves first.
    await turn();
    try {
      return await this.#deps.copies.leave(recipient, record);
    } catch (error) {
      this.#deps.log.debug({ aid: sender, error }, 'a note cannot be left to be copied');
      return null;
    }
  }

  /** Has the copies go out of what its recipient has, unless that was done already. */
  async #settleCopy(left: Promise<LeftCopy | null>, isDelivered: boolean, isStored: Promise<boolean>): Promise<void> {
    const { copies, log } = this.#deps;
    try {
      const copy = await left;
      if (copy === null) return;
      if (isDelivered && !(await isStored)) copies.release(copy);
      else copies.drop(copy);
    } catch (error) {
      log.warn({ error }, 'what becomes of the copies of a note could not be written down');
    }
  }
}

/** What has become of a note so far. */
interface Outcome {
  replicas: number;
  answer: NoteAnswer | null;
}

/** True where the recipient's node has the note on disk. */
function isTaken(answer: NoteAnswer | null): boolean {
  return answer === 'kept' || answer === 'known';
}

/** True if the same note may be sent later: no node has refused it. */
function isPassing(error: unknown, isReady: boolean): boolean {
  if (!(error instanceof SvcError)) return false;
  if (error.code === 'not_acknowledged') return error.details?.['recipient_says'] === undefined;
  // Without another node, nothing is known of whether the recipient exists.
  if (error.code === 'resolve_failed') return !isReady;
  return error.code === 'timeout' || error.code === 'network_not_ready' || error.code === 'network_unavailable';
}

function undelivered(answer: NoteAnswer | null): SvcError {
  if (answer === 'full')
    return new SvcError('quota_exceeded', {
      message: "The recipient's mailbox is full, and no node of the network keeps the note. Send it again later.",
    });
  return new SvcError('not_acknowledged', {
    message:
      'Neither the recipient nor a node of the network took the note. Send it again later; it will not be shown twice.',
    details: answer === null ? {} : { recipient_says: answer },
  });
}

function fingerprintOf(recipient: Aid, msgType: number, body: Uint8Array): Uint8Array {
  const content = encodeCbor({ r: aidToBytes(recipient), y: msgType, b: body });
  return new Uint8Array(createHash('sha256').update(content).digest());
}
