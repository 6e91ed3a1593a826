/**
 * The notes that no other node keeps yet: written to disk before the sender gets its answer, and sent again, over
 * restarts, until another node has them or they expire.
 */
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { MAX_QUEUED_NOTES } from '../../foundation/domain/notes.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { MAX_NOTE_TTL_S } from '../../foundation/records/types.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { NoteOutboxStore, QueuedNote } from '../../foundation/store/note-outbox.ts';
import { noteSize } from '../../foundation/store/notes.ts';
import { type LetterContent, messageId } from './letter.ts';
import type { MailNetwork, SendResult } from './types.ts';

/** Size of the notes of one agent that are queued, bytes. */
export const MAX_QUEUED_NOTE_BYTES: number = 16 * 1024 * 1024;
/** Notes of all agents together, and their size in bytes. */
const MAX_ALL_QUEUED_NOTES = 10_000;
const MAX_ALL_QUEUED_BYTES: number = 128 * 1024 * 1024;
/** Milliseconds from when a note is sent until it expires. */
export const QUEUED_LIFE_MS: number = MAX_NOTE_TTL_S * 1000;
/** Milliseconds until the next attempt: after the first one, and at most. */
const RETRY: JitteredBackoff = { firstMs: 5000, maxMs: 300_000, jitter: 0.3 };
/** Notes that are sent at once. */
const CONCURRENCY = 4;

interface NoteOutboxDependencies {
  readonly outbox: NoteOutboxStore;
  readonly network: Pick<MailNetwork, 'reachability' | 'onReachability'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventSink;
  /** A number from 0 to below 1. */
  random(): number;
  /** Sends a note again. @throws SvcError if no other node keeps it */
  send(letter: LetterContent, signal: AbortSignal): Promise<SendResult>;
}

export class NoteOutbox {
  readonly #deps: NoteOutboxDependencies;
  readonly #turns: RepeatingTask;
  readonly #stop = new AbortController();
  #unsubscribe: () => void = () => {};
  #ready = false;

  constructor(dependencies: NoteOutboxDependencies) {
    this.#deps = dependencies;
    const onError = (error: unknown): void => dependencies.log.warn({ error }, 'queued notes could not be sent');
    this.#turns = every(dependencies.clock, { periodMs: RETRY.firstMs, firstMs: UNTIL_REQUESTED, onError }, () =>
      this.#turn(),
    );
  }

  /** Continues with the notes of the last run. */
  start(): void {
    this.#unsubscribe = this.#deps.network.onReachability(() => this.#networkChanged());
    this.#networkChanged();
  }

  /** Waits for the attempts under way and starts no more. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stop.abort();
    this.#turns.stop();
    await this.#turns.idle();
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
        message: `No other node keeps the note, and ${own.count} notes of this agent are queued already. Send it again when the network is back.`,
      });
    const dueAt = clock.now() + backoff(RETRY, 1, this.#deps.random());
    const until = sentAt + QUEUED_LIFE_MS;
    const id = messageId(letter);
    outbox.add({ aid: sender, messageId: id, recipient, msgType, body, nonce, sentAt, until, dueAt, attempts: 0 });
    this.#turns.soon(Math.max(0, dueAt - clock.now()));
  }

  #networkChanged(): void {
    const { network, outbox, clock, log } = this.#deps;
    const { ready } = network.reachability();
    const isNew = ready && !this.#ready;
    this.#ready = ready;
    if (!isNew) return;
    try {
      outbox.makeAllDue(clock.now());
    } catch (error) {
      log.warn({ error }, 'queued notes wait for their next time');
    }
    this.#turns.soon(0);
  }

  /** Sends what is due; returns the milliseconds until more is. */
  async #turn(): Promise<number> {
    const { outbox, clock, network } = this.#deps;
    if (this.#stop.signal.aborted) return UNTIL_REQUESTED;
    const due = outbox.due(clock.now(), CONCURRENCY);
    const isReady = network.reachability().ready;
    await Promise.all(due.map((note) => this.#attempt(note, isReady)));
    const next = outbox.nextDue();
    return next === null ? UNTIL_REQUESTED : Math.max(0, next - clock.now());
  }

  async #attempt(note: QueuedNote, isReady: boolean): Promise<void> {
    const { outbox, clock, log } = this.#deps;
    const { id, aid, recipient, until } = note;
    if (until <= clock.now()) return this.#leave(note, () => this.#expired(note));
    try {
      if (!isReady) throw new SvcError('network_not_ready');
      const { replicas, delivered } = await this.#deps.send({ ...note, sender: aid }, this.#stop.signal);
      this.#leave(note, () => this.#sent(note, replicas, delivered));
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      log.debug({ aid, recipient, error }, 'a queued note was not sent; it is tried again');
      const at = clock.now() + backoff(RETRY, note.attempts + 2, this.#deps.random());
      outbox.postpone(id, Math.min(at, until));
    }
  }

  /** Removes a note in one transaction with the event that says why, unless it went with its agent meanwhile. */
  #leave({ aid, messageId: id }: QueuedNote, tell: () => void): void {
    const { outbox } = this.#deps;
    outbox.transaction(() => {
      if (outbox.remove(aid, id)) tell();
    });
  }

  #sent({ aid, messageId: id, recipient }: QueuedNote, replicas: number, delivered: boolean): void {
    const data = { message_id: toHex(id), recipient, replicas, delivered };
    this.#deps.events.emit(aid, 'mailbox.sent', data);
  }

  #expired({ aid, messageId: id, recipient }: QueuedNote): void {
    this.#deps.events.emit(aid, 'mailbox.expired', { message_id: toHex(id), recipient });
  }

  /** Sends what is due: notes came here with an agent. */
  soon(): void {
    this.#turns.soon();
  }

  /** Queued notes of an agent with an id above `afterId`, oldest first. */
  page(aid: Aid, afterId: number, limit: number): QueuedNote[] {
    return this.#deps.outbox.page(aid, afterId, limit);
  }

  /** Takes a queued note back; false if it is not queued. An attempt that is under way may still arrive. */
  cancel(aid: Aid, id: Uint8Array): boolean {
    return this.#deps.outbox.remove(aid, id);
  }
}
