/** Which records of a mailbox need not be fetched again: they have been looked at. */
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { Verdict } from './inbox.ts';

/** Agents whose records are remembered. */
const MAX_AGENTS = 10_000;
/** Records that are remembered of one agent: more than a mailbox of the network holds. */
const MAX_PER_AGENT = 3000;

interface Known {
  readonly verdict: Verdict;
  /** Unix seconds at which the record ends. */
  readonly until: number;
}

export class KnownRecords {
  readonly #agents = new LruCache<Aid, Map<string, Known>>({ maxEntries: MAX_AGENTS });

  /** The digests of the records of an agent that have not expired. */
  digests(aid: Aid, now: number): Set<string> {
    const known = this.#agents.get(aid) ?? new Map<string, Known>();
    for (const [digest, { until }] of known) if (until < now) known.delete(digest);
    if (known.size === 0) this.#agents.delete(aid);
    return new Set(known.keys());
  }

  add(aid: Aid, digest: string, verdict: Verdict, until: number): void {
    const known = this.#agents.get(aid) ?? new Map<string, Known>();
    if (known.size >= MAX_PER_AGENT) known.clear();
    known.set(digest, { verdict, until });
    this.#agents.set(aid, known);
  }

  /** What had this verdict is worth another look. True where there was any. */
  reconsider(aid: Aid, verdict: Verdict): boolean {
    const known = this.#agents.get(aid);
    const found = [...(known ?? [])].filter(([, record]) => record.verdict === verdict);
    for (const [digest] of found) known?.delete(digest);
    return found.length > 0;
  }

  forget(aid: Aid): void {
    this.#agents.delete(aid);
  }
}
