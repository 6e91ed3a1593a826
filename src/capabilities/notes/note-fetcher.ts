/**
 * Fetches notes from the record network: for each agent in turn, for some agents first, and for a few at a time, so that ten
 * thousand agents do not flood the network.
 */
import { toHex } from '../../foundation/bytes.ts';
import { unixSeconds } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { Inbox, Verdict } from './inbox.ts';
import type { NotesDependencies } from './types.ts';

/** Milliseconds between two rounds over all agents. */
const ROUND_PAUSE_MS = 60_000;
/** The pause is shortened by up to this part, so that daemons do not synchronize. */
const JITTER = 0.25;
/** Mailboxes that are fetched concurrently. */
const CONCURRENCY = 4;
/** Rate and burst of mailboxes that are fetched: on request, or as the network has become ready. */
const LOOKS_PER_S = 20;
const LOOK_BURST = 40;
/**
 * The same of later rounds. Most mailboxes are empty, and a thousand of them would cost 60 KB per second. Up to this
 * burst, a round takes no longer.
 */
export const ROUND_LOOKS_PER_S = 1;
export const ROUND_LOOK_BURST = 60;
/** Of this number of rounds, all but one query only the few closest nodes of each mailbox. */
const ROUNDS_PER_FULL_ROUND = 4;
/** Milliseconds for one request to the network. */
const LOOK_TIMEOUT_MS = 10_000;
/** Notes per request. */
const NOTES_PER_LOOK = 64;
/** Consecutive requests for one mailbox: more than its notes need. */
const MAX_LOOKS_IN_A_ROW = 40;
/** Agents per page of the database. */
const PAGE = 200;

type FetcherParts = Pick<NotesDependencies, 'network' | 'clock' | 'log' | 'random' | 'agents'> & {
  readonly inbox: Pick<Inbox, 'accept'>;
};

export class NoteFetcher {
  readonly #deps: FetcherParts;
  readonly #rate: RateLimiter;
  readonly #roundRate: RateLimiter;
  readonly #known = new KnownRecords();
  readonly #stop = new AbortController();
  readonly #running = new Map<Aid, Promise<void>>();
  /** Agents that are next, with the earliest time in Unix milliseconds. */
  readonly #soon = new Map<Aid, number>();
  /** The rest of the current round; null between rounds. */
  #round: Iterator<Aid> | null = null;
  /** Rounds since the last one that queried all nodes near each mailbox. */
  #briefRounds = 0;
  readonly #rounds: RepeatingTask;
  readonly #turns: RepeatingTask;
  #unsubscribe: () => void = () => {};
  #ready = false;
  /** True in the first round since the network was ready: notes may have waited. */
  #catchesUp = true;

  constructor(dependencies: FetcherParts) {
    this.#deps = dependencies;
    this.#rate = new RateLimiter({ perSecond: LOOKS_PER_S, burst: LOOK_BURST, maxKeys: 1 }, dependencies);
    const roundRate = { perSecond: ROUND_LOOKS_PER_S, burst: ROUND_LOOK_BURST, maxKeys: 1 };
    this.#roundRate = new RateLimiter(roundRate, dependencies);
    const onError = (error: unknown): void => {
      dependencies.log.error({ error }, 'the list of agents cannot be read');
      this.#round = null;
      this.#pause();
    };
    this.#turns = every(dependencies.clock, { periodMs: UNTIL_REQUESTED, onError }, () => this.#turn());
    this.#rounds = every(dependencies.clock, { periodMs: UNTIL_REQUESTED, onError }, () => {
      this.#round = this.#everyone();
      this.#turns.soon();
    });
  }

  /** Begins when the network is ready. */
  start(): void {
    this.#unsubscribe = this.#deps.network.onReachability(() => this.#networkChanged());
    this.#networkChanged();
  }

  /** Waits for running requests, then stops. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stop.abort();
    this.#rounds.stop();
    this.#turns.stop();
    await Promise.all(this.#running.values());
  }

  /** Fetches an agent's mailbox before other mailboxes, after at least `ms` milliseconds. */
  soon(aid: Aid, ms = 0): void {
    const at = this.#deps.clock.monotonic() + ms;
    this.#soon.set(aid, Math.min(at, this.#soon.get(aid) ?? at));
    this.#turns.soon(ms);
  }

  /** Fetches the notes with this verdict again, because its reason may not apply now. */
  reconsider(aid: Aid, verdict: Extract<Verdict, 'full' | 'unknown_key'>): void {
    if (this.#known.reconsider(aid, verdict)) this.soon(aid);
  }

  /** Forgets a deleted agent. */
  forget(aid: Aid): void {
    this.#soon.delete(aid);
    this.#known.forget(aid);
  }

  #networkChanged(): void {
    const { ready } = this.#deps.network.reachability();
    if (ready && !this.#ready) {
      this.#catchesUp = true;
      this.#briefRounds = 0;
      this.#rounds.soon();
    }
    this.#ready = ready;
  }

  /** Plans the next round, unless one is planned. */
  #pause(): void {
    this.#rounds.soon(Math.ceil(ROUND_PAUSE_MS * (1 - JITTER * this.#deps.random())));
  }

  *#everyone(): Generator<Aid> {
    let cursor: string | undefined;
    do {
      const page = this.#deps.agents(cursor, PAGE);
      yield* page.aids;
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
  }

  /** Starts as many requests as are allowed. It runs again when one ends. After the last one there is a pause. */
  #turn(): number | void {
    while (this.#running.size < CONCURRENCY) {
      if (!this.#deps.network.reachability().ready) return;
      const wait = this.#rate.retryAfterMs('');
      if (wait > 0) return wait;
      const requested = this.#nextRequested();
      const aid = requested ?? this.#nextOfRound();
      if (aid === null) break;
      this.#rate.take('');
      this.#start(aid, requested === null && this.#briefRounds > 0);
    }
    if (this.#running.size === 0 && this.#round === null) this.#pause();
    const now = this.#deps.clock.monotonic();
    // Otherwise the end of a request continues.
    const isPaced = this.#round !== null && this.#running.size < CONCURRENCY;
    let next = isPaced ? now + this.#roundWaitMs : UNTIL_REQUESTED;
    for (const at of this.#soon.values()) if (at > now) next = Math.min(next, at);
    return next - now;
  }

  #nextRequested(): Aid | null {
    const now = this.#deps.clock.monotonic();
    for (const [aid, at] of this.#soon) {
      if (at > now || this.#running.has(aid)) continue;
      this.#soon.delete(aid);
      return aid;
    }
    return null;
  }

  get #roundWaitMs(): number {
    return this.#catchesUp ? 0 : this.#roundRate.retryAfterMs('');
  }

  /** Null if the round is over, or must wait. */
  #nextOfRound(): Aid | null {
    while (this.#round !== null && this.#roundWaitMs === 0) {
      const next = this.#round.next();
      if (next.done === true) {
        this.#round = null;
        this.#catchesUp = false;
        this.#briefRounds = (this.#briefRounds + 1) % ROUNDS_PER_FULL_ROUND;
      } else if (!this.#running.has(next.value)) {
        this.#roundRate.take('');
        return next.value;
      }
    }
    return null;
  }

  #start(aid: Aid, isBrief: boolean): void {
    const work = this.#fetch(aid, isBrief)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#deps.log.warn({ aid, error }, 'a mailbox could not be fetched');
      })
      .finally(() => {
        this.#running.delete(aid);
        this.#turns.soon();
      });
    this.#running.set(aid, work);
  }

  /** @param isBrief query the few closest nodes, and the other ones only if these have a note */
  async #fetch(aid: Aid, isBrief: boolean): Promise<void> {
    const { network, clock } = this.#deps;
    const key = mailboxKey(aid);
    for (let i = 0; i < MAX_LOOKS_IN_A_ROW; i++) {
      const records = await network.list(key, [RECORD.note], {
        known: this.#known.digests(aid, unixSeconds(clock)),
        limit: NOTES_PER_LOOK,
        timeoutMs: LOOK_TIMEOUT_MS,
        signal: this.#stop.signal,
        brief: isBrief && i === 0,
      });
      if (records.length === 0) return;
      await this.#accept(aid, key, records);
      if (records.length < NOTES_PER_LOOK && !(isBrief && i === 0)) return;
    }
  }

  async #accept(aid: Aid, key: Uint8Array, records: readonly SignedRecord[]): Promise<void> {
    // The network returns the newest first. Mailboxes are in the order of sending.
    const ordered = records.toReversed();
    const receipts = await this.#deps.inbox.accept(aid, ordered);
    for (const [i, record] of ordered.entries()) {
      const verdict = receipts[i]?.verdict ?? 'refused';
      this.#known.add(aid, toHex(recordDigest(record.encoded)), verdict, expiresAt(record));
    }
    // More may follow.
    if (receipts.some(({ verdict }) => verdict === 'kept')) this.soon(aid, ROUND_PAUSE_MS);
    const removals = receipts.flatMap(({ removal }) => removal ?? []);
    if (removals.length > 0) await this.#deps.network.removeNotes(key, removals);
  }
}

// Records that need not be fetched again.

/** Agents with remembered records. */
const MAX_AGENTS = 10_000;
/** Remembered records of one agent: more than a mailbox of the network holds. */
const MAX_PER_AGENT = 3000;

interface Known {
  readonly verdict: Verdict;
  /** Unix seconds when the record expires. */
  readonly until: number;
}

class KnownRecords {
  readonly #agents = new LruCache<Aid, Map<string, Known>>({ maxEntries: MAX_AGENTS });

  /** The digests of the records of an agent that have not expired. */
  digests(aid: Aid, now: number): Set<string> {
    const known = this.#agents.get(aid) ?? new Map<string, Known>();
    for (const [digest, { until }] of known) if (until < now) known.delete(digest);
    if (known.size === 0) this.#agents.delete(aid);
    return new Set(known.keys());
  }

  add(aid: Aid, digest: string, verdict: Verdict, until: number): void {
    const known = this.#agents.get(aid) ?? new Map<string, Known>();
    if (known.size >= MAX_PER_AGENT) known.clear();
    known.set(digest, { verdict, until });
    this.#agents.set(aid, known);
  }

  /** Forgets the records with this verdict. True if there were any. */
  reconsider(aid: Aid, verdict: Verdict): boolean {
    const known = this.#agents.get(aid);
    const found = [...(known ?? [])].filter(([, record]) => record.verdict === verdict);
    for (const [digest] of found) known?.delete(digest);
    return found.length > 0;
  }

  forget(aid: Aid): void {
    this.#agents.delete(aid);
  }
}
