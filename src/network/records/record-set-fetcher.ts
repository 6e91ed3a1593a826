/**
 * Fetches the many records of one key: whole pages over QUIC from one or two nodes, or, if QUIC does not get through,
 * parts in datagrams.
 */

import { setImmediate } from 'node:timers/promises';
import { toHex } from '../../foundation/bytes.ts';
import { type Clock, type Timer, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { belongsUnderKey } from '../../foundation/records/keys.ts';
import { type SignedRecord, toRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import { awakeClock } from '../../foundation/stall.ts';
import type { NodeRequests } from '../node-requests.ts';
import type { NodeAnswer } from './closest-nodes.ts';
import type { Page } from './messages.ts';
import { decodePage, encodeNodeRequest, MAX_KNOWN, MAX_PARTS, type Part } from './messages.ts';
import { voterOf } from './node-address.ts';
import type { NodeClient } from './node-client.ts';
import type { Quorum } from './quorum.ts';

/** Records that this thread decodes while other threads verify earlier ones. */
const BATCH = 32;
/** Time limit for one page over QUIC, in ms. */
const PAGE_TIMEOUT_MS = 3000;
/** Maximum number of records in one collection. */
const MAX_COLLECTED = 2000;
/** Groups of nodes whose records are fetched, and nodes of each group that are tried. */
const MAX_GROUPS = 6;
const MAX_OF_GROUP = 2;
/** Time until the next group starts if a group is not complete, in ms. */
const NEXT_GROUP_MS = 500;
/**
 * Remaining time of the other groups once one group is complete, in ms; or twice the time that it took, if that is
 * longer.
 */
const MIN_GRACE_MS = 1000;
/** Target for the records of one part, so that a part fits one datagram. */
const RECORDS_PER_PART = 1.2;
/** Number of failed parts after which a node is given up. */
const MAX_MISSED_PARTS = 8;
/** Parts that are requested from one node initially, and in total. A hostile node may claim ever more records. */
const MAX_FIRST_PARTS = 4096;
const MAX_ASKED_PARTS: number = 2 * MAX_FIRST_PARTS;
/** Concurrent requests for parts. */
const PARALLEL_PARTS = 16;

interface Wanted {
  readonly key: Uint8Array;
  readonly types: readonly RecordType[];
  /** Digests of records that the reader has, in hex. They are not fetched. */
  readonly known?: ReadonlySet<string>;
}

export interface Collection extends Required<Wanted> {
  /** The nodes that have records under the key. */
  readonly answers: readonly NodeAnswer[];
  readonly quorum: Quorum;
  readonly max: number | undefined;
}

export class RecordSetFetcher {
  readonly #clock: Clock;
  readonly #verifier: RecordVerifier;
  readonly #nodeRequests: NodeRequests;
  readonly #tag: Uint8Array;
  readonly #client: Pick<NodeClient, 'ask'>;

  constructor(
    clock: Clock,
    verifier: RecordVerifier,
    nodeRequests: NodeRequests,
    tag: Uint8Array,
    client: Pick<NodeClient, 'ask'>,
  ) {
    this.#clock = clock;
    this.#verifier = verifier;
    this.#nodeRequests = nodeRequests;
    this.#tag = tag;
    this.#client = client;
  }

  /** One page of a node's records under a key, over QUIC. Null on failure. */
  async page(from: NodeAnswer, wanted: Wanted, start: number, signal: AbortSignal): Promise<Page | null> {
    const { key, types, known = new Set() } = wanted;
    const { nodeKey, quicPort } = from.reply;
    if (quicPort === 0) return null;
    try {
      const address = { host: from.address.host, port: quicPort };
      const except = known.size === 0 ? {} : { known: packDigests(known) };
      const body = encodeNodeRequest({ kind: 'page', tag: this.#tag, key, types, from: start, ...except });
      return decodePage(
        await this.#nodeRequests.request('record', { nodeKey, address }, body, { signal, timeoutMs: PAGE_TIMEOUT_MS }),
      );
    } catch {
      return null;
    }
  }

  /**
   * Fetches from one node of each group of nodes that state the same, largest group of voters first. Every group may
   * have records that another group lacks, for example after a partition. Later groups are requested only for missing
   * records. The next group starts while a slow group is still running. Once a group is complete, groups with as
   * many voters or fewer have limited time.
   */
  async collect(wanted: Collection, signal: AbortSignal): Promise<void> {
    const clock = awakeClock(this.#clock);
    const groups = groupsOf(wanted.answers).slice(0, MAX_GROUPS).values();
    const stop = new AbortController();
    const within = AbortSignal.any([signal, stop.signal]);
    const ended = Promise.withResolvers<void>();
    within.addEventListener('abort', () => ended.resolve(), { once: true });
    const started = clock.monotonic();
    const asked = new Set<readonly NodeAnswer[]>();
    const graces: Timer[] = [];
    let lanes = 0;
    const lane = async (): Promise<void> => {
      lanes++;
      for (const group of groups) {
        if (within.aborted) break;
        const impatience = clock.after(NEXT_GROUP_MS, () => detach(lane().catch(ended.reject)));
        asked.add(group);
        const isWhole = await this.#drainGroup(group, wanted, within);
        asked.delete(group);
        impatience.cancel();
        if (!isWhole) continue;
        if (isFull(wanted)) stop.abort();
        // Otherwise a few nodes with few records could cut off many nodes with many records.
        if ([...asked].some((other) => votersOf(other) > votersOf(group))) continue;
        graces.push(clock.after(Math.max(MIN_GRACE_MS, 2 * (clock.monotonic() - started)), () => stop.abort()));
      }
      if (--lanes === 0) stop.abort();
    };
    if (signal.aborted || isFull(wanted)) return;
    lane().catch(ended.reject);
    try {
      await ended.promise;
    } finally {
      stop.abort();
      for (const grace of graces) grace.cancel();
    }
  }

  /** Fetches the records that a group claims, from one of its nodes. False if no node delivered them. */
  async #drainGroup(group: readonly NodeAnswer[], wanted: Collection, signal: AbortSignal): Promise<boolean> {
    for (const answer of group.slice(0, MAX_OF_GROUP)) {
      if (signal.aborted) return false;
      if ((await this.#drain(answer, wanted, signal)) || (await this.#drainParts(answer, wanted, signal))) return true;
    }
    return false;
  }

  /** All pages of one node. False if it delivers less than it claims. */
  async #drain(from: NodeAnswer, wanted: Collection, signal: AbortSignal): Promise<boolean> {
    const known = new Set([...wanted.known, ...wanted.quorum.digests()]);
    let valid = 0;
    let start = 0;
    do {
      const page = await this.page(from, { ...wanted, known }, start, signal);
      if (page === null || (page.next !== 0 && page.next <= start)) return false;
      valid += await this.take(page.records, from, wanted);
      start = page.next;
    } while (start !== 0 && !isFull(wanted));
    // The claim may include any of the excluded records.
    const all = valid + known.size;
    return all > 0 && (isFull(wanted) || all >= from.reply.count);
  }

  /** The same in datagrams: many small requests, each for the records whose hash belongs to its part. */
  async #drainParts(first: NodeAnswer, wanted: Collection, signal: AbortSignal): Promise<boolean> {
    const { count } = first.reply;
    const of = Math.min(MAX_FIRST_PARTS, Math.max(1, Math.ceil(count / RECORDS_PER_PART)));
    const parts: Part[] = Array.from({ length: of }, (_, index) => ({ index, of }));
    let asked = 0;
    let missed = 0;
    const work = async (): Promise<void> => {
      while (!signal.aborted && !isFull(wanted) && asked < MAX_ASKED_PARTS) {
        const part = parts.pop();
        if (part === undefined) return;
        asked++;
        const request = { types: wanted.types, wantsRecords: true, part };
        const reply = await this.#client.ask(first, wanted.key, request);
        const valid = reply === null ? 0 : await this.take(reply.records, first, wanted);
        if (reply === null || (valid === 0 && reply.count > 0)) missed++;
        if (missed >= MAX_MISSED_PARTS) return;
        const { index, of: whole } = part;
        if (reply === null || reply.count < 2 || valid >= reply.count || whole * 2 > MAX_PARTS) continue;
        parts.push({ index, of: whole * 2 }, { index: index + whole, of: whole * 2 });
      }
    };
    await Promise.all(Array.from({ length: PARALLEL_PARTS }, work));
    return missed === 0 && asked < MAX_ASKED_PARTS && !signal.aborted;
  }

  /** Verifies records on other threads and adds the valid ones. Returns the number of valid or known records. */
  async take(encoded: readonly Uint8Array[], from: NodeAnswer | null, wanted: Collection): Promise<number> {
    const { quorum } = wanted;
    const unknown = encoded.filter((bytes) => !quorum.knows(bytes) && !wanted.known.has(toHex(recordDigest(bytes))));
    const batches: Promise<number>[] = [];
    for (let at = 0; at < unknown.length; at += BATCH) {
      if (at > 0) await setImmediate();
      batches.push(this.#verify(unknown.slice(at, at + BATCH), from, wanted));
    }
    const good = await Promise.all(batches);
    return good.reduce((sum, n) => sum + n, encoded.length - unknown.length);
  }

  async #verify(encoded: readonly Uint8Array[], from: NodeAnswer | null, wanted: Collection): Promise<number> {
    const records = encoded.map(toRecord).filter((record) => record !== null);
    const fitting = records.filter((record) => wants(wanted, record));
    const errors = await this.#verifier.verifyAll(fitting, unixSeconds(this.#clock));
    const good = fitting.filter((_, i) => errors[i] === null);
    for (const record of good) wanted.quorum.addVerified(record, from);
    return good.length;
  }
}

function packDigests(known: ReadonlySet<string>): Uint8Array {
  return Buffer.from([...known].slice(0, MAX_KNOWN).join(''), 'hex');
}

function wants({ types, key }: Collection, record: SignedRecord): boolean {
  return (types.length === 0 || types.includes(record.type)) && belongsUnderKey(record, key);
}

function isFull({ quorum, max }: Collection): boolean {
  return quorum.slots.length >= Math.min(MAX_COLLECTED, max ?? MAX_COLLECTED);
}

/** Groups of nodes that state the same, by number of voters, then by claimed records. */
function groupsOf(answers: readonly NodeAnswer[]): NodeAnswer[][] {
  const groups = Map.groupBy(answers, ({ reply }) => `${reply.count}.${toHex(reply.digest)}`);
  const claims = (group: readonly NodeAnswer[]): number => group[0]?.reply.count ?? 0;
  return [...groups.values()].sort((a, b) => votersOf(b) - votersOf(a) || claims(b) - claims(a));
}

function votersOf(group: readonly NodeAnswer[]): number {
  return new Set(group.map(({ address }) => voterOf(address))).size;
}
