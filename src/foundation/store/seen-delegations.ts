/**
 * The newest delegation met of each agent, kept over restarts: the thief of an operational key is
 * not let in again because the daemon was started anew. Written in batches: losing the last seconds
 * in a crash costs no more than meeting the newer delegation once again.
 */
import type { Clock } from '../clock.ts';
import type { Aid } from '../identity/aid.ts';
import type { Component } from '../lifecycle.ts';
import type { Log } from '../log.ts';
import { LruCache } from '../lru-cache.ts';
import { every, type Repeating, UNTIL_HURRIED } from '../repeat.ts';
import { orZero } from './row.ts';
import type { Store } from './store.ts';

/** Agents that are remembered; those not met for longest are forgotten first. */
export const MAX_REMEMBERED_AGENTS = 100_000;
/** Agents of which it is at hand: every link that is opened asks for both of its own. */
const MAX_AT_HAND = 8192;
/** How long news wait to be written together, milliseconds. */
const WRITE_PAUSE_MS = 5000;
/** How long they wait after the disk has refused, milliseconds. */
const RETRY_PAUSE_MS = 60_000;

export class SeenDelegations implements Component {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #unwritten = new Map<Aid, number>();
  readonly #atHand = new LruCache<Aid, number>({ maxEntries: MAX_AT_HAND });
  readonly #flush: Repeating;

  constructor(dependencies: { readonly store: Store; readonly clock: Clock; readonly log: Log }) {
    this.#store = dependencies.store;
    this.#clock = dependencies.clock;
    this.#log = dependencies.log;
    const onError = (error: unknown): void => this.#unwritable(error);
    this.#flush = every(this.#clock, { firstMs: UNTIL_HURRIED, periodMs: RETRY_PAUSE_MS, onError }, () => {
      this.#write();
      return UNTIL_HURRIED;
    });
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#flush.stop();
    this.#write();
  }

  /** Unix seconds of the newest delegation met; 0 where none is known. */
  newest(aid: Aid): number {
    const known = this.#atHand.get(aid);
    if (known !== undefined) return known;
    const row = this.#store.one`SELECT issued_at FROM seen_delegations WHERE aid = ${aid}`;
    const newest = Math.max(orZero(row, 'issued_at'), this.#unwritten.get(aid) ?? 0);
    this.#atHand.set(aid, newest);
    return newest;
  }

  /** Remembers a verified delegation. */
  note(aid: Aid, issuedAt: number): void {
    if (issuedAt > (this.#atHand.peek(aid) ?? issuedAt)) this.#atHand.set(aid, issuedAt);
    if (issuedAt <= (this.#unwritten.get(aid) ?? -1)) return;
    if (this.#unwritten.size === 0) this.#flush.soon(WRITE_PAUSE_MS);
    this.#unwritten.set(aid, issuedAt);
  }

  #unwritable(error: unknown): void {
    this.#log.warn({ error }, 'delegations that were met could not be written; it is tried again');
    for (const aid of this.#unwritten.keys())
      if (this.#unwritten.size > MAX_REMEMBERED_AGENTS) this.#unwritten.delete(aid);
  }

  #write(): void {
    if (this.#unwritten.size === 0) return;
    const now = this.#clock.now();
    this.#store.transaction(() => {
      for (const [aid, issuedAt] of this.#unwritten)
        this.#store.run`
          INSERT INTO seen_delegations (aid, issued_at, seen_at) VALUES (${aid}, ${issuedAt}, ${now})
          ON CONFLICT (aid) DO UPDATE SET issued_at = max(issued_at, excluded.issued_at), seen_at = excluded.seen_at`;
      this.#store.run`
        DELETE FROM seen_delegations WHERE aid IN
          (SELECT aid FROM seen_delegations ORDER BY seen_at DESC LIMIT -1 OFFSET ${MAX_REMEMBERED_AGENTS})`;
    });
    this.#unwritten.clear();
  }
}
