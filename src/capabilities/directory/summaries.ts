/**
 * How the publications of many identities stand, kept in memory until they change: a list of a thousand agents would
 * read and decode thousands of rows each time that it is asked for.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { PublicationStore } from '../../foundation/store/publications.ts';
import { isPublished, type PublicationSummary, SUMMARIZED, summarize } from './summary.ts';

/** Identities whose summaries are kept; one takes about 500 bytes. */
const MAX_KEPT = 4096;

interface SummariesDependencies {
  readonly publications: PublicationStore;
  readonly clock: Clock;
}

export class Summaries {
  readonly #deps: SummariesDependencies;
  readonly #kept = new LruCache<Aid, PublicationSummary>({ maxEntries: MAX_KEPT });

  constructor(dependencies: SummariesDependencies) {
    this.#deps = dependencies;
    dependencies.publications.changed.add((aid) => {
      if (aid === null) this.#kept.clear();
      else this.#kept.delete(aid);
    });
  }

  /** Forgets an agent that is no longer here: its rows went with it. */
  forget(aid: Aid): void {
    this.#kept.delete(aid);
  }

  /** All of the asked ones are there. */
  of(aids: readonly Aid[]): Map<Aid, PublicationSummary> {
    const { publications, clock } = this.#deps;
    const now = clock.now();
    const found = new Map<Aid, PublicationSummary>();
    const missing: Aid[] = [];
    for (const aid of aids) {
      const known = this.#kept.get(aid);
      if (known === undefined) missing.push(aid);
      else
        found.set(aid, known.published === isPublished(known, now) ? known : { ...known, published: !known.published });
    }
    if (missing.length === 0) return found;
    const publishers = publications.publishersOf(missing);
    const rows = publications.publicationsOf(missing, SUMMARIZED);
    for (const aid of missing) {
      const summary = summarize(publishers.get(aid), rows.get(aid) ?? [], now);
      this.#kept.set(aid, summary);
      found.set(aid, summary);
    }
    return found;
  }
}
