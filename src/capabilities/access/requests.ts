/**
 * Requests for access: with the default `ask`, callers that the access list does not know wait for a decision of the
 * owner. Requests of strangers are limited by source, and never use the part that is reserved for known callers.
 */
import { namesCall } from '../../foundation/access-text.ts';
import { MAX_ACCESS_REQUESTS, MAX_DECISION_WAIT_S, MAX_ENTRY_TOOLS } from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import { causeOf, type EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { KnownAgents, NodeParts } from '../../foundation/node-parts.ts';
import { Quota, type QuotaHolder, type QuotaLimits, type QuotaShare } from '../../foundation/quota.ts';
import { RateQuota, type RateQuotaLimits } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { AccessRequestRow, AccessRequestStore } from '../../foundation/store/access-requests.ts';
import { type HolderRequest, requestHolder } from '../../network/links/holder.ts';
import type { AccessAsk } from '../../network/links/types.ts';
import type { AccessControl } from './access-control.ts';
import type { AccessLists } from './access-lists.ts';
import type { Grants } from './grants.ts';

/** Lifetime of a request after its last repetition, and of an allowed exchange, milliseconds. */
export const ACCESS_REQUEST_LIFE_MS: number = 7 * 24 * 3_600_000;
/** Stored requests of one caller, of one node, and of strangers at one source and in one network. */
export const MAX_ASKS_PER_CALLER = 16;
export const MAX_ASKS_PER_NODE = 32;
export const MAX_ASKS_PER_SOURCE = 16;
export const MAX_ASKS_PER_NETWORK = 64;
/** Stored requests that are reserved for known callers. */
export const RESERVED_ASKS = 1000;
const STORED: QuotaLimits = {
  perKey: MAX_ASKS_PER_CALLER,
  perNode: MAX_ASKS_PER_NODE,
  perSource: MAX_ASKS_PER_SOURCE,
  perNetwork: MAX_ASKS_PER_NETWORK,
  total: MAX_ACCESS_REQUESTS,
  reserved: RESERVED_ASKS,
};
/** Callers that wait for a decision. */
const WAITING: QuotaLimits = { perKey: 4, perNode: 16, perSource: 32, perNetwork: 64, total: 512, reserved: 256 };
/** Requests per second. Each one costs a write to the database. */
const ASK_RATE: RateQuotaLimits = {
  perKey: { perSecond: 0.5, burst: 10 },
  perSource: { perSecond: 1, burst: 30 },
  perNetwork: { perSecond: 2, burst: 60 },
  strangers: { perSecond: 10, burst: 200 },
};
/** Events about requests of strangers in a burst. Beyond it and one a minute, the requests are only listed. */
export const NOTICE_BURST = 20;
const NOTICE_RATE: RateQuotaLimits = {
  perKey: { perSecond: 1 / 60, burst: 4 },
  strangers: { perSecond: 1 / 60, burst: NOTICE_BURST },
};
/** A caller should ask again after this time, seconds. */
export const ASK_AGAIN_S = 60;
/** Interval of the check for expired requests, milliseconds. */
const SWEEP_MS = 60_000;

/** States of a request, in the order of the protocol. */
export const VERDICTS = ['allowed', 'pending', 'refused', 'busy'] as const;

/** `busy`: too many requests. The ID is null if no request is stored. */
export interface Verdict {
  readonly state: (typeof VERDICTS)[number];
  readonly id: string | null;
}

/** Exactly one exchange, some tools, a limited time, or all of them. */
export interface Permit {
  readonly once?: boolean | undefined;
  readonly tools?: readonly string[] | undefined;
  /** Unix milliseconds. */
  readonly expiresAt?: number | undefined;
}

/** The text of a request. */
type Wish = Omit<AccessAsk, 'waitS'>;

interface AccessRequestsDependencies extends NodeParts, KnownAgents {
  readonly store: AccessRequestStore;
  readonly lists: AccessLists;
  readonly access: AccessControl;
  readonly grants: Grants;
  readonly events: EventSink;
}

export class AccessRequests implements Component {
  readonly #deps: AccessRequestsDependencies;
  readonly #stored = new Quota(STORED);
  readonly #shares = new Map<string, QuotaShare>();
  readonly #waiting = new Quota(WAITING);
  readonly #rate: RateQuota;
  readonly #notices: RateQuota;
  readonly #settled = new Listeners<[called: Aid]>();
  #sweep: RepeatingTask | null = null;
  readonly #unsubscribe: (() => void)[] = [];
  /** Cached, because every response contains them. */
  #pending: ReadonlyMap<Aid, number> | null = null;

  constructor(dependencies: AccessRequestsDependencies) {
    this.#deps = { ...dependencies, log: dependencies.log.child('access') };
    this.#rate = new RateQuota(ASK_RATE, dependencies);
    this.#notices = new RateQuota(NOTICE_RATE, dependencies);
  }

  async start(): Promise<void> {
    const { store, lists, clock, log } = this.#deps;
    for (const row of store.list()) {
      const share = this.#take(row.id, this.#holder(row));
      if (share === null) store.delete(row.id);
      else this.#shares.set(row.id, share);
    }
    const onChange = lists.onChange((subject) => {
      if (subject !== 'node') this.#listChanged(subject);
    });
    this.#unsubscribe.push(
      onChange,
      this.#deps.grants.used.add((id) => this.#release(id)),
    );
    const onError = (error: unknown): void => log.warn({ error }, 'expired access requests could not be deleted');
    this.#sweep = every(clock, { firstMs: 0, periodMs: SWEEP_MS, onError }, () => this.#expire());
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#sweep?.stop();
  }

  /** Pending requests and unused exchanges, in the order of their expiry. */
  list(): AccessRequestRow[] {
    const now = this.#deps.clock.now();
    return this.#deps.store.list().filter(({ expiresAt }) => now < expiresAt);
  }

  /** Pending requests by called agent. */
  pending(): ReadonlyMap<Aid, number> {
    this.#pending ??= this.#deps.store.counts();
    return this.#pending;
  }

  /**
   * Stores the request of a proven caller. An ID belongs to a text: a request with another text replaces the earlier one
   * and gets another ID. Returns the decision of the owner, if there is one.
   */
  ask(from: HolderRequest, wish: Wish): Verdict {
    const known = this.#verdict(from, wish);
    if (known.state !== 'pending') return known;
    const { store, clock, isKnown } = this.#deps;
    const { called, caller } = from;
    const holder = this.#holderOf(from);
    if (!this.#rate.take(holder)) return { state: 'busy', id: known.id };
    const at = clock.now();
    const { kind, asked, tool, note } = wish;
    const text = { kind, asked, tool, note, name: wish.name ?? null };
    const { node, source } = holder;
    const request = { called, caller, ...text, node, source, at, expiresAt: at + ACCESS_REQUEST_LIFE_MS };
    if (known.id !== null) {
      store.repeat({ ...request, id: known.id });
      this.#shares.get(known.id)?.touch();
      return known;
    }
    const replaced = store.pending(called, caller, kind);
    if (replaced !== null) this.#remove(replaced.id);
    const id = newId();
    const share = this.#take(id, holder);
    if (share === null) return { state: 'busy', id: null };
    try {
      store.add({ ...request, id });
    } catch (error) {
      share.release();
      throw error;
    }
    this.#shares.set(id, share);
    this.#pending = null;
    if (this.#notices.take(holder)) {
      const cause = causeOf(caller, isKnown(called, caller));
      this.#deps.events.emit(called, 'access.requested', { request: id, caller, kind }, cause);
    }
    return { state: 'pending', id };
  }

  /**
   * Waits until the owner decides about a pending request.
   * @param seconds at most `MAX_DECISION_WAIT_S`
   */
  async wait(from: HolderRequest, wish: Wish, seconds: number, signal: AbortSignal): Promise<Verdict> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const share = this.#waiting.take(this.#holderOf(from), { onEvict: resolve });
    if (share === null || signal.aborted) resolve();
    const look = (called: Aid): void => {
      if (called === from.called && this.#verdict(from, wish).state !== 'pending') resolve();
    };
    const stop = this.#settled.add(look);
    const timer = this.#deps.clock.after(Math.min(seconds, MAX_DECISION_WAIT_S) * 1000, resolve);
    const gone = (): void => resolve();
    signal.addEventListener('abort', gone, { once: true });
    try {
      await promise;
      return this.#verdict(from, wish);
    } finally {
      stop();
      timer.cancel();
      signal.removeEventListener('abort', gone);
      share?.release();
    }
  }

  /**
   * Allows what a caller asked for: once, for some MCP tools, for a limited time, or without a limit.
   * @throws SvcError `not_found`, `invalid_request`, `quota_exceeded`
   */
  async allow(id: string, { once = false, tools, expiresAt }: Permit): Promise<AccessRequestRow> {
    const row = this.#require(id);
    const { store, lists, clock } = this.#deps;
    if (tools !== undefined && row.kind !== 'call')
      throw new SvcError('invalid_request', { message: 'Only calls can be limited to MCP tools.' });
    if (!once) {
      await lists.allow(row.called, { aid: row.caller, expiresAt, tools });
      if (store.get(id) !== null) this.#remove(id);
      return row;
    }
    if (row.kind === 'call' && tools === undefined && !namesCall(row.asked))
      throw new SvcError('invalid_request', {
        message:
          'This request names no method with a complete path, which one call could be bound to. Allow it for a limited time, or for some tools.',
      });
    const end = expiresAt ?? clock.now() + ACCESS_REQUEST_LIFE_MS;
    if (end <= clock.now()) throw new SvcError('invalid_request', { message: 'expires_at is in the past.' });
    if (tools !== undefined && (tools.length === 0 || tools.length > MAX_ENTRY_TOOLS))
      throw new SvcError('invalid_request', { message: `Give 1 to ${MAX_ENTRY_TOOLS} tools.` });
    if (!store.allowOnce(id, tools ?? null, end)) throw missing(id);
    this.#pending = null;
    this.#shares.get(id)?.release();
    const share = this.#take(id, this.#holder({ ...row, isOnce: true })) ?? this.#take(id, this.#holder(row));
    if (share !== null) this.#shares.set(id, share);
    this.#decided(row, true);
    return row;
  }

  /**
   * Refuses a request and denies its caller.
   * @param expiresAt Unix milliseconds; omitted means until the deny entry is removed
   * @throws SvcError `not_found`, `invalid_request`, `quota_exceeded`
   */
  refuse(id: string, expiresAt?: number): AccessRequestRow {
    const row = this.#require(id);
    this.#deps.lists.deny(row.called, row.caller, expiresAt);
    return row;
  }

  /** Frees the places of an agent that was deleted with its requests. */
  forget(): void {
    const left = new Set(this.#deps.store.list().map(({ id }) => id));
    for (const id of this.#shares.keys()) if (!left.has(id)) this.#release(id);
  }

  #require(id: string): AccessRequestRow {
    const row = this.#deps.store.get(id);
    if (row === null || row.expiresAt <= this.#deps.clock.now()) throw missing(id);
    return row;
  }

  #verdict(from: HolderRequest, wish: Wish): Verdict {
    const { access, store, grants } = this.#deps;
    const { called, caller } = from;
    if (access.isClosedTo(from)) return { state: 'refused', id: null };
    const decision = access.decide(called, caller);
    if (decision === 'allow') return { state: 'allowed', id: null };
    if (decision !== 'ask') return { state: 'refused', id: null };
    const { kind, asked } = wish;
    if (grants.find(called, caller, kind, asked) !== null) return { state: 'allowed', id: null };
    const row = store.pending(called, caller, kind);
    return { state: 'pending', id: row !== null && isSameText(row, wish) ? row.id : null };
  }

  /** Answers the requests that a change of the access list decides. */
  #listChanged(called: Aid): void {
    const { access, store, grants } = this.#deps;
    for (const row of store.listOf(called)) {
      const decision = access.decide(called, row.caller);
      const isLimited =
        decision === 'ask' && !row.isOnce && grants.find(called, row.caller, row.kind, row.asked) !== null;
      if (decision === 'ask' && !isLimited) continue;
      this.#remove(row.id);
      this.#decided(row, decision === 'allow' || isLimited);
    }
    this.#settled.notify(called);
  }

  #decided({ id, called, caller, kind }: AccessRequestRow, allowed: boolean): void {
    this.#deps.events.emit(called, 'access.decided', { request: id, caller, kind, allowed });
    this.#settled.notify(called);
  }

  #expire(): number {
    for (const id of this.#deps.store.expired(this.#deps.clock.now())) this.#remove(id);
    return SWEEP_MS;
  }

  #take(id: string, holder: QuotaHolder): QuotaShare | null {
    return this.#stored.take(holder, { onEvict: () => this.#remove(id) });
  }

  #remove(id: string): void {
    this.#deps.store.delete(id);
    this.#release(id);
  }

  #release(id: string): void {
    this.#pending = null;
    this.#shares.get(id)?.release();
    this.#shares.delete(id);
  }

  #holderOf(from: HolderRequest): QuotaHolder {
    const { called, caller } = from;
    return { ...requestHolder(from, this.#deps.isKnown(called, caller)), key: caller };
  }

  /** Strangers cannot evict what the owner allowed. */
  #holder({ called, caller, node, source, isOnce }: AccessRequestRow): QuotaHolder {
    return { key: caller, node, source, named: source === null || isOnce || this.#deps.isKnown(called, caller) };
  }
}

/** True if a caller repeats its request. Without a note or a tool, the earlier one stays. */
function isSameText(row: AccessRequestRow, { asked, tool, note }: Wish): boolean {
  return row.asked === asked && (tool ?? row.tool) === row.tool && (note === '' || note === row.note);
}

function missing(id: string): SvcError {
  return new SvcError('not_found', {
    message: `There is no access request "${id}". It may have expired or been decided, or its caller changed its text. List them with "svc access requests".`,
  });
}
