/**
 * Bytes of callers' messages that the share holds: while a message is received, and until the server has taken it. A
 * caller that sends slowly, or to a server that does not read, uses up its own part only.
 */
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { MAX_BACKLOG_BYTES, MAX_CALLER_BACKLOG_BYTES } from './limits.ts';

export class Backlog {
  readonly #quota = new Quota({ perNode: MAX_CALLER_BACKLOG_BYTES, total: MAX_BACKLOG_BYTES });

  /** A message that begins to come. @param onEvict ends it to make room for a caller that has sent less */
  begin(caller: string, onEvict: () => void): QuotaShare {
    const share = this.#quota.take({ node: caller, source: caller, named: false }, { amount: 0, onEvict });
    if (share === null) throw new RangeError('nothing has no room');
    return share;
  }
}
