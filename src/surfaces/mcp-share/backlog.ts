/**
 * Counts the bytes of callers' messages that the share holds, from receiving a message until the server has read it. A caller with slow messages or a slow server only uses up its own quota.
 */
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { MAX_BACKLOG_BYTES, MAX_CALLER_BACKLOG_BYTES } from './limits.ts';

export class Backlog {
  readonly #quota = new Quota({ perNode: MAX_CALLER_BACKLOG_BYTES, total: MAX_BACKLOG_BYTES });

  /**
   * Registers a message at its start.
   * @param onEvict aborts it if it is evicted in favor of a caller with fewer bytes
   */
  begin(caller: string, onEvict: () => void): QuotaShare {
    const share = this.#quota.take({ node: caller, source: caller, named: false }, { amount: 0, onEvict });
    if (share === null) throw new RangeError('an empty message did not get a quota');
    return share;
  }
}
