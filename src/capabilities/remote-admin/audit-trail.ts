/**
 * Records the requests of remote administration. A request that changes something is on disk before it runs. Refusals
 * are recorded up to a rate, so strangers can fill neither the disk nor the trail.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import type { AuditCaller, AuditStore } from '../../foundation/store/audit.ts';

/** Longest path that is recorded, in characters. */
const MAX_PATH_CHARS = 256;
/** Rate of recorded refusals per node: one per minute. */
const REFUSALS_PER_NODE: Rate = { perSecond: 1 / 60, burst: 3 };
/** The same for the strangers of one IPv4 address or IPv6 /64. */
const REFUSALS_PER_SOURCE: Rate = { perSecond: 2 / 60, burst: 6 };
/** The same for the strangers of one IPv4 /24 or IPv6 /48. */
const REFUSALS_PER_NETWORK: Rate = { perSecond: 4 / 60, burst: 12 };
/** The same for all strangers together. */
const REFUSALS_OF_STRANGERS: Rate = { perSecond: 0.1, burst: 30 };

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A running request. */
export interface ObservedRequest {
  /** Called before the request runs a tool. If it throws, the tool does not run. */
  readonly tool: (name: string) => void;
  /** Called with the status of the response, or null if there was none. */
  readonly answered: (status: number | null) => void;
}

export type RefusalReason = 'disabled' | 'access_denied' | 'rate_limited';

export interface LastRefusal {
  readonly caller: AuditCaller['caller'];
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly reason: string;
}

export class AuditTrail {
  /** The stored entries. */
  readonly memory: AuditStore;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #refusals: RateQuota;
  /** The latest refusal, even if it was not recorded. */
  #lastRefusal: LastRefusal | null = null;

  constructor(memory: AuditStore, clock: Clock, log: Log) {
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
   * Records a request before it runs. Returns an observer that adds its outcome.
   * @throws SvcError `not_writable`, `store_corrupt`: a request that cannot be recorded must not run
   */
  request(caller: AuditCaller, method: string, path: string): ObservedRequest {
    const kind = READS.has(method) ? 'read' : 'write';
    const shown = path.slice(0, MAX_PATH_CHARS);
    const nothing = { tools: [], status: null, reason: null };
    const id = this.memory.add({ ...caller, ...nothing, kind, at: this.#clock.now(), method, path: shown });
    this.#log.info({ caller: caller.caller, method, path: shown }, 'request of a remote administrator');
    return {
      tool: (name) => this.memory.addTool(id, name),
      answered: (status) => {
        if (status !== null) this.#attempt(() => this.memory.setStatus(id, status));
      },
    };
  }

  /**
   * Records that a caller was rejected.
   * @param named the owner named the caller in the node's access list
   */
  refused(caller: AuditCaller, reason: RefusalReason, named: boolean): void {
    const at = this.#clock.now();
    this.#lastRefusal = { caller: caller.caller, at, reason };
    const { nodeKey, address } = caller;
    // A named caller has a separate rate under its AID. Node keys are free to create.
    const key = named ? caller.caller : (nodeKey ?? '');
    if (!this.#refusals.take({ key, node: key, source: address, named })) return;
    this.#log.warn({ ...caller, reason }, 'rejected remote administration');
    const nothing = { method: null, path: null, tools: [], status: null };
    this.#attempt(() => void this.memory.add({ ...caller, ...nothing, kind: 'refused', at, reason }, named));
  }

  lastRefusal(): LastRefusal | null {
    if (this.#lastRefusal !== null) return this.#lastRefusal;
    const stored = this.memory.lastRefusal();
    return stored === null ? null : { caller: stored.caller, at: stored.at, reason: stored.reason ?? '' };
  }

  /** Outcomes are recorded after the fact, so a full disk must not fail them. */
  #attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#log.error({ err: error }, 'failed to write the audit trail');
    }
  }
}
