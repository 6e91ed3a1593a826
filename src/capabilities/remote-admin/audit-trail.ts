/**
 * Writes down what is asked over remote administration. A request that changes something is on disk
 * before it runs; refusals are kept too, but a stranger who knocks without end fills neither the
 * disk nor the trail.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import type { AuditCaller, AuditStore } from '../../foundation/store/audit.ts';

/** Longest path that is written down, characters. */
const MAX_PATH_CHARS = 256;
/** Refusals of one node that are written down at once, and per second after: one in a minute. */
const REFUSALS_PER_NODE_BURST = 3;
const REFUSALS_PER_NODE_PER_S = 1 / 60;
/** The same of all nodes together: one in ten seconds. */
const REFUSALS_BURST = 30;
const REFUSALS_PER_S = 0.1;
/** Nodes whose refusals are counted apart. */
const MAX_NODES = 1024;

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A request that came in, as it goes on. */
export interface ObservedRequest {
  /** It calls a tool; told before the tool runs. What it throws keeps the tool from running. */
  readonly tool: (name: string) => void;
  /** How it was answered; null: it never was. */
  readonly answered: (status: number | null) => void;
}

export type RefusalReason = 'disabled' | 'access_denied' | 'rate_limited';

/** Where entries are kept. */
export type AuditMemory = Pick<AuditStore, keyof AuditStore>;

export interface AuditTrailDependencies {
  readonly memory: AuditMemory;
  readonly clock: Clock;
  readonly log: Log;
}

export interface LastRefusal {
  readonly caller: AuditCaller['caller'];
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly reason: string;
}

export class AuditTrail {
  /** What was written down. */
  readonly memory: AuditMemory;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #perNode: RateLimiter;
  readonly #all: RateLimiter;
  /** The newest refusal, also where it was not written down. */
  #lastRefusal: LastRefusal | null = null;

  constructor({ memory, clock, log }: AuditTrailDependencies) {
    this.memory = memory;
    this.#clock = clock;
    this.#log = log;
    this.#perNode = new RateLimiter(
      { perSecond: REFUSALS_PER_NODE_PER_S, burst: REFUSALS_PER_NODE_BURST, maxKeys: MAX_NODES },
      { clock },
    );
    this.#all = new RateLimiter({ perSecond: REFUSALS_PER_S, burst: REFUSALS_BURST, maxKeys: 1 }, { clock });
  }

  /**
   * Writes a request down before it runs; returns how to add what becomes of it.
   * @throws SvcError `not_writable`, `store_corrupt`: what cannot be written down must not run
   */
  request(caller: AuditCaller, method: string, path: string): ObservedRequest {
    const kind = READS.has(method) ? 'read' : 'write';
    const shown = path.slice(0, MAX_PATH_CHARS);
    const nothing = { tools: [], status: null, reason: null };
    const id = this.memory.add({ ...caller, ...nothing, kind, at: this.#clock.now(), method, path: shown });
    this.#log.info({ caller: caller.caller, method, path: shown }, 'a remote administrator asks');
    return {
      tool: (name) => this.memory.addTool(id, name),
      answered: (status) => {
        if (status !== null) this.#attempt(() => this.memory.setStatus(id, status));
      },
    };
  }

  /** Notes that a caller was not let in. */
  refused(caller: AuditCaller, reason: RefusalReason): void {
    const at = this.#clock.now();
    this.#lastRefusal = { caller: caller.caller, at, reason };
    if (!this.#perNode.take(caller.nodeKey ?? '') || !this.#all.take('')) return;
    this.#log.warn({ ...caller, reason }, 'remote administration was refused');
    const nothing = { method: null, path: null, tools: [], status: null };
    this.#attempt(() => void this.memory.add({ ...caller, ...nothing, kind: 'refused', at, reason }));
  }

  lastRefusal(): LastRefusal | null {
    if (this.#lastRefusal !== null) return this.#lastRefusal;
    const stored = this.memory.lastRefusal();
    return stored === null ? null : { caller: stored.caller, at: stored.at, reason: stored.reason ?? '' };
  }

  /** What comes after the fact must not fail for a full disk. */
  #attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#log.error({ err: error }, 'the audit trail cannot be written');
    }
  }
}
