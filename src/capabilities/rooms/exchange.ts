/** Brings two replicas in step over one link: first one side fetches and the other serves, then in turn. */
import type { Clock } from '../../foundation/clock.ts';
import { deadline } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import { VerifierKeys } from '../../foundation/identity/keys.ts';
import type { RoomEntryStore } from '../../foundation/store/room-entries.ts';
import type { RoomStore } from '../../foundation/store/rooms.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { drained } from '../../network/links/wire.ts';
import { decodeEntry, verifyEntry } from './entry.ts';
import type { OfferResult, Replica } from './replica.ts';
import { MAX_ROOM_ENTRIES } from './replica.ts';
import {
  BATCH_BYTES,
  expect,
  type Have,
  MAX_BATCH_ENTRIES,
  MAX_HEADS,
  MAX_IDS,
  MAX_WANTED,
  receive,
  send,
} from './wire.ts';
import type { RoomWriter } from './writer.ts';

/** Milliseconds that the other side may take for one message. */
const MESSAGE_TIMEOUT_MS = 15_000;
/** Entries behind the cursor up to which they are fetched without asking for their ids first. */
const PULL_WITHIN = 128;
/** Refused entries after which a peer is not asked for more. */
const MAX_REFUSED = 100;

export interface RoomExchangeDependencies {
  readonly rooms: RoomStore;
  readonly entries: RoomEntryStore;
  readonly delegations: Pick<DelegationVerifier, 'verifyAsync'>;
  readonly clock: Clock;
  readonly writer: Pick<RoomWriter, 'admit'>;
}

export class RoomExchange {
  readonly #deps: RoomExchangeDependencies;
  readonly #stop: AbortSignal;
  readonly #keys = new VerifierKeys();

  constructor(dependencies: RoomExchangeDependencies, stop: AbortSignal) {
    this.#deps = dependencies;
    this.#stop = stop;
  }

  /** What is here of a room. */
  have(replica: Replica): Have {
    const { rooms, entries } = this.#deps;
    return {
      heads: entries.heads(replica.rid, MAX_HEADS),
      maxSeq: replica.maxSeq,
      epoch: rooms.byRid(replica.rid)?.epoch ?? new Uint8Array(0),
    };
  }

  /** Runs one step of a talk within its time limit. */
  async within<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    using limit = deadline(this.#deps.clock, MESSAGE_TIMEOUT_MS, this.#stop);
    return await work(limit.signal);
  }

  /** Fetches what the other side has and we have not. */
  async fetch(link: LinkStream, replica: Replica, peer: Aid, theirs: Have): Promise<void> {
    const { rooms } = this.#deps;
    if (theirs.maxSeq > MAX_ROOM_ENTRIES) throw broken();
    // With more heads than a message holds they do not say everything.
    if (theirs.heads.length < MAX_HEADS && theirs.heads.every((id) => replica.has(id)))
      return this.#remember(replica, peer, theirs.epoch, theirs.maxSeq);
    let refused = 0;
    let after = rooms.cursor(replica.rid, peer, theirs.epoch);
    if (after >= theirs.maxSeq) after = 0;
    const whole = replica.maxSeq === 0 || theirs.maxSeq - after <= PULL_WITHIN;
    while (after < theirs.maxSeq) {
      const step = whole
        ? await this.#pull(link, replica, peer, after)
        : await this.#select(link, replica, peer, after);
      if (step.upTo <= after) throw broken();
      refused += step.refused;
      if (step.early || refused > MAX_REFUSED) return;
      after = step.upTo;
      this.#remember(replica, peer, theirs.epoch, after);
    }
  }

  /** Of members only: AIDs are free, and each that has the link may call. */
  #remember(replica: Replica, peer: Aid, epoch: Uint8Array, seq: number): void {
    if (replica.role(peer) !== null) this.#deps.rooms.setCursor(replica.rid, peer, epoch, seq);
  }

  /** Answers the other side until it has what it wants; `mayRead` is asked before each answer. */
  async serve(link: LinkStream, replica: Replica, mayRead: () => boolean): Promise<Have | null> {
    for (;;) {
      const message = await this.within((signal) => receive(link, signal));
      if (message.type === 'done') return null;
      if (message.type === 'have') return message.have;
      if (!mayRead()) throw new SvcError('not_member');
      if (message.type === 'list') this.#sendIds(link, replica, message.after);
      else if (message.type === 'pull') this.#sendBehind(link, replica, message.after);
      else if (message.type === 'get') this.#sendNamed(link, replica, message.ids);
      else throw broken();
      await this.within((signal) => drained(link, signal));
    }
  }

  /** Reads and verifies entries, and takes in those that hold. */
  async takeIn(replica: Replica, encoded: readonly Uint8Array[], peer: Aid): Promise<OfferResult> {
    const { delegations } = this.#deps;
    let refused = 0;
    const checked = await Promise.all(
      encoded.map(async (bytes) => {
        try {
          const entry = decodeEntry(bytes);
          if (replica.has(entry.id)) return null;
          await verifyEntry(entry, delegations, this.#keys);
          return entry;
        } catch (error) {
          if (!(error instanceof SvcError) || error.status >= 500) throw error;
          refused++;
          return null;
        }
      }),
    );
    this.#stop.throwIfAborted();
    const admission = this.#deps.writer.admit(
      replica,
      checked.filter((entry) => entry !== null),
      peer,
    );
    return { ...admission, refused: admission.refused + refused };
  }

  async #pull(link: LinkStream, replica: Replica, peer: Aid, after: number) {
    send(link, { type: 'pull', after });
    const { upTo, entries } = await this.within((signal) => expect(link, 'entries', signal));
    const { early, refused } = await this.takeIn(replica, entries, peer);
    return { upTo, early, refused };
  }

  async #select(link: LinkStream, replica: Replica, peer: Aid, after: number) {
    send(link, { type: 'list', after });
    const { upTo, ids } = await this.within((signal) => expect(link, 'ids', signal));
    let missing = ids.filter((id) => !replica.has(id));
    const result = { upTo, early: false, refused: 0 };
    while (missing.length > 0) {
      send(link, { type: 'get', ids: missing.slice(0, MAX_WANTED) });
      const { entries } = await this.within((signal) => expect(link, 'entries', signal));
      if (entries.length === 0) throw broken();
      const step = await this.takeIn(replica, entries, peer);
      result.early ||= step.early;
      result.refused += step.refused;
      // Answers come in the order of the question, as many as fit.
      missing = missing.slice(entries.length);
    }
    return result;
  }

  #sendIds(link: LinkStream, replica: Replica, after: number): void {
    const page = this.#deps.entries.idsAfter(replica.rid, after, MAX_IDS);
    send(link, { type: 'ids', upTo: page.at(-1)?.seq ?? after, ids: page.map(({ id }) => id) });
  }

  #sendBehind(link: LinkStream, replica: Replica, after: number): void {
    const page = this.#deps.entries.bytesAfter(replica.rid, after, MAX_BATCH_ENTRIES);
    const fitting = page.slice(0, fit(page.map(({ bytes }) => bytes)));
    send(link, { type: 'entries', upTo: fitting.at(-1)?.seq ?? after, entries: fitting.map(({ bytes }) => bytes) });
  }

  #sendNamed(link: LinkStream, replica: Replica, ids: readonly string[]): void {
    const all = ids.flatMap((id) => this.#deps.entries.bytes(replica.rid, id) ?? []);
    if (all.length < ids.length) throw broken();
    send(link, { type: 'entries', upTo: 0, entries: all.slice(0, fit(all)) });
  }
}

/** How many of these go into one message. */
export function fit(all: readonly Uint8Array[]): number {
  let bytes = 0;
  let count = 0;
  for (const one of all) {
    bytes += one.length;
    if (count > 0 && (bytes > BATCH_BYTES || count >= MAX_BATCH_ENTRIES)) break;
    count++;
  }
  return count;
}

export function broken(): SvcError {
  return new SvcError('protocol_error');
}
