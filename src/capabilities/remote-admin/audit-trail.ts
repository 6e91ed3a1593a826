/**
 * Writes down what is asked over remote administration. A request that changes something is on disk
 * before it runs; refusals are kept too, but a stranger who knocks without end fills neither the
 * disk nor the trail.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { type Rate, RateQuota } from '../../foundation/rate-quota.ts';
import type { AuditCaller, AuditStore } from '../../foundation/store/audit.ts';

/** Longest path that is written down, characters. */
const MAX_PATH_CHARS = 256;
/** Refusals that are written down: of one node, one in a minute. */
const REFUSALS_PER_NODE: Rate = { perSecond: 1 / 60, burst: 3 };
/** The same of the strangers on one IPv4 address or IPv6 /64. */
const REFUSALS_PER_SOURCE: Rate = { perSecond: 2 / 60, burst: 6 };
/** The same of those in one IPv4 /24 or IPv6 /48. */
const REFUSALS_PER_NETWORK: Rate = { perSecond: 4 / 60, burst: 12 };
/** The same of all strangers. */
const REFUSALS_OF_STRANGERS: Rate = { perSecond: 0.1, burst: 30 };

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
  readonly #refusals: RateQuota;
  /** The newest refusal, also where it was not written down. */
  #lastRefusal: LastRefusal | null = null;

  constructor({ memory, clock, log }: AuditTrailDependencies) {
    this.memory = memory;
    this.#clock = clock;
    this.#log = log;
    this.#refusals = new RateQuota(
      {
        perKey: REFUSALS_PER_NODE,
        perSource: REFUSALS_PER_SOURCE,
        perNetwork: REFUSALS_PER_NETWORK,
        strangers: REFUSALS_OF_STRANGERS,
      },
      { clock },
    );
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

  /**
   * Notes that a caller was not let in.
   * @param named the owner named the caller in the node's access list
   */
  refused(caller: AuditCaller, reason: RefusalReason, named: boolean): void {
    const at = this.#clock.now();
    this.#lastRefusal = { caller: caller.caller, at, reason };
    const { nodeKey, address } = caller;
    // A named caller has a rate of its own, so its key is the agent: node keys are free.
    const key = named ? caller.caller : (nodeKey ?? '');
    if (!this.#refusals.take({ key, node: key, source: address, named })) return;
    this.#log.warn({ ...caller, reason }, 'remote administration was refused');
    const nothing = { method: null, path: null, tools: [], status: null };
    this.#attempt(() => void this.memory.add({ ...caller, ...nothing, kind: 'refused', at, reason }, named));
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
