/**
 * The copies of notes that their recipients' nodes have: the record network gets them a moment later, those for one
 * mailbox together. Who sends does not wait for them, and what comes next does not compete with them. They are on disk
 * before the note counts as sent, so that they go out whatever becomes of this daemon.
 */
import { backoff } from '../../foundation/backoff.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { decodeRecord, expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { NoteCopy, NoteCopyStore } from '../../foundation/store/note-copies.ts';
import type { NearbyNodes } from '../../network/records/types.ts';
import type { MailNetwork } from './types.ts';

/** Milliseconds without a further note after which copies go out … */
export const QUIET_MS = 250;
/** … and those that they wait at most. */
export const MAX_GATHER_MS = 3000;
/** Copies that go out over one search: the answers of a search are of use for 5 s. */
const COPIES_PER_SEARCH = 32;
/** A copy that goes out while notes are sent is followed by a rest that is so many times as long, and milliseconds at most. */
const REST_FACTOR = 2;
const MAX_REST_MS = 100;
/** Copies that wait at most, and their bytes: what comes beyond goes out at once. */
export const MAX_COPIES = 10_000;
export const MAX_COPY_BYTES: number = 64 * 1024 * 1024;
/** Milliseconds after which a copy goes out of which nobody has said what became of its note: longer than sending takes. */
const HELD_MS = 30_000;
/** Milliseconds until a copy that nobody took is tried again: the first time, and at most. */
const RETRY = { firstMs: 10_000, maxMs: 3600_000, jitter: 0.3 } as const;

interface NoteCopiesDependencies {
  readonly copies: NoteCopyStore;
  readonly network: Pick<MailNetwork, 'near' | 'reachability' | 'onReachability'>;
  readonly clock: Clock;
  readonly log: Log;
  /** A number from 0 to below 1. */
  random(): number;
}

/** A copy that was left here. */
export interface LeftCopy {
  readonly id: number;
}

export class NoteCopies {
  readonly #deps: NoteCopiesDependencies;
  readonly #turns: RepeatingTask;
  readonly #stop = new AbortController();
  #load: { count: number; bytes: number };
  /** Copies whose notes are with their recipients, and are not marked as due yet. */
  #released: number[] = [];
  /** Since when they are gathered, and when the last one came: Unix milliseconds. */
  #gathering: { readonly since: number; last: number } | null = null;
  /** What was due by then goes out just now; null while nothing does. */
  #draining: number | null = null;
  #unsubscribe: () => void = () => {};
  #ready = false;

  constructor(dependencies: NoteCopiesDependencies) {
    this.#deps = dependencies;
    this.#load = dependencies.copies.load();
    const onError = (error: unknown): void => {
      this.#draining = null;
      dependencies.log.warn({ error }, 'copies of notes could not go out');
    };
    this.#turns = every(dependencies.clock, { periodMs: RETRY.firstMs, firstMs: UNTIL_REQUESTED, onError }, () =>
      this.#turn(),
    );
  }

  /** Goes on with what was left. */
  start(): void {
    const { network } = this.#deps;
    this.#unsubscribe = network.onReachability(() => this.#networkChanged());
    this.#networkChanged();
  }

  /** Starts nothing more, and waits for what is under way. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stop.abort();
    this.#turns.stop();
    await this.#turns.idle();
  }

  /**
   * Leaves a note to be copied; what it is called once it is on disk, null where there is no room for more.
   * @throws SvcError `not_writable`
   */
  async leave(recipient: Aid, record: SignedRecord): Promise<LeftCopy | null> {
    const { copies, clock } = this.#deps;
    const bytes = record.encoded.length;
    if (this.#load.count >= MAX_COPIES || this.#load.bytes + bytes > MAX_COPY_BYTES) return null;
    const until = expiresAt(record) * 1000;
    this.#load.count++;
    this.#load.bytes += bytes;
    try {
      return { id: await copies.add(mailboxKey(recipient), record.encoded, until, clock.now() + HELD_MS) };
    } catch (error) {
      // The copy may be stored or not.
      this.#load = copies.load();
      throw error;
    }
  }

  /** The recipient's node has the note: its copies go out soon. */
  release({ id }: LeftCopy): void {
    const now = this.#deps.clock.now();
    this.#released.push(id);
    this.#gathering ??= { since: now, last: now };
    this.#gathering.last = now;
    this.#turns.plan(this.#restMs(now));
  }

  /** The note needs no copies any more: some are there, or it was never sent. */
  drop({ id }: LeftCopy): void {
    this.#settle([id], []);
  }

  /** Milliseconds for which copies are gathered still. */
  #restMs(now: number): number {
    const { since, last } = this.#gathering ?? { since: now, last: now };
    return Math.max(0, Math.min(last + QUIET_MS, since + MAX_GATHER_MS) - now);
  }

  #networkChanged(): void {
    const { network, copies, clock, log } = this.#deps;
    const { ready } = network.reachability();
    const isNew = ready && !this.#ready;
    this.#ready = ready;
    if (!isNew || this.#load.count === 0) return;
    try {
      copies.makeAllDue(clock.now());
    } catch (error) {
      log.warn({ error }, 'copies of notes wait for their next time');
    }
    this.#turns.soon(QUIET_MS);
  }

  /** Sends what is due of one mailbox; returns the milliseconds until there is more to do. */
  async #turn(): Promise<number> {
    const { copies, clock, network } = this.#deps;
    const now = clock.now();
    if (!network.reachability().ready || this.#stop.signal.aborted) return UNTIL_REQUESTED;
    if (this.#draining === null) {
      if (this.#gathering !== null && this.#restMs(now) > 0) return this.#restMs(now);
      copies.release(this.#released, now);
      this.#released = [];
      this.#gathering = null;
      this.#draining = now;
    }
    const due = copies.due(this.#draining, COPIES_PER_SEARCH);
    if (due !== null) {
      await this.#send(due.mailbox, due.copies);
      return 0;
    }
    this.#draining = null;
    if (this.#gathering !== null) return this.#restMs(now);
    const next = copies.nextDue();
    return next === null ? UNTIL_REQUESTED : Math.max(0, next - now);
  }

  async #send(mailbox: Uint8Array, copies: readonly NoteCopy[]): Promise<void> {
    const { network, clock } = this.#deps;
    const near = network.near(mailbox, null);
    const done: number[] = [];
    const again: { id: number; at: number }[] = [];
    try {
      for (const { id, record, until, attempts } of copies) {
        const began = clock.now();
        if (until <= began || (await this.#put(near, record))) done.push(id);
        else again.push({ id, at: clock.now() + backoff(RETRY, attempts + 1, this.#deps.random()) });
        await this.#giveWay(clock.now() - began);
      }
    } finally {
      near.stop();
      if (!this.#stop.signal.aborted) this.#settle(done, again);
    }
  }

  /** While notes are being sent, most of the time is theirs: rests behind a copy that took so many milliseconds. */
  async #giveWay(tookMs: number): Promise<void> {
    const { clock } = this.#deps;
    if (this.#gathering === null || clock.now() - this.#gathering.last >= QUIET_MS) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    clock.after(Math.min(MAX_REST_MS, REST_FACTOR * tookMs), resolve);
    await abortable(promise, this.#stop.signal);
  }

  /** True where somebody keeps the note, or its reader has had it and its copies were removed. */
  async #put(near: NearbyNodes, encoded: Uint8Array): Promise<boolean> {
    const { signal } = this.#stop;
    try {
      const { replicas, refused } = await near.put(decodeRecord(encoded), { signal });
      return replicas > 0 || (refused['removed'] ?? 0) > 0;
    } catch (error) {
      if (signal.aborted) throw error;
      this.#deps.log.debug({ error }, 'a copy of a note was not stored');
      return false;
    }
  }

  #settle(done: readonly number[], again: readonly { readonly id: number; readonly at: number }[]): void {
    // One that went out while its note was under way has gone already when that is known to have arrived.
    const gone = this.#deps.copies.settle(done, again);
    this.#load.count -= gone.count;
    this.#load.bytes -= gone.bytes;
  }
}
