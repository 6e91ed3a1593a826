/**
 * Fetches the notes that wait in the record network: of every agent in turn, of some before the
 * others, a few at a time, so that ten thousand agents do not flood the network.
 */
import { toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { mailboxKey } from '../../foundation/records/keys.ts';
import { expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { Inbox, Verdict } from './inbox.ts';
import { KnownRecords } from './known-records.ts';
import type { MailNetwork } from './types.ts';

/** Milliseconds between the end of a round over all agents and the next one … */
const ROUND_PAUSE_MS = 60_000;
/** … which may be shorter by up to this part, so that daemons do not move in step. */
const JITTER = 0.25;
/** Mailboxes that are looked at side by side. */
const CONCURRENCY = 4;
/** Mailboxes that are looked at per second, and at once after a quiet time. */
const LOOKS_PER_S = 20;
const LOOK_BURST = 40;
/** Milliseconds for one look into the network. */
const LOOK_TIMEOUT_MS = 10_000;
/** Notes that are fetched at once. */
const NOTES_PER_LOOK = 64;
/** Looks at one mailbox in a row: more than its notes take. */
const MAX_LOOKS_IN_A_ROW = 40;
/** Agents that are read from the database at once. */
const PAGE = 200;

export interface AgentsPage {
  readonly aids: readonly Aid[];
  /** Where the next page begins; null where this is the last. */
  readonly next: string | null;
}

interface NoteFetcherDependencies {
  readonly network: MailNetwork;
  readonly inbox: Pick<Inbox, 'accept'>;
  readonly clock: Clock;
  readonly log: Log;
  /** A number from 0 to below 1. */
  random(): number;
  /** The local agents, in a stable order. */
  agents(cursor: string | undefined, limit: number): AgentsPage;
}

export class NoteFetcher {
  readonly #deps: NoteFetcherDependencies;
  readonly #rate: RateLimiter;
  readonly #known = new KnownRecords();
  readonly #stop = new AbortController();
  readonly #running = new Map<Aid, Promise<void>>();
  /** Agents whose mailbox is looked at before the others, and from when on, in the clock's time. */
  readonly #soon = new Map<Aid, number>();
  /** The rest of the present round; null between two rounds. */
  #round: Iterator<Aid> | null = null;
  readonly #rounds: RepeatingTask;
  readonly #turns: RepeatingTask;
  #unsubscribe: () => void = () => {};
  #ready = false;

  constructor(dependencies: NoteFetcherDependencies) {
    this.#deps = dependencies;
    this.#rate = new RateLimiter({ perSecond: LOOKS_PER_S, burst: LOOK_BURST, maxKeys: 1 }, dependencies);
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

  /** Begins as soon as the network is ready. */
  start(): void {
    this.#unsubscribe = this.#deps.network.onReachability(() => this.#networkChanged());
    this.#networkChanged();
  }

  /** Starts nothing more and waits for what is under way. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stop.abort();
    this.#rounds.stop();
    this.#turns.stop();
    await Promise.all(this.#running.values());
  }

  /** Looks at an agent's mailbox before the others, in `ms` milliseconds at the earliest. */
  soon(aid: Aid, ms = 0): void {
    const at = this.#deps.clock.now() + ms;
    this.#soon.set(aid, Math.min(at, this.#soon.get(aid) ?? at));
    this.#turns.soon(ms);
  }

  /** There may be room, or a key, for what was passed over for that reason. */
  reconsider(aid: Aid, verdict: Extract<Verdict, 'full' | 'unknown_key'>): void {
    if (this.#known.reconsider(aid, verdict)) this.soon(aid);
  }

  /** Forgets an agent that is no longer here. */
  forget(aid: Aid): void {
    this.#soon.delete(aid);
    this.#known.forget(aid);
  }

  #networkChanged(): void {
    const { ready } = this.#deps.network.reachability();
    if (ready && !this.#ready) this.#rounds.soon();
    this.#ready = ready;
  }

  /** The next round begins after a pause, or where one is planned already, with that. */
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

  /** Starts what may start. The end of one that runs is the next occasion; after the last one there is a pause. */
  #turn(): number | void {
    while (this.#running.size < CONCURRENCY) {
      if (!this.#deps.network.reachability().ready) return;
      const wait = this.#rate.retryAfterMs('');
      if (wait > 0) return wait;
      const aid = this.#next();
      if (aid === null) break;
      this.#rate.take('');
      this.#start(aid);
    }
    if (this.#running.size === 0) this.#pause();
    const now = this.#deps.clock.now();
    let next = UNTIL_REQUESTED;
    for (const at of this.#soon.values()) if (at > now) next = Math.min(next, at);
    return next - now;
  }

  /** Who is next; null where nobody is, or all that are wait for a look that is under way. */
  #next(): Aid | null {
    const now = this.#deps.clock.now();
    for (const [aid, at] of this.#soon) {
      if (at > now || this.#running.has(aid)) continue;
      this.#soon.delete(aid);
      return aid;
    }
    for (;;) {
      const next = this.#round?.next();
      if (next === undefined || next.done === true) {
        this.#round = null;
        return null;
      }
      if (!this.#running.has(next.value)) return next.value;
    }
  }

  #start(aid: Aid): void {
    const work = this.#look(aid)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#deps.log.warn({ aid, error }, 'a mailbox could not be looked at');
      })
      .finally(() => {
        this.#running.delete(aid);
        this.#turns.soon();
      });
    this.#running.set(aid, work);
  }

  async #look(aid: Aid): Promise<void> {
    const { network, clock } = this.#deps;
    const key = mailboxKey(aid);
    for (let i = 0; i < MAX_LOOKS_IN_A_ROW; i++) {
      const records = await network.list(key, [RECORD.note], {
        known: this.#known.digests(aid, unixSeconds(clock)),
        limit: NOTES_PER_LOOK,
        timeoutMs: LOOK_TIMEOUT_MS,
        signal: this.#stop.signal,
      });
      if (records.length === 0) return;
      await this.#accept(aid, key, records);
      if (records.length < NOTES_PER_LOOK) return;
    }
  }

  async #accept(aid: Aid, key: Uint8Array, records: readonly SignedRecord[]): Promise<void> {
    // The newest come first; in a mailbox they stand in the order in which they were sent.
    const ordered = records.toReversed();
    const receipts = await this.#deps.inbox.accept(aid, ordered);
    for (const [i, record] of ordered.entries()) {
      const verdict = receipts[i]?.verdict ?? 'refused';
      this.#known.add(aid, toHex(recordDigest(record.encoded)), verdict, expiresAt(record));
    }
    const removals = receipts.flatMap(({ removal }) => removal ?? []);
    if (removals.length > 0) await this.#deps.network.removeNotes(key, removals);
  }
}
