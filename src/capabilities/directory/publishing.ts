/**
 * Publishes the records of identities: on request, and again before they expire. There is one publish path for endpoints,
 * services, cards and note keys (docs/protocol-dht.md). Operations on one identity are serialized.
 */

import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import { KeyedMutex } from '../../foundation/concurrency.ts';
import { detach } from '../../foundation/detached.ts';
import { RECORD_TTL_S, REPLICAS } from '../../foundation/domain/directory.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { MAX_TTL_S, RECORD } from '../../foundation/records/types.ts';
import type { Publication, PublicationRow, PublishedRow, PublisherRow } from '../../foundation/store/publications.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import type { PutResult } from '../../network/records/types.ts';
import type { RecordPublisher, SendOptions, Sent } from './record-publisher.ts';
import type { DirectoryDependencies } from './types.ts';

/** Milliseconds after which a requested publication is retried if the daemon crashes meanwhile. */
const SAFETY_MS = 30_000;
/** Part of the remaining lifetime over which overdue renewals are spread after a start. */
const OVERDUE_SPREAD = 0.25;

/**
 * The highest sequence number, and the minimum number of other nodes that store a record: 0 if there is no other node. svcd
 * sends the records when one appears.
 */
export interface PublishResult {
  readonly seq: number;
  readonly replicas: number;
  /** Why nodes in other networks do not reach the agent although the record is stored. */
  readonly problem?: string;
}

/** Failures after which the records are renewed as usual. */
const UNACKNOWLEDGED: ReadonlySet<string> = new Set(['not_acknowledged', 'network_unavailable', 'clock_wrong']);

export const ENDPOINTS: Publication = {
  type: RECORD.endpoints,
  name: '',
  payload: new Uint8Array(),
  ttl: RECORD_TTL_S,
};

/** A publication to send with the endpoint record of an agent now; null for none. */
export type Companion = (aid: Aid) => Publication | null;

type PublishingParts = DirectoryDependencies & {
  readonly recordPublisher: RecordPublisher;
  /** Called when a publication becomes due. */
  due(): void;
};

export class Publishing {
  readonly #deps: PublishingParts;
  /** Serializes operations on the publications of an identity. */
  readonly turns = new KeyedMutex<Aid>();
  /** Publications that are sent with endpoint records: two records cost little more than one. */
  readonly companions: Companion[] = [];

  constructor(dependencies: PublishingParts) {
    this.#deps = dependencies;
  }

  start(): void {
    const { publications, clock } = this.#deps;
    publications.resume(clock.now());
    publications.repairTimes(clock.now());
    publications.spreadOverdue(clock.now(), OVERDUE_SPREAD);
  }

  /** Cancels running publications. */
  async stop(): Promise<void> {
    this.#deps.recordPublisher.stop();
    await this.turns.idle();
  }

  /** To be called when an agent is exported: another node may publish it, with higher sequence numbers. */
  exported(aid: Aid): void {
    this.#deps.recordPublisher.doubt(aid);
  }

  /** Forgets a deleted agent. */
  forget(aid: Aid): void {
    this.#deps.recordPublisher.forget(aid);
  }

  /**
   * Publishes now, and exceeds the sequence number that the network holds. Kept publications are renewed, also if this
   * fails with `not_acknowledged`.
   * @param keeps false for a record that replaces a removed publication until it expires
   * @param check may throw. It sees all earlier publications of the agent
   * @throws SvcError `not_found`, `not_acknowledged`, `network_unavailable`, `clock_wrong`, `stale_sequence`, `bad_delegation`, `timeout`
   */
  async publish(aid: Aid, wanted: readonly Publication[], keeps = true, check?: () => void): Promise<PublishResult> {
    return this.turns.run(aid, async () => {
      check?.();
      const identity = this.identity(aid);
      const { publications, recordPublisher, clock } = this.#deps;
      const since = clock.now();
      const both = keeps ? [...wanted, ...this.#along(aid, wanted)] : wanted;
      // The search runs while the disk writes. No record is sent before its number is on disk.
      const searches = recordPublisher.search(aid, both);
      const work = (): number | null => {
        publications.claim(aid, clock.now() + SAFETY_MS);
        if (keeps) for (const one of both) publications.put(aid, one);
        return publications.reserve(aid, 0, both.length);
      };
      const reserved = await publications.commit(work, 'now').catch((error: unknown) => {
        searches.stop();
        throw error;
      });
      try {
        const all = publications.publications(aid);
        const rows = keeps ? all.filter((row) => isAmong(both, row)) : both.map((one) => unkeptRow(aid, one));
        const onWhole: SendOptions['onWhole'] = (row, { seq }, result) =>
          detach(this.#complete(aid, { type: row.type, name: row.name, seq }, result));
        const sent = await this.#send(identity, rows, all, { mayJump: true, reserved, searches, onWhole });
        return await this.#acknowledged(
          sent.filter(({ row }) => isAmong(wanted, row)),
          since,
        );
      } catch (error) {
        const publisher = publications.publisher(aid);
        const isUnacknowledged = error instanceof SvcError && UNACKNOWLEDGED.has(error.code);
        if (publisher !== null && !isUnacknowledged) this.#settleFailure(publisher, error);
        throw error;
      }
    });
  }

  /** The publications to send with these; none without an endpoint record. */
  #along(aid: Aid, wanted: readonly Pick<Publication, 'type'>[]): Publication[] {
    if (!wanted.some(({ type }) => type === RECORD.endpoints)) return [];
    try {
      return this.companions.map((companion) => companion(aid)).filter((one) => one !== null);
    } catch (error) {
      this.#deps.log.warn(
        { aid, error },
        'the records to publish with the endpoint record of this agent could not be created',
      );
      return [];
    }
  }

  /** Publishes the due records of an identity. Never rejects. Failures are retried later. */
  async renew(aid: Aid): Promise<void> {
    await this.turns.run(aid, async () => {
      const publisher = this.#deps.publications.publisher(aid);
      if (publisher === null) return;
      try {
        await this.#renew(publisher);
      } catch (error) {
        this.#settleFailure(publisher, error);
      }
    });
  }

  async #renew(publisher: PublisherRow): Promise<void> {
    const { publications, clock } = this.#deps;
    const { aid } = publisher;
    const identity = this.#deps.identity(aid);
    if (identity === null || publisher.state === 'held')
      return publications.schedule(aid, { ...publisher, dueAt: null });
    const before = publications.publications(aid);
    const now = clock.now();
    const along = this.#along(
      aid,
      before.filter((row) => goesOut(row, now)),
    );
    if (along.length > 0)
      publications.commit(() => {
        for (const one of along) publications.put(aid, one);
      }, 'soon');
    const all = along.length > 0 ? publications.publications(aid) : before;
    const rows = all.filter((row) => goesOut(row, now));
    await this.#send(identity, rows, all, { mayJump: publisher.claim });
  }

  /** Sends records, stores the acknowledgments, and schedules the next turn of the identity. */
  async #send(
    identity: LocalIdentity,
    rows: readonly PublicationRow[],
    all: readonly PublicationRow[],
    options: SendOptions,
  ): Promise<readonly Sent[]> {
    const { ready, peers } = this.#deps.network.reachability();
    const sent = rows.length === 0 ? [] : await this.#deps.recordPublisher.send(identity, rows, all, options);
    // If other nodes use this one alone, its own copy is published.
    const isAsked = ready && peers === 0;
    const kept = sent.filter(({ replicas, isHere }) => replicas > 0 || (isHere && isAsked));
    const { publications, clock } = this.#deps;
    const now = clock.now();
    const stillAlone = !ready && this.#isAlone && !this.#deps.network.reachability().ready;
    const waitsForNodes = sent.length > 0 && stillAlone && sent.every(({ isHere }) => isHere);
    // If a power failure undoes this, the records are still marked and are sent again.
    publications.commit(() => {
      publications.acknowledge(
        identity.aid,
        kept.map(({ row: { type, name, dirty }, record: { seq }, replicas, digest }) => ({
          ...{ type, name, seq, dirty, replicas, digest },
          publishedAt: now,
          settled: ready && peers > 0 && replicas >= Math.min(REPLICAS, peers),
        })),
      );
      const publisher = publications.publisher(identity.aid);
      if (publisher === null) return;
      const rowsNow = publications.publications(identity.aid);
      const open = rowsNow.filter((row) => row.dirty > 0);
      if (waitsForNodes) {
        // All records become due when a node appears: see `Directory.#lookAtNetwork`.
        publications.unsettle(identity.aid);
        const dueAt = now + REPUBLISH_INTERVAL_S * 1000;
        publications.schedule(identity.aid, { ...publisher, state: 'active', failures: 0, dueAt });
        return;
      }
      const failed = kept.length < sent.length;
      const failures = failed ? publisher.failures + 1 : 0;
      const retryAt = failed ? now + retryDelay(failures, this.#deps.random()) : now;
      publications.schedule(identity.aid, {
        state: 'active',
        failures,
        claim: publisher.claim && (open.length > 0 || !ready),
        // A failed renewal is not open, but it is retried too.
        dueAt: failed || open.length > 0 ? retryAt : renewalTime(rowsNow, this.#deps.random()),
      });
    }, 'soon');
    for (const { record } of kept) this.#deps.onPublished(record);
    return sent;
  }

  /** Stores the final result of a record after its answer. Never rejects. */
  async #complete(
    aid: Aid,
    published: PublishedRow,
    { replicas, newer }: Pick<PutResult, 'replicas' | 'newer'>,
  ): Promise<void> {
    const { publications, clock, network, log, recordPublisher } = this.#deps;
    if (newer !== null) recordPublisher.doubt(aid);
    try {
      await this.turns.run(aid, () => {
        const { ready, peers } = network.reachability();
        const settled = ready && peers > 0 && replicas >= Math.min(REPLICAS, peers);
        publications.commit(() => {
          publications.complete(aid, { ...published, replicas, settled });
          // The user requested to be the newest.
          if (newer !== null) publications.superseded(aid, published, clock.now());
        }, 'soon');
      });
      if (newer !== null) this.#deps.due();
    } catch (error) {
      log.debug({ aid, error }, 'the final result of a publication could not be stored');
    }
  }

  /** Schedules an identity after a failure: held, waiting for the user, or a retry. */
  #settleFailure({ aid, failures, claim }: PublisherRow, error: unknown): void {
    const { publications, clock, log } = this.#deps;
    const code = error instanceof SvcError ? error.code : undefined;
    if (code === 'stale_sequence') {
      log.warn(
        { aid },
        'the network holds a newer record of this agent, so it is not renewed here until you publish it',
      );
      return publications.schedule(aid, { claim: false, state: 'held', dueAt: null, failures: 0 });
    }
    if (code === 'bad_delegation' || code === 'key_locked') {
      log.warn({ aid, code }, 'this agent cannot be published until it is registered again or its key is unlocked');
      return publications.schedule(aid, { claim, state: 'active', dueAt: null, failures });
    }
    if (code === 'cancelled')
      return publications.schedule(aid, { claim, state: 'active', dueAt: clock.now(), failures });
    log.warn({ aid, error }, 'publishing failed, svcd will retry');
    const dueAt = clock.now() + retryDelay(failures + 1, this.#deps.random());
    publications.schedule(aid, { claim, state: 'active', dueAt, failures: failures + 1 });
  }

  /** As `acknowledged`, with the cause if no other node took the records. */
  async #acknowledged(sent: readonly Sent[], since: number): Promise<PublishResult> {
    const isTaken = sent.every(({ replicas }) => replicas > 0);
    const trouble = isTaken ? null : await this.#deps.outages?.explainFailure(since);
    if (trouble) throw trouble;
    const refused = sent.find(({ replicas, untimely }) => replicas === 0 && untimely > 0);
    if (refused !== undefined) throw new SvcError('clock_wrong', { details: { refused: refused.untimely } });
    const problem = this.#deps.outages?.cutOff() ?? null;
    return { ...acknowledged(sent, this.#isAlone), ...(problem === null ? {} : { problem }) };
  }

  /** True if there is no other node to store records. */
  get #isAlone(): boolean {
    return this.#deps.network.reachability().peers === 0;
  }

  /** The identity of a local agent or of the node. @throws SvcError `not_found` */
  identity(aid: Aid): LocalIdentity {
    const identity = this.#deps.identity(aid);
    if (identity === null) throw noSuchAgent(aid);
    return identity;
  }
}

function isAmong(wanted: readonly Publication[], row: Publication): boolean {
  return wanted.some((one) => one.type === row.type && one.name === row.name);
}

function unkeptRow(aid: Aid, one: Publication): PublicationRow {
  return { ...one, aid, seq: 0, publishedAt: null, replicas: 0, dirty: 0 };
}

/** @throws SvcError `not_acknowledged` if there are other nodes and no node stores one of the records */
function acknowledged(sent: readonly Sent[], isAlone: boolean): PublishResult {
  const lost = sent.filter(({ replicas, isHere }) => replicas === 0 && !(isHere && isAlone));
  if (lost.length > 0)
    throw new SvcError('not_acknowledged', {
      details: { records: lost.map(({ row }) => (row.type === RECORD.service ? row.name : row.type)) },
    });
  return {
    seq: Math.max(0, ...sent.map(({ record }) => record.seq)),
    replicas: sent.length === 0 ? 0 : Math.min(...sent.map(({ replicas }) => replicas)),
  };
}

// When records are renewed. Pure; times are Unix milliseconds.

/** Part of its lifetime after which a record is renewed. */
const RENEW_AT = 0.5;
/** A renewal may be earlier by up to this part of its interval, so that agents do not synchronize. */
const JITTER = 0.1;
/** Records that are due within this part of their interval are renewed with due records. */
const GATHER = 0.2;
/** Milliseconds until the records are sent again without an acknowledgment. */
export const RETRY: JitteredBackoff = { firstMs: 2000, maxMs: 120_000, jitter: 0.5 };
/** Longest wait for a renewal, in milliseconds. */
export const MAX_RENEWAL_MS: number = MAX_TTL_S * 1000 * RENEW_AT;

function intervalMs({ ttl }: Pick<PublicationRow, 'ttl'>): number {
  return ttl * 1000 * RENEW_AT;
}

/** True if a publication is sent in its publisher's next turn. */
export function goesOut(row: PublicationRow, now: number): boolean {
  if (row.dirty > 0 || row.publishedAt === null) return true;
  // After the clock was set back, records must not wait until the old time.
  return now >= row.publishedAt + intervalMs(row) * (1 - GATHER) || now < row.publishedAt;
}

/** When the first of these publications is to be renewed; null if there are none. `random` from 0 to below 1. */
export function renewalTime(rows: readonly PublicationRow[], random: number): number | null {
  const times = rows.map((row) => (row.publishedAt ?? 0) + intervalMs(row) * (1 - JITTER * random));
  return times.length === 0 ? null : Math.ceil(Math.min(...times));
}

/** Milliseconds to wait after `failures` consecutive attempts; `random` from 0 to below 1. */
export function retryDelay(failures: number, random: number): number {
  return backoff(RETRY, failures, random);
}

/** Seconds between renewals of an endpoint record. */
export const REPUBLISH_INTERVAL_S: number = RECORD_TTL_S * RENEW_AT;
