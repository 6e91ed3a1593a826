/** Limits the disk space of the objects of one agent, including uploads in progress. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { ObjectUsage } from '../../foundation/store/objects.ts';

/** Limit of stored bytes of one agent. Files registered in place do not count. */
export const MAX_OBJECT_BYTES_PER_AGENT = 20 * 1024 ** 3;
/** Limit of objects of one agent, including those registered in place. */
export const MAX_OBJECTS_PER_AGENT = 10_000;

export type ObjectQuota = ObjectUsage;

/** The reserved quota of an upload. */
export interface Reservation {
  /** @throws SvcError `quota_exceeded` */
  readonly add: (bytes: number) => void;
  /**
   * Checks the quota again, because other uploads may have finished. Call it in the same turn in which the object is
   * stored.
   * @throws SvcError `quota_exceeded`
   */
  readonly confirm: () => void;
  [Symbol.dispose](): void;
}

export class QuotaLedger {
  readonly quota: ObjectQuota;
  readonly #usage: (aid: Aid) => ObjectUsage;
  readonly #reserved = new Map<Aid, { bytes: number; count: number }>();

  constructor(usage: (aid: Aid) => ObjectUsage, quota: Partial<ObjectQuota> = {}) {
    this.#usage = usage;
    this.quota = { bytes: MAX_OBJECT_BYTES_PER_AGENT, count: MAX_OBJECTS_PER_AGENT, ...quota };
  }

  /**
   * Reserves quota for another object of an agent.
   * @throws SvcError `quota_exceeded`
   */
  reserve(aid: Aid): Reservation {
    const used = this.#usage(aid);
    const reserved = this.#reserved.get(aid) ?? { bytes: 0, count: 0 };
    this.#check(used.count + reserved.count + 1, 0);
    this.#reserved.set(aid, reserved);
    reserved.count++;
    let own = 0;
    return {
      add: (bytes) => {
        this.#check(0, used.bytes + reserved.bytes + bytes);
        reserved.bytes += bytes;
        own += bytes;
      },
      confirm: () => {
        const now = this.#usage(aid);
        this.#check(now.count + 1, now.bytes + own);
      },
      [Symbol.dispose]: () => {
        reserved.bytes -= own;
        reserved.count--;
        own = 0;
        if (reserved.count === 0) this.#reserved.delete(aid);
      },
    };
  }

  #check(count: number, bytes: number): void {
    if (count > this.quota.count)
      throw new SvcError('quota_exceeded', {
        message: `An agent can have at most ${this.quota.count} objects. Delete some.`,
        details: { max_objects: this.quota.count },
      });
    if (bytes > this.quota.bytes)
      throw new SvcError('quota_exceeded', {
        message: `The stored objects of an agent can use at most ${this.quota.bytes} bytes. Delete some.`,
        details: { max_bytes: this.quota.bytes },
      });
  }
}
