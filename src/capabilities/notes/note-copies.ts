/**
 * Copies of delivered notes in the record network: sends them a moment after the note, all copies for one mailbox over one
 * search, and removes copies of notes that were read.
 */
import { backoff } from '../../foundation/backoff.ts';
import { DueQueue } from '../../foundation/due-queue.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { decodeRecord, expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { StoredNote } from '../../foundation/store/notes.ts';
import type { NearbyNodes } from '../../network/records/types.ts';
import type { NotesDependencies } from './types.ts';

/** Milliseconds in which copies for one mailbox are gathered. */
export const GATHER_MS = 2000;
/** Nodes that get a copy. It is needed only if the recipient loses the note before it is read. */
const COPY_WIDTH = 4;
/** Copies over one search, whose result is fresh for 5 seconds. */
const COPIES_PER_SEARCH = 32;
/** Maximum number and bytes of waiting copies. */
export const MAX_COPIES = 10_000;
export const MAX_COPY_BYTES: number = 64 * 1024 * 1024;
/** Milliseconds that a put by the sender has before the copy is sent too: longer than sending takes. */
const HELD_MS = 30_000;
/** Milliseconds until a failed copy is sent again. */
const RETRY = { firstMs: 10_000, maxMs: 3600_000, jitter: 0.3 } as const;
/** Milliseconds after a note arrived until all its copies exist. */
export const COPIES_FOLLOW_MS = 10_000;
/** Delayed removals. Above this, copies are removed immediately, and later ones when they are found. */
const MAX_WAITING = 10_000;

export class NoteCopies {
  readonly #deps: Pick<NotesDependencies, 'copies' | 'network' | 'clock' | 'log' | 'random'>;
  readonly #queue: DueQueue<Uint8Array>;
  #load: { count: number; bytes: number };

  constructor(dependencies: Pick<NotesDependencies, 'copies' | 'network' | 'clock' | 'log' | 'random'>) {
    const { copies, network } = dependencies;
    this.#deps = dependencies;
    this.#load = copies.load();
    this.#queue = new DueQueue(
      { name: 'note copies', retry: RETRY, atOnce: { total: 1 } },
      {
        ...dependencies,
        table: copies.mailboxes,
        random: () => dependencies.random(),
        pauseMs: () => (network.reachability().ready ? 0 : UNTIL_REQUESTED),
        work: (mailbox, signal) => this.#send(mailbox, signal),
      },
    );
  }

  /** Continues with the copies from before the restart. */
  start(): void {
    this.#queue.start();
  }

  /** Waits for the running request, then stops. */
  async stop(): Promise<void> {
    await this.#queue.stop();
  }

  /**
   * Writes a copy to disk, to be sent later.
   * @param isNeeded false while the sender also stores the note on the network: the copy waits longer, and is dropped if that succeeds
   * @returns its ID; null if there is no room
   * @throws SvcError `not_writable`
   */
  async leave(recipient: Aid, record: SignedRecord, isNeeded: boolean): Promise<number | null> {
    const { copies, clock } = this.#deps;
    const bytes = record.encoded.length;
    if (this.#load.count >= MAX_COPIES || this.#load.bytes + bytes > MAX_COPY_BYTES) return null;
    this.#load.count++;
    this.#load.bytes += bytes;
    const dueAt = clock.now() + (isNeeded ? GATHER_MS : HELD_MS);
    try {
      return await copies.add(mailboxKey(recipient), record.encoded, expiresAt(record) * 1000, dueAt);
    } catch (error) {
      // The copy may be stored or not.
      this.#load = copies.load();
      throw error;
    } finally {
      this.#queue.soon(GATHER_MS);
    }
  }

  /** The network stores the note already. */
  drop(id: number): void {
    this.#settle([id], []);
  }

  /** Sends the copies for a mailbox, and further copies for it that are due soon. */
  async #send(mailbox: Uint8Array, signal: AbortSignal): Promise<void> {
    const { copies, network, clock } = this.#deps;
    const due = copies.dueFor(mailbox, clock.now() + GATHER_MS, COPIES_PER_SEARCH);
    const near = network.near(mailbox, null);
    const done: number[] = [];
    const again: { id: number; at: number }[] = [];
    try {
      for (const { id, record, until, attempts } of due) {
        const isOver = until <= clock.now() || (await this.#put(near, record, signal));
        if (isOver) done.push(id);
        else again.push({ id, at: clock.now() + backoff(RETRY, attempts + 1, this.#deps.random()) });
      }
    } finally {
      near.stop();
      if (!signal.aborted) this.#settle(done, again);
    }
  }

  /** True if a node stores the note, or its copies were removed because it was read. */
  async #put(near: NearbyNodes, encoded: Uint8Array, signal: AbortSignal): Promise<boolean> {
    try {
      const { replicas, refused } = await near.put(decodeRecord(encoded), { signal, width: COPY_WIDTH });
      return replicas > 0 || (refused['removed'] ?? 0) > 0;
    } catch (error) {
      if (signal.aborted) throw error;
      this.#deps.log.debug({ error }, 'a note copy was not stored');
      return false;
    }
  }

  #settle(done: readonly number[], again: readonly { readonly id: number; readonly at: number }[]): void {
    // A copy may have been sent and deleted before it is dropped.
    const gone = this.#deps.copies.settle(done, again);
    this.#load.count -= gone.count;
    this.#load.bytes -= gone.bytes;
  }
}

interface Waiting {
  readonly aid: Aid;
  readonly note: Pick<StoredNote, 'digest' | 'token'>;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Removes copies of notes that were read from the record network. */
export class CopyRemovals {
  readonly #deps: Pick<NotesDependencies, 'network' | 'clock' | 'log'>;
  readonly #turns: RepeatingTask;
  #waiting: Waiting[] = [];

  constructor(dependencies: Pick<NotesDependencies, 'network' | 'clock' | 'log'>) {
    this.#deps = dependencies;
    const onError = (error: unknown): void => dependencies.log.error({ error }, 'note copies could not be removed');
    this.#turns = every(dependencies.clock, { periodMs: UNTIL_REQUESTED, onError }, () => this.#turn());
  }

  stop(): void {
    this.#turns.stop();
  }

  /** Removes the copies of notes that were read. A recent note is delayed, since its copies may still be sent. */
  add(aid: Aid, notes: readonly StoredNote[]): void {
    const now = this.#deps.clock.now();
    const isRecent = ({ receivedAt }: StoredNote): boolean => receivedAt + COPIES_FOLLOW_MS > now && receivedAt <= now;
    const room = MAX_WAITING - this.#waiting.length;
    const recent = notes.filter(isRecent).slice(0, room);
    for (const note of recent) this.#waiting.push({ aid, note, at: note.receivedAt + COPIES_FOLLOW_MS });
    const others = notes.filter((note) => !recent.includes(note));
    if (others.length > 0) this.#remove(aid, others);
    if (recent.length > 0) this.#turns.soon(COPIES_FOLLOW_MS);
  }

  /** Removes due copies. Returns the milliseconds until the next ones are due. */
  #turn(): number {
    const now = this.#deps.clock.now();
    const due = this.#waiting.filter(({ at }) => at <= now);
    this.#waiting = this.#waiting.filter(({ at }) => at > now);
    for (const [aid, all] of Map.groupBy(due, (one) => one.aid))
      this.#remove(
        aid,
        all.map(({ note }) => note),
      );
    return Math.max(0, Math.min(...this.#waiting.map(({ at }) => at)) - now);
  }

  #remove(aid: Aid, notes: readonly Waiting['note'][]): void {
    // protocol-notes.md, step 13
    const { network, log } = this.#deps;
    network
      .removeNotes(mailboxKey(aid), notes)
      .catch((error: unknown) => log.debug({ aid, error }, 'note copies were not removed and will expire'));
  }
}
