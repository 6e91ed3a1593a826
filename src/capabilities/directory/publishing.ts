/**
 * Keeps what identities publish: on request, and by itself when its time has come. All work on one
 * identity happens one after the other.
 */

import { KeyedMutex } from '../../foundation/concurrency.ts';
import { detach } from '../../foundation/detached.ts';
import { RECORD_TTL_S, REPLICAS } from '../../foundation/domain/directory.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { RECORD } from '../../foundation/records/types.ts';
import type { Publication, PublicationRow, PublishedRow, PublisherRow } from '../../foundation/store/publications.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import type { PutResult } from '../../network/records/types.ts';
import type { Approach, RecordPublisher, SendOptions, Sent } from './record-publisher.ts';
import { goesOut, REPUBLISH_INTERVAL_S, renewalTime, retryDelay } from './schedule.ts';
import type { DirectoryDependencies, DirectoryOptions } from './types.ts';

/** Milliseconds after which a publication that somebody asked for is tried again, should we crash meanwhile. */
const SAFETY_MS = 30_000;
/** Part of what is left of the life of records over which renewals are spread whose time was over before the start. */
const OVERDUE_SPREAD = 0.25;
/** Milliseconds between looks at the bound service of an agent that is not alive … */
const LAPSED_LOOK_MS = 60_000;
/** … and so many for each such agent, where they are many. */
const LAPSED_LOOK_EACH_MS = 100;

/**
 * The highest sequence number, and the fewest other nodes that keep one of the records: 0 while there is no other
 * node. The records go out by themselves when one appears.
 */
export interface PublishResult {
  readonly seq: number;
  readonly replicas: number;
}

/** Failures after which the records go out again as if nobody had asked. */
const UNACKNOWLEDGED: ReadonlySet<string> = new Set(['not_acknowledged', 'network_unavailable', 'clock_wrong']);

export const ENDPOINTS: Publication = {
  type: RECORD.endpoints,
  name: '',
  payload: new Uint8Array(),
  ttl: RECORD_TTL_S,
};

/** What goes out beside the endpoint record of an agent now; null where nothing has to. */
export type Companion = (aid: Aid) => Publication | null;

interface PublishingDependencies extends DirectoryDependencies {
  readonly recordPublisher: RecordPublisher;
  /** Told that something has become due. */
  due(): void;
}

export class Publishing {
  readonly #options: DirectoryOptions;
  readonly #deps: PublishingDependencies;
  /** Whatever happens to the publications of an identity happens in its turn. */
  readonly turns = new KeyedMutex<Aid>();
  /** Who has something to go out beside endpoint records: one publication of two records costs little more than of one. */
  readonly companions: Companion[] = [];
  /** Agents that are not renewed because they are not alive: the ones whose heartbeats count. */
  readonly #lapsed = new Set<Aid>();

  constructor(options: DirectoryOptions, dependencies: PublishingDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  start(): void {
    const { publications, clock } = this.#deps;
    for (const aid of publications.lapsed()) this.#lapsed.add(aid);
    publications.resume(clock.now());
    publications.repairTimes(clock.now());
    publications.spreadOverdue(clock.now(), OVERDUE_SPREAD);
  }

  /** Gives up what is under way. */
  async stop(): Promise<void> {
    this.#deps.recordPublisher.stop();
    await this.turns.idle();
  }

  isLapsed(aid: Aid): boolean {
    return this.#lapsed.has(aid);
  }

  /** Lets an agent go on that shows life again. */
  async revive(aid: Aid): Promise<void> {
    const { publications, clock } = this.#deps;
    await this.turns.run(aid, () => publications.revive(aid, clock.now()));
    this.#lapsed.delete(aid);
  }

  /** Forgets an agent that is no longer here. */
  forget(aid: Aid): void {
    this.#lapsed.delete(aid);
    this.#deps.recordPublisher.forget(aid);
  }

  /**
   * Keeps these publications and brings them out now, ahead of what the network holds. They stay on
   * the renewal list also where this fails with `not_acknowledged`.
   * @throws SvcError `not_found`, `not_acknowledged`, `network_unavailable`, `clock_wrong`, `stale_sequence`, `bad_delegation`, `timeout`
   */
  async publish(aid: Aid, wanted: readonly Publication[]): Promise<PublishResult> {
    return this.turns.run(aid, async () => {
      const identity = this.identity(aid);
      const { publications, recordPublisher, clock } = this.#deps;
      const since = clock.now();
      const both = [...wanted, ...this.#along(aid, wanted)];
      // The search runs while the disk writes. No record is sent before its number is on disk.
      const near = recordPublisher.approach(aid, both);
      const reserved = await this.#reserve(aid, both, near);
      const all = publications.publications(aid);
      try {
        const onWhole: SendOptions['onWhole'] = (row, { seq }, result) =>
          detach(this.#complete(aid, { type: row.type, name: row.name, seq }, result));
        const sent = await this.#send(identity, among(all, both), all, {
          mayJump: true,
          reserved,
          near,
          onWhole,
        });
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

  /** Stores the publications and assigns their sequence numbers. Returns the first number when it is on disk. */
  async #reserve(aid: Aid, wanted: readonly Publication[], near: Approach): Promise<number | null> {
    const { publications, recordPublisher, clock } = this.#deps;
    try {
      return await publications.commit(() => {
        publications.claim(aid, clock.now() + SAFETY_MS);
        for (const one of wanted) publications.put(aid, one);
        return publications.reserve(aid, 0, wanted.length);
      }, 'now');
    } catch (error) {
      recordPublisher.leave(near);
      throw error;
    }
  }

  /** What goes out beside these; nothing where the endpoint record is not among them. */
  #along(aid: Aid, wanted: readonly Pick<Publication, 'type'>[]): Publication[] {
    if (!wanted.some(({ type }) => type === RECORD.endpoints)) return [];
    try {
      return this.companions.map((companion) => companion(aid)).filter((one) => one !== null);
    } catch (error) {
      this.#deps.log.warn({ aid, error }, 'what goes out beside the endpoint record of this agent could not be made');
      return [];
    }
  }

  /**
   * Brings out one record without keeping it: what replaces a publication that was removed.
   * @throws as `publish`
   */
  async publishOnce(aid: Aid, one: Publication): Promise<PublishResult> {
    return this.turns.run(aid, async () => {
      const identity = this.identity(aid);
      this.#deps.publications.claim(aid, this.#deps.clock.now() + SAFETY_MS);
      const all = this.#deps.publications.publications(aid);
      const row: PublicationRow = { ...one, aid, seq: 0, publishedAt: null, replicas: 0, dirty: 0 };
      const since = this.#deps.clock.now();
      const sent = await this.#deps.recordPublisher.send(identity, [row], all, { mayJump: true });
      return await this.#acknowledged(sent, since);
    });
  }

  /** Brings out what is due of an identity, if it is alive. Never rejects: what fails is tried again later. */
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
    if (aid !== this.#options.nodeAid && !(await this.#deps.isAlive(aid))) {
      this.#lapsed.add(aid);
      const pause = Math.max(LAPSED_LOOK_MS, this.#lapsed.size * LAPSED_LOOK_EACH_MS);
      const dueAt = this.#deps.serviceOf(aid) !== '' ? clock.now() + pause : null;
      return publications.schedule(aid, { ...publisher, state: 'lapsed', dueAt });
    }
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

  /** Sends, keeps what was acknowledged, and decides when the identity's next turn is. */
  async #send(
    identity: LocalIdentity,
    rows: readonly PublicationRow[],
    all: readonly PublicationRow[],
    options: SendOptions,
  ): Promise<readonly Sent[]> {
    const { ready, peers } = this.#deps.network.reachability();
    const sent = rows.length === 0 ? [] : await this.#deps.recordPublisher.send(identity, rows, all, options);
    // The only node of the table that others use is the one that they ask: its own copy is published.
    const isAsked = ready && peers === 0;
    const kept = sent.filter(({ replicas, isHere }) => replicas > 0 || (isHere && isAsked));
    const { publications, clock } = this.#deps;
    const now = clock.now();
    const stillAlone = !ready && this.#isAlone && !this.#deps.network.reachability().ready;
    const waitsForNodes = sent.length > 0 && stillAlone && sent.every(({ isHere }) => isHere);
    // Where the power takes it back, what is dirty still goes out again.
    publications.commit(() => {
      publications.acknowledge(
        identity.aid,
        kept.map(({ row: { type, name, dirty }, record: { seq }, replicas, said }) => ({
          ...{ type, name, seq, dirty, replicas, said },
          publishedAt: now,
          settled: ready && peers > 0 && replicas >= Math.min(REPLICAS, peers),
        })),
      );
      const publisher = publications.publisher(identity.aid);
      if (publisher === null) return;
      this.#lapsed.delete(identity.aid);
      const rowsNow = publications.publications(identity.aid);
      const open = rowsNow.filter((row) => row.dirty > 0);
      if (waitsForNodes) {
        // The first node that appears makes all of it due: see `Directory.#lookAtNetwork`.
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
        // What was only to be renewed is not open, and its time is over: it waits its turn like all that failed.
        dueAt: failed || open.length > 0 ? retryAt : renewalTime(rowsNow, this.#deps.random()),
      });
    }, 'soon');
    for (const { record } of kept) this.#deps.onPublished(record);
    return sent;
  }

  /** Takes notice of what became of a record after its answer. Never rejects. */
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
          // Whoever asked for it asked to be ahead.
          if (newer !== null) publications.superseded(aid, published, clock.now());
        }, 'soon');
      });
      if (newer !== null) this.#deps.due();
    } catch (error) {
      log.debug({ aid, error }, 'what became of a record after its answer could not be written down');
    }
  }

  /** What an identity does after a failure: hold back, wait for somebody, or try again. */
  #settleFailure({ aid, failures, claim }: PublisherRow, error: unknown): void {
    const { publications, clock, log } = this.#deps;
    const code = error instanceof SvcError ? error.code : undefined;
    if (code === 'stale_sequence') {
      log.warn({ aid }, 'the network holds a newer record of this agent; it is not renewed here until it is published');
      return publications.schedule(aid, { claim: false, state: 'held', dueAt: null, failures: 0 });
    }
    if (code === 'bad_delegation' || code === 'key_locked') {
      log.warn({ aid, code }, 'this agent cannot be published until it is registered again or its key is unlocked');
      return publications.schedule(aid, { claim, state: 'active', dueAt: null, failures });
    }
    if (code === 'cancelled')
      return publications.schedule(aid, { claim, state: 'active', dueAt: clock.now(), failures });
    log.warn({ aid, error }, 'publishing failed; it is tried again');
    const dueAt = clock.now() + retryDelay(failures + 1, this.#deps.random());
    publications.schedule(aid, { claim, state: 'active', dueAt, failures: failures + 1 });
  }

  /** As `acknowledged`, with the cause if no other node took the records. */
  async #acknowledged(sent: readonly Sent[], since: number): Promise<PublishResult> {
    const isTaken = sent.every(({ replicas }) => replicas > 0);
    const trouble = isTaken ? null : await this.#deps.why?.(since);
    if (trouble) throw trouble;
    const refused = sent.find(({ replicas, untimely }) => replicas === 0 && untimely > 0);
    if (refused !== undefined) throw new SvcError('clock_wrong', { details: { refused: refused.untimely } });
    return acknowledged(sent, this.#isAlone);
  }

  /** True if no other node could keep what is published here. */
  get #isAlone(): boolean {
    return this.#deps.network.reachability().peers === 0;
  }

  /** Who an agent here, or the node, is. @throws SvcError `not_found` */
  identity(aid: Aid): LocalIdentity {
    const identity = this.#deps.identity(aid);
    if (identity === null) throw noSuchAgent(aid);
    return identity;
  }
}

function isAmong(wanted: readonly Publication[], row: Publication): boolean {
  return wanted.some((one) => one.type === row.type && one.name === row.name);
}

/** The rows of what is wanted. */
function among(rows: readonly PublicationRow[], wanted: readonly Publication[]): PublicationRow[] {
  return rows.filter((row) => isAmong(wanted, row));
}

/** @throws SvcError `not_acknowledged` if there are other nodes and none of them keeps one of the records */
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
