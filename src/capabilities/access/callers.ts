/**
 * Callers and refused callers of the local agents, counted in memory since the start. AIDs are free to create, so
 * callers that no access list names are evicted first, and each source has a small limit.
 */
import type { Clock } from '../../foundation/clock.ts';
import { CALL_REFUSALS, type CallKind, type CallRefusal, MAX_CALLERS } from '../../foundation/domain/access.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { type AccessRequest, type CallerNotes, type Purpose, TUNNEL_PURPOSES } from '../../network/links/types.ts';
import { householdPrefix } from './guess-limits.ts';

/** Callers from one source that are kept per agent. Callers that the access list names do not count. */
export const MAX_CALLERS_PER_SOURCE = 16;
/** Callers kept for all agents together. */
export const MAX_CALLERS_TOTAL = 16_384;

/** A caller was refused. */
export interface RefusedCall {
  readonly caller: Aid;
  readonly called: Aid;
  readonly kind: CallKind;
  readonly code: CallRefusal;
}

/** Statistics of one caller of an agent. Times are Unix milliseconds. */
export interface KnownCaller {
  readonly aid: Aid;
  /** Accepted requests by kind. */
  readonly entered: Readonly<Record<CallKind, number>>;
  readonly refused: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly lastRefusal: { readonly at: number; readonly kind: CallKind; readonly code: CallRefusal } | null;
}

type Known = { -readonly [K in keyof KnownCaller]: KnownCaller[K] } & {
  readonly entered: Record<CallKind, number>;
  readonly source: string | null;
};

const KINDS: ReadonlyMap<Purpose, CallKind> = new Map<Purpose, CallKind>([
  ['http', 'call'],
  ['object', 'object'],
  ...TUNNEL_PURPOSES.map((purpose) => [purpose, 'tunnel'] as const),
]);

function refusalOf(code: ErrorCode): CallRefusal | null {
  return CALL_REFUSALS.find((one) => one === code) ?? null;
}

export class Callers implements CallerNotes {
  readonly #clock: Clock;
  readonly #isNamed: (called: Aid, caller: Aid) => boolean;
  /** By agent, then by caller. The most recent caller is last. */
  readonly #agents = new Map<Aid, Map<Aid, Known>>();
  readonly #refusals = new Listeners<[RefusedCall]>();
  readonly #since: number;
  #count = 0;

  /**
   * @param isNamed true if the owner allows a caller by its AID
   */
  constructor(clock: Clock, isNamed: (called: Aid, caller: Aid) => boolean) {
    this.#clock = clock;
    this.#isNamed = isNamed;
    this.#since = clock.now();
  }

  /** Start of the counting, Unix milliseconds. */
  get since(): number {
    return this.#since;
  }

  /** The callers of an agent, the most recent first. */
  list(called: Aid): readonly KnownCaller[] {
    return [...(this.#agents.get(called)?.values() ?? [])].reverse();
  }

  entered(request: AccessRequest): void {
    const kind = KINDS.get(request.purpose);
    if (kind === undefined) return;
    this.#caller(request).entered[kind]++;
  }

  refused(request: AccessRequest, code: ErrorCode): void {
    const kind = KINDS.get(request.purpose);
    const refusal = refusalOf(code);
    if (kind === undefined || refusal === null) return;
    const known = this.#caller(request);
    known.refused++;
    known.lastRefusal = { at: known.lastAt, kind, code: refusal };
    this.#refusals.notify({ caller: request.caller, called: request.called, kind, code: refusal });
  }

  /** Adds a listener for refused calls. Returns a function that removes it. */
  onRefused(listener: (call: RefusedCall) => void): () => void {
    return this.#refusals.add(listener);
  }

  /**
   * Authorizes a link and records a refusal. Accepted calls, tunnel connections and objects are recorded by the code that
   * handles them.
   * @throws any error of `authorize`
   */
  async authorize(request: AccessRequest, authorize: (request: AccessRequest) => void | Promise<void>): Promise<void> {
    try {
      await authorize(request);
    } catch (error) {
      if (error instanceof SvcError) this.refused(request, error.code);
      throw error;
    }
  }

  /** Drops the callers of a deleted agent. */
  drop(called: Aid): void {
    this.#count -= this.#agents.get(called)?.size ?? 0;
    this.#agents.delete(called);
  }

  /** Returns the caller's entry and marks it as the most recent. */
  #caller({ caller: aid, called, source }: AccessRequest): Known {
    const now = this.#clock.now();
    const callers = this.#agents.get(called) ?? new Map<Aid, Known>();
    this.#agents.set(called, callers);
    const known =
      callers.get(aid) ?? this.#newCaller(called, callers, aid, source === null ? null : householdPrefix(source));
    callers.delete(aid);
    callers.set(aid, known);
    known.lastAt = now;
    return known;
  }

  #newCaller(called: Aid, callers: Map<Aid, Known>, aid: Aid, source: string | null): Known {
    const now = this.#clock.now();
    const entered = { call: 0, tunnel: 0, object: 0 };
    this.#evict(called, callers, aid, source);
    this.#count++;
    return { aid, entered, refused: 0, firstAt: now, lastAt: now, lastRefusal: null, source };
  }

  #evict(called: Aid, callers: Map<Aid, Known>, aid: Aid, source: string | null): void {
    const isFree = (known: Known): boolean => !this.#isNamed(called, known.aid);
    if (source !== null && !this.#isNamed(called, aid)) {
      const fromSource = [...callers.values()].filter((known) => known.source === source && isFree(known));
      if (fromSource.length >= MAX_CALLERS_PER_SOURCE) this.#drop(callers, fromSource[0]);
    }
    if (callers.size >= MAX_CALLERS) this.#dropOldest(callers, isFree);
    if (this.#count < MAX_CALLERS_TOTAL) return;
    const [most, all] = [...this.#agents].reduce((one, other) => (other[1].size > one[1].size ? other : one));
    this.#dropOldest(all, (known) => !this.#isNamed(most, known.aid));
  }

  #dropOldest(callers: Map<Aid, Known>, isFree: (known: Known) => boolean): void {
    const all = callers.values();
    this.#drop(callers, all.find(isFree) ?? callers.values().next().value);
  }

  #drop(callers: Map<Aid, Known>, known: Known | undefined): void {
    if (known !== undefined && callers.delete(known.aid)) this.#count--;
  }
}
