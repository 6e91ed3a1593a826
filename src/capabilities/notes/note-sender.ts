/**
 * Sends notes: sealed to the recipient's key, over a link to its node and to the record network. A note that no other
 * node stores is queued on disk and sent again.
 *
 * One attempt to send a sealed record (`Delivery`) has these states. The steps are in docs/protocol-notes.md, "Send".
 *
 * | State | Link to the recipient's node | Record network | Next state |
 * |---|---|---|---|
 * | offering | no answer yet | no request | copying, both, storing, done |
 * | both | no answer yet | request sent | copying, waiting, storing |
 * | waiting | no answer yet | final result | copying, done |
 * | copying | it has the note | maybe a request | done when the copies are on disk here, otherwise storing |
 * | storing | final result | request sent | done |
 * | done | | | |
 *
 * | Event | What happens |
 * |---|---|
 * | the recipient's node has the note | copying: the copies for the network are written to disk |
 * | it does not know the key, and the note can be sealed again | done |
 * | another answer, or the link fails | storing; from waiting: done |
 * | three round trips (100 ms to 1 s) in offering, or 1.5 without a packet of the recipient's node | both |
 * | the network has its final result | from both: done with two replicas, otherwise waiting; from storing: done |
 * | two nodes of the network and the recipient's node have the note | done |
 * | 1.5 s after one side succeeded | done |
 */
import { createHash, randomBytes } from 'node:crypto';
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import { toHex } from '../../foundation/bytes.ts';
import { encodeCbor } from '../../foundation/cbor.ts';
import { assertClockNotAhead, type Timer, unixSeconds } from '../../foundation/clock.ts';
import { WorkUnderWay } from '../../foundation/concurrency.ts';
import { abortable } from '../../foundation/deadline.ts';
import { MAX_NOTE_BODY_BYTES, MAX_NOTE_TYPE, MAX_QUEUED_NOTES } from '../../foundation/domain/notes.ts';
import { REPEAT_MS } from '../../foundation/domain/time.ts';
import { DueQueue } from '../../foundation/due-queue.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import { selfDelegation } from '../../foundation/identity/delegation.ts';
import { checkWindow } from '../../foundation/identity/grant.ts';
import { KeyPair } from '../../foundation/identity/keys.ts';
import { JoinedRequests } from '../../foundation/joined-requests.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { type SignedRecord, signRecord } from '../../foundation/records/record.ts';
import { MAX_NOTE_TTL_S, RECORD, REMOVAL_TOKEN_BYTES } from '../../foundation/records/types.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { QueuedNote } from '../../foundation/store/note-outbox.ts';
import { noteSize } from '../../foundation/store/notes.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import type { NearbyNodes } from '../../network/records/types.ts';
import { encodeLetter, type LetterContent, messageId, sealLetter } from './letter.ts';
import type { NoteCopies } from './note-copies.ts';
import type { NoteAnswer, NoteLinks, RecipientKeys } from './note-links.ts';
import type { NotesDependencies } from './types.ts';

/** Rate and burst of notes from one local agent. */
const SENDS_PER_S = 20;
const SEND_BURST = 300;
const MAX_SENDERS = 16_384;
/**
 * Time without an answer of the recipient's node after which the note is sent to the network too: two round trips for a
 * connection and one for the note, within these limits in milliseconds.
 */
const HEAD_START_RTTS = 3;
/** The same if no packet of the recipient's node has arrived. */
const SILENCE_RTTS = 1.5;
export const HEAD_START_MS = 100;
const MAX_HEAD_START_MS = 1000;
/** Milliseconds that the slower side has after the other one succeeded. */
export const GRACE_MS = 1500;
/** Nodes of the network that are enough to answer the sender. */
const ENOUGH_REPLICAS = 2;
/** Milliseconds for one note. */
const SEND_TIMEOUT_MS = 20_000;
/** The recipient may have another key than the one found first. */
const MAX_SEALINGS = 2;

/** Queued bytes of one agent. */
export const MAX_QUEUED_NOTE_BYTES: number = 16 * 1024 * 1024;
/** Queued notes and bytes of all agents. */
const MAX_ALL_QUEUED_NOTES = 10_000;
const MAX_ALL_QUEUED_BYTES: number = 128 * 1024 * 1024;
/** Milliseconds until a note expires. */
export const QUEUED_LIFE_MS: number = MAX_NOTE_TTL_S * 1000;
/** Milliseconds until the next attempt. */
const RETRY: JitteredBackoff = { firstMs: 5000, maxMs: 300_000, jitter: 0.3 };
/** Notes that are sent concurrently, in total and to one recipient. */
const AT_ONCE = { total: 8, perKey: 4 } as const;

/** How sending went. */
export interface SendResult {
  readonly messageId: string;
  /** Nodes of the record network that store the note. */
  readonly replicas: number;
  /** The recipient's node has it. */
  readonly delivered: boolean;
  /** No other node has it. It is on disk here, and sent again until another node has it or it expires. */
  readonly queued: boolean;
}

export interface Posted extends SendResult {
  /** Call it once, with whether the client received the result. */
  readonly settle: (heard: boolean) => void;
}

type SenderParts = Pick<
  NotesDependencies,
  'store' | 'network' | 'clock' | 'log' | 'identity' | 'clockAheadMs' | 'usualRttMs' | 'outbox' | 'events' | 'random'
> & {
  readonly links: NoteLinks;
  readonly recipients: RecipientKeys;
  readonly copies: NoteCopies;
};

export class NoteSender {
  readonly #deps: SenderParts;
  readonly #rate: RateLimiter;
  readonly #requests = new JoinedRequests<SendResult>();
  readonly #attempts = new WorkUnderWay();
  readonly #stop = new AbortController();
  readonly #outbox: NoteOutbox;

  constructor(parts: SenderParts) {
    this.#deps = parts;
    this.#rate = new RateLimiter({ perSecond: SENDS_PER_S, burst: SEND_BURST, maxKeys: MAX_SENDERS }, parts);
    this.#outbox = new NoteOutbox(parts, (letter, signal) => this.#deliver(letter, signal));
  }

  /** The notes that no other node stores yet. */
  get outbox(): NoteOutbox {
    return this.#outbox;
  }

  /** Ends attempts under way. Notes of clients are queued, so they continue after the next start. */
  async stop(): Promise<void> {
    this.#stop.abort(new SvcError('cancelled'));
    await Promise.all([this.#attempts.idle(), this.#outbox.stop()]);
  }

  /**
   * Sends a note, and resolves when another node stores it: the recipient's node or a node of the network. If it fails,
   * or the client never receives the result, sending the same content within an hour continues with the same note, so
   * the recipient does not see it twice. While the first request is under way, later ones get its result.
   * @param queues queue the note if no other node stores it
   * @throws SvcError `not_found`, `too_large`, `invalid_request`, `rate_limited`, `resolve_failed`,
   *   `bad_delegation`, `not_acknowledged`, `quota_exceeded`, `timeout`, `clock_wrong`
   */
  async send(sender: Aid, recipient: Aid, msgType: number, body: Uint8Array, queues: boolean): Promise<Posted> {
    this.#check(sender, msgType, body);
    const fingerprint = fingerprintOf(recipient, msgType, body);
    const name = `${sender} ${toHex(fingerprint)} ${queues}`;
    const { result, settle } = await this.#requests.join(
      name,
      () => this.#attempts.run(() => this.#attempt({ sender, recipient, msgType, body }, fingerprint, queues)),
      () => this.#deps.store.endAttempt(sender, fingerprint),
    );
    return { ...result, settle };
  }

  async #attempt(
    content: Omit<LetterContent, 'nonce' | 'sentAt'>,
    fingerprint: Uint8Array,
    queues: boolean,
  ): Promise<SendResult> {
    const { store, clock } = this.#deps;
    this.#stop.signal.throwIfAborted();
    const fresh = { nonce: new Uint8Array(randomBytes(REMOVAL_TOKEN_BYTES)), sentAt: clock.now() };
    const attempt = await store.attempt(content.sender, fingerprint, fresh, clock.now() - REPEAT_MS);
    return this.#deliverOrQueue({ ...content, ...attempt }, queues);
  }

  #check(sender: Aid, msgType: number, body: Uint8Array): void {
    this.#identity(sender);
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
  }

  #identity(sender: Aid): LocalIdentity {
    const identity = this.#deps.identity(sender);
    if (identity === null) throw noSuchAgent(sender);
    checkWindow(identity.delegation, unixSeconds(this.#deps.clock));
    return identity;
  }

  async #deliverOrQueue(letter: LetterContent, queues: boolean): Promise<SendResult> {
    const { log, network } = this.#deps;
    try {
      return await this.#deliver(letter, this.#stop.signal);
    } catch (error) {
      if (!queues || !(this.#stop.signal.aborted || isTemporary(error, network.reachability().ready))) throw error;
      log.debug({ aid: letter.sender, error }, 'a note is queued');
      this.#outbox.add(letter);
      return { messageId: toHex(messageId(letter)), replicas: 0, delivered: false, queued: true };
    }
  }

  /** Seals a note and sends it. If the recipient does not know the key, once more with the key that its node names. */
  async #deliver(letter: LetterContent, outer?: AbortSignal): Promise<SendResult> {
    using limit = awakeTimeout(this.#deps.clock, SEND_TIMEOUT_MS, outer);
    const { signal } = limit;
    const { recipients, network } = this.#deps;
    // A recipient without recent notes may be off, so the nodes for a copy are searched beside the lookup of its key.
    const near = recipients.knows(letter.recipient) ? null : network.near(mailboxKey(letter.recipient), null);
    try {
      return await this.#deliverNear(letter, near, signal);
    } catch (error) {
      near?.stop();
      throw error;
    }
  }

  async #deliverNear(letter: LetterContent, near: NearbyNodes | null, signal: AbortSignal): Promise<SendResult> {
    for (let sealing = 1; ; sealing++) {
      const record = await this.#seal(letter, sealing > 1, signal);
      const isLast = sealing === MAX_SEALINGS;
      const delivery = new Delivery(this.#deps, letter, record, isLast, near);
      const { replicas, answer } = await delivery.run(signal);
      // The recipient cannot open this copy, wherever it is stored.
      if (answer === 'unknown_key' && !isLast) continue;
      const delivered = isTaken(answer);
      if (replicas > 0 || delivered) return { messageId: toHex(messageId(letter)), replicas, delivered, queued: false };
      throw undelivered(answer);
    }
  }

  /** @param asksAgain the recipient does not know the key that was found before */
  async #seal(letter: LetterContent, asksAgain: boolean, signal: AbortSignal): Promise<SignedRecord> {
    const { recipients, clock } = this.#deps;
    const identity = this.#identity(letter.sender);
    const key = await recipients.find(letter.sender, letter.recipient, asksAgain, signal);
    // The lookup also brought timestamps of other nodes.
    assertClockNotAhead(this.#deps.clockAheadMs?.() ?? 0);
    const payload = sealLetter(encodeLetter(letter, identity, key), letter.nonce, letter.recipient, key);
    // The record is signed by an identity made for it, so that it does not show its sender.
    const once = KeyPair.generate();
    const delegation = selfDelegation(once);
    const timestamp = unixSeconds(clock);
    const ttl = MAX_NOTE_TTL_S;
    return signRecord({ aid: delegation.agent, type: RECORD.note, seq: 1, timestamp, ttl, payload, delegation }, once);
  }
}

/** One attempt to send a sealed record. The states are in the table at the top of this file. */
class Delivery {
  readonly #deps: SenderParts;
  readonly #letter: LetterContent;
  readonly #record: SignedRecord;
  readonly #isLast: boolean;
  readonly #near: NearbyNodes | null;
  readonly #done = Promise.withResolvers<void>();
  #state: 'offering' | 'both' | 'waiting' | 'copying' | 'storing' | 'done' = 'offering';
  #answer: NoteAnswer | null = null;
  #replicas = 0;
  /** The request to the network. */
  #put: 'none' | 'running' | 'ended' = 'none';
  #copy: number | null = null;
  /** The end of the head start, or of the grace period. */
  #timer: Timer | null = null;

  /** @param near a running search for the nodes of the mailbox */
  constructor(
    parts: SenderParts,
    letter: LetterContent,
    record: SignedRecord,
    isLast: boolean,
    near: NearbyNodes | null,
  ) {
    this.#near = near;
    this.#deps = parts;
    this.#letter = letter;
    this.#record = record;
    this.#isLast = isLast;
  }

  /** The nodes of the network that store the note, and the answer of the recipient's node; null if it did not answer. */
  async run(signal: AbortSignal): Promise<{ readonly replicas: number; readonly answer: NoteAnswer | null }> {
    // protocol-notes.md, step 5
    const { links, clock, log } = this.#deps;
    const { sender, recipient } = this.#letter;
    const headStartMs = HEAD_START_RTTS * (this.#deps.usualRttMs?.() ?? 0);
    this.#timer = clock.after(Math.min(MAX_HEAD_START_MS, Math.max(HEAD_START_MS, headStartMs)), () =>
      this.#onHeadStartOver(signal),
    );
    const silence = {
      minMs: HEAD_START_MS,
      roundTrips: SILENCE_RTTS,
      usualRttMs: this.#deps.usualRttMs?.() ?? 0,
      onSilence: () => this.#onHeadStartOver(signal),
    };
    links.offer(sender, recipient, this.#record, signal, silence).then(
      (answer) => this.#onAnswer(answer, signal),
      (error: unknown) => {
        log.debug({ aid: sender, error }, 'a note was not delivered over a link');
        this.#onLinkEnded(signal);
      },
    );
    try {
      await abortable(this.#done.promise, signal);
      return { replicas: this.#replicas, answer: this.#answer };
    } finally {
      this.#finish();
    }
  }

  #onHeadStartOver(signal: AbortSignal): void {
    if (this.#state !== 'offering') return;
    this.#state = 'both';
    this.#store(signal);
  }

  #onAnswer(answer: NoteAnswer, signal: AbortSignal): void {
    if (this.#state === 'done') return;
    this.#answer = answer;
    if (answer === 'unknown_key' && !this.#isLast) return this.#finish();
    if (!isTaken(answer)) return this.#onLinkEnded(signal);
    if (this.#replicas >= ENOUGH_REPLICAS) return this.#finish();
    this.#state = 'copying';
    this.#deps.copies.leave(this.#letter.recipient, this.#record, this.#put === 'none').then(
      (copy) => this.#onCopied(copy, signal),
      (error: unknown) => {
        this.#deps.log.debug({ aid: this.#letter.sender, error }, 'the copies of a note cannot be written to disk');
        this.#onCopied(null, signal);
      },
    );
  }

  /** The recipient's node does not have the note. */
  #onLinkEnded(signal: AbortSignal): void {
    if (this.#state === 'done') return;
    if (this.#put === 'ended') return this.#finish();
    this.#state = 'storing';
    this.#store(signal);
  }

  #onCopied(copy: number | null, signal: AbortSignal): void {
    this.#copy = copy;
    this.#dropCopy();
    if (this.#state !== 'copying') return;
    if (copy !== null || this.#put === 'ended') return this.#finish();
    this.#state = 'storing';
    this.#store(signal);
    this.#allowGrace();
  }

  /** Sends the note to the network, unless that happened before. */
  #store(signal: AbortSignal): void {
    if (this.#put !== 'none') return;
    this.#put = 'running';
    const { network, log } = this.#deps;
    const onKept = (replicas: number): void => this.#onKept(replicas);
    const options = { signal, onKept };
    const near = this.#near;
    const put =
      near === null
        ? network.put(mailboxKey(this.#letter.recipient), this.#record, options)
        : near.put(this.#record, options);
    put.then(
      ({ replicas }) => this.#onStored(replicas),
      (error: unknown) => {
        log.debug({ aid: this.#letter.sender, error }, 'the network did not store a note');
        this.#onStored(this.#replicas);
      },
    );
  }

  #onKept(replicas: number): void {
    this.#replicas = replicas;
    if (isTaken(this.#answer) && replicas >= ENOUGH_REPLICAS) this.#finish();
  }

  #onStored(replicas: number): void {
    this.#put = 'ended';
    this.#onKept(replicas);
    this.#dropCopy();
    if (this.#state === 'storing') return this.#finish();
    if (this.#state !== 'both') return;
    // The link continues, and the recipient does not see the note twice.
    if (replicas >= ENOUGH_REPLICAS) return this.#finish();
    this.#state = 'waiting';
    if (replicas > 0) this.#allowGrace();
  }

  #allowGrace(): void {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.after(GRACE_MS, () => this.#finish());
  }

  #finish(): void {
    this.#state = 'done';
    this.#timer?.cancel();
    if (this.#put === 'none') this.#near?.stop();
    this.#done.resolve();
  }

  /** The network stores the note already. */
  #dropCopy(): void {
    const { copies, log } = this.#deps;
    if (this.#copy === null || this.#put !== 'ended' || this.#replicas === 0) return;
    try {
      copies.drop(this.#copy);
    } catch (error) {
      log.warn({ error }, 'a note copy that is no longer needed cannot be deleted');
    }
    this.#copy = null;
  }
}

/** True if the recipient's node has the note on disk. */
function isTaken(answer: NoteAnswer | null): boolean {
  return answer === 'kept' || answer === 'known';
}

/** True if the same note may be sent later: no node has refused it. */
function isTemporary(error: unknown, isReady: boolean): boolean {
  if (!(error instanceof SvcError)) return false;
  if (error.code === 'not_acknowledged') return error.details?.['recipient_says'] === undefined;
  // Without another node, it is unknown whether the recipient exists.
  if (error.code === 'resolve_failed') return !isReady;
  return error.code === 'timeout' || error.code === 'network_not_ready' || error.code === 'network_unavailable';
}

function undelivered(answer: NoteAnswer | null): SvcError {
  if (answer === 'full')
    return new SvcError('quota_exceeded', {
      message: "The recipient's mailbox is full, and no node of the network stores the note. Send it again later.",
    });
  return new SvcError('not_acknowledged', {
    message:
      'Neither the recipient nor a node of the network took the note. Send it again later; the recipient will not see it twice.',
    details: answer === null ? {} : { recipient_says: answer },
  });
}

function fingerprintOf(recipient: Aid, msgType: number, body: Uint8Array): Uint8Array {
  const content = encodeCbor({ r: aidToBytes(recipient), y: msgType, b: body });
  return new Uint8Array(createHash('sha256').update(content).digest());
}

/**
 * The notes that no other node stores yet: on disk before the client gets its answer, and sent again, after restarts
 * too, until another node has them or they expire.
 */
export class NoteOutbox {
  readonly #deps: Pick<NotesDependencies, 'outbox' | 'network' | 'clock' | 'log' | 'events' | 'random'>;
  readonly #send: (letter: LetterContent, signal: AbortSignal) => Promise<SendResult>;
  readonly #queue: DueQueue<QueuedNote>;

  /** @param send rejects if no other node stores the note */
  constructor(parts: SenderParts, send: (letter: LetterContent, signal: AbortSignal) => Promise<SendResult>) {
    this.#deps = parts;
    this.#send = send;
    this.#queue = new DueQueue(
      { name: 'queued notes', retry: RETRY, atOnce: AT_ONCE },
      {
        ...parts,
        table: parts.outbox.notes,
        random: () => parts.random(),
        work: (note, signal) => this.#attempt(note, signal),
      },
    );
  }

  /** Continues with the notes from before the restart. */
  start(): void {
    this.#queue.start();
  }

  /** Waits for running attempts, then stops. */
  async stop(): Promise<void> {
    await this.#queue.stop();
  }

  /**
   * Queues a note: it is on disk when this returns.
   * @throws SvcError `quota_exceeded`, `not_writable`
   */
  add(letter: LetterContent): void {
    const { outbox, clock } = this.#deps;
    const { sender, recipient, msgType, body, nonce, sentAt } = letter;
    const size = noteSize(body);
    const [own, all] = [outbox.load(sender), outbox.load()];
    const isFull = own.count >= MAX_QUEUED_NOTES || own.bytes + size > MAX_QUEUED_NOTE_BYTES;
    if (isFull || all.count >= MAX_ALL_QUEUED_NOTES || all.bytes + size > MAX_ALL_QUEUED_BYTES)
      throw new SvcError('quota_exceeded', {
        message: `No other node stores the note, and ${own.count} notes of this agent are queued already. Send it again when the network is back.`,
      });
    const dueAt = clock.now() + backoff(RETRY, 1, this.#deps.random());
    const until = sentAt + QUEUED_LIFE_MS;
    const id = messageId(letter);
    outbox.add({ aid: sender, messageId: id, recipient, msgType, body, nonce, sentAt, until, dueAt, attempts: 0 });
    this.#queue.soon();
  }

  async #attempt(note: QueuedNote, signal: AbortSignal): Promise<void> {
    const { clock, network } = this.#deps;
    if (note.until <= clock.now()) return this.#end(note, () => this.#expired(note));
    if (!network.reachability().ready) throw new SvcError('network_not_ready');
    const { replicas, delivered } = await this.#send({ ...note, sender: note.aid }, signal);
    this.#end(note, () => this.#sent(note, replicas, delivered));
  }

  /** Removes a note in one transaction with its event, unless it was deleted with its agent meanwhile. */
  #end({ aid, messageId: id }: QueuedNote, emit: () => void): void {
    const { outbox } = this.#deps;
    outbox.transaction(() => {
      if (outbox.remove(aid, id)) emit();
    });
  }

  #sent({ aid, messageId: id, recipient }: QueuedNote, replicas: number, delivered: boolean): void {
    const data = { message_id: toHex(id), recipient, replicas, delivered };
    this.#deps.events.emit(aid, 'mailbox.sent', data);
  }

  #expired({ aid, messageId: id, recipient }: QueuedNote): void {
    this.#deps.events.emit(aid, 'mailbox.expired', { message_id: toHex(id), recipient });
  }

  /** Sends due notes now: an agent moved here with its queue. */
  soon(): void {
    this.#queue.soon();
  }

  /** Queued notes of an agent with an id above `afterId`, oldest first. */
  page(aid: Aid, afterId: number, limit: number): QueuedNote[] {
    return this.#deps.outbox.page(aid, afterId, limit);
  }

  /** Cancels a queued note; false if it is not queued. A running attempt may still arrive. */
  cancel(aid: Aid, id: Uint8Array): boolean {
    return this.#deps.outbox.remove(aid, id);
  }
}
