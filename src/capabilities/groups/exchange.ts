/** Brings two replicas in step over one link: first one side fetches and the other serves, then in turn. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { VerifierKeys } from '../../foundation/identity/keys.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { drained } from '../../network/links/wire.ts';
import { decodeEntry, verifyEntry } from './entry.ts';
import { MAX_GROUP_ENTRIES, type OfferResult, type Replica } from './replica.ts';
import type { GroupsDependencies } from './types.ts';
import {
  BATCH_BYTES,
  type Have,
  MAX_BATCH_ENTRIES,
  MAX_HEADS,
  MAX_IDS,
  MAX_WANTED,
  type Message,
  receive,
  send,
} from './wire.ts';
import type { GroupWriter } from './writer.ts';

const NOTHING = new Uint8Array();

/** Milliseconds that the other side may take for one message. */
const MESSAGE_TIMEOUT_MS = 15_000;
/** Entries behind the cursor up to which they are fetched without asking for their ids first. */
const PULL_WITHIN = 128;
/** Refused entries after which a peer is not asked for more. */
const MAX_REFUSED = 100;

export interface GroupExchangeDependencies
  extends Pick<GroupsDependencies, 'groups' | 'entries' | 'delegations' | 'clock'> {
  readonly writer: Pick<GroupWriter, 'admit'>;
}

export class GroupExchange {
  readonly #deps: GroupExchangeDependencies;
  readonly #stop: AbortSignal;
  readonly #keys = new VerifierKeys();

  constructor(dependencies: GroupExchangeDependencies, stop: AbortSignal) {
    this.#deps = dependencies;
    this.#stop = stop;
  }

  /** What is here of a group. */
  have(replica: Replica): Have {
    const { groups, entries } = this.#deps;
    return {
      heads: entries.heads(replica.rid, MAX_HEADS),
      maxSeq: replica.maxSeq,
      epoch: groups.byRid(replica.rid)?.epoch ?? new Uint8Array(0),
    };
  }

  /** What the other side says next. @throws SvcError `timeout`, and as `receive` */
  next(link: LinkStream): Promise<Message> {
    return this.#within((signal) => receive(link, signal));
  }

  /** Runs one step of a talk within its time limit. */
  async #within<T>(step: (signal: AbortSignal) => Promise<T>): Promise<T> {
    using limit = awakeTimeout(this.#deps.clock, MESSAGE_TIMEOUT_MS, this.#stop);
    return await step(limit.signal);
  }

  /** Fetches what the other side has and we have not. */
  async fetch(link: LinkStream, replica: Replica, peer: Aid, theirs: Have): Promise<void> {
    // protocol-groups.md, step 8
    const { groups } = this.#deps;
    if (theirs.maxSeq > MAX_GROUP_ENTRIES) throw broken();
    // With more heads than a message holds they do not say everything.
    if (theirs.heads.length < MAX_HEADS && theirs.heads.every((id) => replica.has(id)))
      return this.#remember(replica, peer, theirs.epoch, theirs.maxSeq);
    let refused = 0;
    let after = groups.cursor(replica.rid, peer, theirs.epoch);
    if (after >= theirs.maxSeq) after = 0;
    const whole = replica.maxSeq === 0 || theirs.maxSeq - after <= PULL_WITHIN;
    let isEarly = false;
    while (after < theirs.maxSeq) {
      const step = await (whole ? this.#pull(link, replica, peer, after) : this.#select(link, replica, peer, after));
      if (step.upTo <= after) throw broken();
      refused += step.refused;
      if (refused > MAX_REFUSED) return;
      after = step.upTo;
      // Entries dated too far ahead are fetched again by a later comparison; those behind them are taken in now.
      isEarly ||= step.early;
      if (!isEarly) this.#remember(replica, peer, theirs.epoch, after);
    }
  }

  /** Of members only: AIDs are free, and each that has the link may call. */
  #remember(replica: Replica, peer: Aid, epoch: Uint8Array, seq: number): void {
    if (replica.role(peer) !== null) this.#deps.groups.setCursor(replica.rid, peer, epoch, seq);
  }

  /** Answers the other side until it has what it wants; `mayRead` is asked before each answer. */
  async serve(link: LinkStream, replica: Replica, mayRead: () => boolean): Promise<Have | null> {
    for (;;) {
      const message = await this.next(link);
      if (message.type === 'done') return null;
      if (message.type === 'have') return message.have;
      if (!mayRead()) throw new SvcError('not_member');
      if (message.type === 'list') this.#sendIds(link, replica, message.after);
      else if (message.type === 'pull') this.#sendBehind(link, replica, message.after);
      else if (message.type === 'get') this.#sendNamed(link, replica, message.ids);
      else throw broken();
      await this.#within((signal) => drained(link, signal));
    }
  }

  /** Reads and verifies entries, and takes in those that hold. */
  async takeIn(replica: Replica, encoded: readonly Uint8Array[], peer: Aid): Promise<OfferResult> {
    const { delegations } = this.#deps;
    let refused = 0;
    const checked = encoded.map(async (bytes) => {
      try {
        const entry = decodeEntry(bytes);
        if (replica.has(entry.id)) return [];
        await verifyEntry(entry, delegations, this.#keys);
        return [entry];
      } catch (error) {
        if (!(error instanceof SvcError) || error.status >= 500) throw error;
        refused++;
        return [];
      }
    });
    const entries = (await Promise.all(checked)).flat();
    this.#stop.throwIfAborted();
    const admission = this.#deps.writer.admit(replica, entries, peer);
    return { ...admission, refused: admission.refused + refused };
  }

  async #pull(link: LinkStream, replica: Replica, peer: Aid, after: number) {
    send(link, { type: 'pull', after });
    const { upTo, entries } = await this.#entries(link);
    return { upTo, ...(await this.takeIn(replica, entries, peer)) };
  }

  async #select(link: LinkStream, replica: Replica, peer: Aid, after: number) {
    send(link, { type: 'list', after });
    const said = await this.next(link);
    if (said.type !== 'ids') throw broken();
    let missing = said.ids.filter((id) => !replica.has(id));
    const result = { upTo: said.upTo, early: false, refused: 0 };
    while (missing.length > 0) {
      send(link, { type: 'get', ids: missing.slice(0, MAX_WANTED) });
      const { entries } = await this.#entries(link);
      if (entries.length === 0) throw broken();
      const step = await this.takeIn(replica, entries, peer);
      result.early ||= step.early;
      result.refused += step.refused;
      // Answers come in the order of the question, as many as fit.
      missing = missing.slice(entries.length);
    }
    return result;
  }

  async #entries(link: LinkStream) {
    const said = await this.next(link);
    if (said.type !== 'entries') throw broken();
    return said;
  }

  #sendIds(link: LinkStream, replica: Replica, after: number): void {
    const page = this.#deps.entries.idsAfter(replica.rid, after, MAX_IDS);
    send(link, { type: 'ids', upTo: page.at(-1)?.seq ?? after, ids: page.map(({ id }) => id) });
  }

  #sendBehind(link: LinkStream, replica: Replica, after: number): void {
    const page = this.#deps.entries.bytesAfter(replica.rid, after, MAX_BATCH_ENTRIES);
    // A damaged one is left out: the peer asks other members for it.
    const fitting = page.slice(0, fit(page.map(({ bytes }) => bytes ?? NOTHING)));
    const entries = fitting.flatMap(({ bytes }) => bytes ?? []);
    send(link, { type: 'entries', upTo: fitting.at(-1)?.seq ?? after, entries });
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

function broken(): SvcError {
  return new SvcError('protocol_error');
}
