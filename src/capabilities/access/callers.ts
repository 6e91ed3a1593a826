/**
 * Who called the agents here, and who was refused: counted in memory since the start. AIDs are free to make, so
 * those that no access list names go first, and a source has room for a few of them only.
 */
import type { Clock } from '../../foundation/clock.ts';
import { CALL_REFUSALS, type CallKind, type CallRefusal, MAX_CALLERS } from '../../foundation/domain/access.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { CallerNotes } from '../../network/links/access-request.ts';
import { type AccessRequest, type Purpose, TUNNEL_PURPOSES } from '../../network/links/types.ts';
import { householdOf } from './guess-limits.ts';

/** Callers from one source that an agent remembers, those aside whom its access list names. */
export const MAX_CALLERS_PER_SOURCE = 16;
/** Callers that are remembered of all agents together. */
export const MAX_CALLERS_IN_ALL = 16_384;
/** Tunnels begin with these; other links of a tunnel belong to one that has begun. */
const BEGINNINGS: ReadonlySet<Purpose> = new Set<Purpose>(['tcp', 'tcp-wide', 'tcp-lasting']);

/** A caller was refused. */
export interface RefusedCall {
  readonly caller: Aid;
  readonly called: Aid;
  readonly kind: CallKind;
  readonly code: CallRefusal;
}

/** What is known of one caller of an agent; times are Unix milliseconds. */
export interface KnownCaller {
  readonly aid: Aid;
  /** How often it was let in, by what for. */
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

export interface CallersDependencies {
  readonly clock: Clock;
  /** True where the owner of an agent lets a caller in by its AID. */
  readonly isNamed: (called: Aid, caller: Aid) => boolean;
}

function kindOf(purpose: Purpose): CallKind | null {
  if (purpose === 'http') return 'call';
  if (purpose === 'object') return 'object';
  return TUNNEL_PURPOSES.some((one) => one === purpose) ? 'tunnel' : null;
}

function refusalOf(code: ErrorCode): CallRefusal | null {
  return CALL_REFUSALS.find((one) => one === code) ?? null;
}

export class Callers implements CallerNotes {
  readonly #deps: CallersDependencies;
  /** By agent, then by caller; who called last comes last. */
  readonly #agents = new Map<Aid, Map<Aid, Known>>();
  readonly #refusals = new Listeners<[RefusedCall]>();
  readonly #since: number;
  #count = 0;

  constructor(dependencies: CallersDependencies) {
    this.#deps = dependencies;
    this.#since = dependencies.clock.now();
  }

  /** Since when callers are counted, Unix milliseconds. */
  get since(): number {
    return this.#since;
  }

  /** The callers of an agent, the last one first. */
  of(called: Aid): readonly KnownCaller[] {
    return [...(this.#agents.get(called)?.values() ?? [])].reverse();
  }

  entered(request: AccessRequest): void {
    const kind = kindOf(request.purpose);
    if (kind === null) return;
    this.#caller(request).entered[kind]++;
  }

  refused(request: AccessRequest, code: ErrorCode): void {
    const kind = kindOf(request.purpose);
    const refusal = refusalOf(code);
    if (kind === null || refusal === null) return;
    const known = this.#caller(request);
    known.refused++;
    known.lastRefusal = { at: known.lastAt, kind, code: refusal };
    this.#refusals.notify({ caller: request.caller, called: request.called, kind, code: refusal });
  }

  /** Tells of each refusal. Returns how to end that. */
  onRefused(listener: (call: RefusedCall) => void): () => void {
    return this.#refusals.add(listener);
  }

  /**
   * Asks for permission to open a link, and notes it: refusals of all, and those who come in with a tunnel, which is
   * asked for no more. Calls and objects are noted one by one where they are served.
   * @throws what `authorize` throws
   */
  async watch(request: AccessRequest, authorize: (request: AccessRequest) => void | Promise<void>): Promise<void> {
    try {
      await authorize(request);
    } catch (error) {
      if (error instanceof SvcError) this.refused(request, error.code);
      throw error;
    }
    if (BEGINNINGS.has(request.purpose)) this.entered(request);
  }

  /** Forgets the callers of an agent that is gone. */
  forget(called: Aid): void {
    this.#count -= this.#agents.get(called)?.size ?? 0;
    this.#agents.delete(called);
  }

  /** The caller, as the last one to come. */
  #caller({ caller: aid, called, source }: AccessRequest): Known {
    const now = this.#deps.clock.now();
    const callers = this.#agents.get(called) ?? new Map<Aid, Known>();
    this.#agents.set(called, callers);
    const known =
      callers.get(aid) ?? this.#newCaller(called, callers, aid, source === null ? null : householdOf(source));
    callers.delete(aid);
    callers.set(aid, known);
    known.lastAt = now;
    return known;
  }

  #newCaller(called: Aid, callers: Map<Aid, Known>, aid: Aid, source: string | null): Known {
    const now = this.#deps.clock.now();
    const entered = { call: 0, tunnel: 0, object: 0 };
    this.#makeRoom(called, callers, aid, source);
    this.#count++;
    return { aid, entered, refused: 0, firstAt: now, lastAt: now, lastRefusal: null, source };
  }

  #makeRoom(called: Aid, callers: Map<Aid, Known>, aid: Aid, source: string | null): void {
    const isFree = (known: Known): boolean => !this.#deps.isNamed(called, known.aid);
    if (source !== null && !this.#deps.isNamed(called, aid)) {
      const neighbours = [...callers.values()].filter((known) => known.source === source && isFree(known));
      if (neighbours.length >= MAX_CALLERS_PER_SOURCE) this.#drop(callers, neighbours[0]);
    }
    if (callers.size >= MAX_CALLERS) this.#dropOldest(callers, isFree);
    if (this.#count < MAX_CALLERS_IN_ALL) return;
    const [most, all] = [...this.#agents].reduce((one, other) => (other[1].size > one[1].size ? other : one));
    this.#dropOldest(all, (known) => !this.#deps.isNamed(most, known.aid));
  }

  #dropOldest(callers: Map<Aid, Known>, isFree: (known: Known) => boolean): void {
    const all = callers.values();
    this.#drop(callers, all.find(isFree) ?? callers.values().next().value);
  }

  #drop(callers: Map<Aid, Known>, known: Known | undefined): void {
    if (known !== undefined && callers.delete(known.aid)) this.#count--;
  }
}
