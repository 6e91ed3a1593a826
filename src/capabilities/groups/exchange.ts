/** Syncs two replicas over one link: one side fetches while the other serves, then they change roles. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { VerifierKeys } from '../../foundation/identity/keys.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { drained } from '../../network/peers/wire.ts';
import { decodeEntry, verifyEntry } from './entry.ts';
import { type AdmitResult, MAX_GROUP_ENTRIES, type Replica } from './replica.ts';
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

const EMPTY = new Uint8Array();

/** Timeout for one message of the peer, milliseconds. */
const MESSAGE_TIMEOUT_MS = 15_000;
/** If at most this many entries follow the cursor, they are fetched without listing their IDs first. */
const PULL_WITHIN = 128;
/** A sync ends after this many rejected entries. */
const MAX_REFUSED = 100;

type ExchangeParts = Pick<GroupsDependencies, 'groups' | 'entries' | 'delegations' | 'clock'>;

export class GroupExchange {
  readonly #deps: ExchangeParts;
  readonly #writer: GroupWriter;
  readonly #stop: AbortSignal;
  readonly #keys = new VerifierKeys();

  constructor(dependencies: ExchangeParts, writer: GroupWriter, stop: AbortSignal) {
    this.#deps = dependencies;
    this.#writer = writer;
    this.#stop = stop;
  }

  /** The heads, the size and the epoch of a replica. */
  have(replica: Replica): Have {
    const { groups, entries } = this.#deps;
    return {
      heads: entries.heads(replica.lid, MAX_HEADS),
      maxSeq: replica.maxSeq,
      epoch: groups.byRid(replica.rid)?.epoch ?? new Uint8Array(0),
    };
  }

  /** Reads the next message. @throws SvcError `timeout`, and as `receive` */
  next(link: LinkStream): Promise<Message> {
    return this.#within((signal) => receive(link, signal));
  }

  /** Runs one step of a session within the message timeout. */
  async #within<T>(step: (signal: AbortSignal) => Promise<T>): Promise<T> {
    using limit = awakeTimeout(this.#deps.clock, MESSAGE_TIMEOUT_MS, this.#stop);
    return await step(limit.signal);
  }

  /**
   * Fetches the entries that the peer has and this node does not.
   * @param isAsked this node has already sent a `pull` of the first entries
   */
  async fetch(link: LinkStream, replica: Replica, peer: Aid, theirs: Have, isAsked = false): Promise<void> {
    // protocol-groups.md, step 8
    const { groups } = this.#deps;
    if (theirs.maxSeq > MAX_GROUP_ENTRIES) throw protocolError();
    // If the message holds the maximum number of heads, the peer may have more.
    const hasAll = theirs.heads.length < MAX_HEADS && theirs.heads.every((id) => replica.has(id));
    if (hasAll && !isAsked) return this.#saveCursor(replica, peer, theirs.epoch, theirs.maxSeq);
    let refused = 0;
    let after = isAsked ? 0 : groups.cursor(replica.lid, peer, theirs.epoch);
    if (after >= theirs.maxSeq) after = 0;
    const whole = replica.maxSeq === 0 || theirs.maxSeq - after <= PULL_WITHIN;
    let isEarly = false;
    for (let isPulled = isAsked; after < theirs.maxSeq || isPulled; isPulled = false) {
      const step = await (isPulled || whole
        ? this.#pull(link, replica, peer, after, isPulled)
        : this.#fetchMissing(link, replica, peer, after));
      if (theirs.maxSeq === 0) return;
      if (step.upTo <= after) throw protocolError();
      refused += step.refused;
      if (refused > MAX_REFUSED) return;
      after = step.upTo;
      // Entries dated too far ahead are fetched again by a later sync, so the cursor stays before them. Later entries
      // are still fetched now.
      isEarly ||= step.early;
      if (!isEarly) this.#saveCursor(replica, peer, theirs.epoch, after);
    }
  }

  /** Only for members. AIDs are free, so anyone with the link could fill the table. */
  #saveCursor(replica: Replica, peer: Aid, epoch: Uint8Array, seq: number): void {
    if (replica.role(peer) !== null) this.#deps.groups.setCursor(replica.lid, peer, epoch, seq);
  }

  /** Serves the peer until it has what it wants. `mayRead` is checked before each response. */
  async serve(link: LinkStream, replica: Replica, mayRead: () => boolean): Promise<Have | null> {
    for (;;) {
      const message = await this.next(link);
      if (message.type === 'done') return null;
      if (message.type === 'have') return message.have;
      if (!mayRead()) throw new SvcError('not_member');
      if (message.type === 'list') this.#sendIds(link, replica, message.after);
      else if (message.type === 'pull') this.#sendAfter(link, replica, message.after);
      else if (message.type === 'get') this.#sendByIds(link, replica, message.ids);
      else throw protocolError();
      await this.#within((signal) => drained(link, signal));
    }
  }

  /** Verifies entries and admits the valid ones. */
  async admitEncoded(replica: Replica, encoded: readonly Uint8Array[], peer: Aid): Promise<AdmitResult> {
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
    const admission = this.#writer.admit(replica, entries, peer);
    return { ...admission, refused: admission.refused + refused };
  }

  async #pull(link: LinkStream, replica: Replica, peer: Aid, after: number, isAsked: boolean) {
    if (!isAsked) send(link, { type: 'pull', after });
    const { upTo, entries } = await this.#entries(link);
    return { upTo, ...(await this.admitEncoded(replica, entries, peer)) };
  }

  async #fetchMissing(link: LinkStream, replica: Replica, peer: Aid, after: number) {
    send(link, { type: 'list', after });
    const message = await this.next(link);
    if (message.type !== 'ids') throw protocolError();
    let missing = message.ids.filter((id) => !replica.has(id));
    const result = { upTo: message.upTo, early: false, refused: 0 };
    while (missing.length > 0) {
      send(link, { type: 'get', ids: missing.slice(0, MAX_WANTED) });
      const { entries } = await this.#entries(link);
      if (entries.length === 0) throw protocolError();
      const step = await this.admitEncoded(replica, entries, peer);
      result.early ||= step.early;
      result.refused += step.refused;
      // The response has the order of the request, but only as many entries as fit.
      missing = missing.slice(entries.length);
    }
    return result;
  }

  async #entries(link: LinkStream) {
    const message = await this.next(link);
    if (message.type !== 'entries') throw protocolError();
    return message;
  }

  #sendIds(link: LinkStream, replica: Replica, after: number): void {
    const page = this.#deps.entries.idsAfter(replica.lid, after, MAX_IDS);
    send(link, { type: 'ids', upTo: page.at(-1)?.seq ?? after, ids: page.map(({ id }) => id) });
  }

  #sendAfter(link: LinkStream, replica: Replica, after: number): void {
    const page = this.#deps.entries.bytesAfter(replica.lid, after, MAX_BATCH_ENTRIES);
    // Damaged entries are skipped. The peer fetches them from other members.
    const fitting = page.slice(0, countFitting(page.map(({ bytes }) => bytes ?? EMPTY)));
    const entries = fitting.flatMap(({ bytes }) => bytes ?? []);
    send(link, { type: 'entries', upTo: fitting.at(-1)?.seq ?? after, entries });
  }

  #sendByIds(link: LinkStream, replica: Replica, ids: readonly string[]): void {
    const all = ids.flatMap((id) => this.#deps.entries.bytes(replica.lid, id) ?? []);
    if (all.length < ids.length) throw protocolError();
    send(link, { type: 'entries', upTo: 0, entries: all.slice(0, countFitting(all)) });
  }
}

/** How many of these entries fit into one message. */
export function countFitting(all: readonly Uint8Array[]): number {
  let bytes = 0;
  let count = 0;
  for (const one of all) {
    bytes += one.length;
    if (count > 0 && (bytes > BATCH_BYTES || count >= MAX_BATCH_ENTRIES)) break;
    count++;
  }
  return count;
}

function protocolError(): SvcError {
  return new SvcError('protocol_error');
}
