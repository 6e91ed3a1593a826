/**
 * What searches found a moment ago. Who publishes often does it several times in a row: again, another record, a service.
 * The nodes around the same key are still the same ones; and where a search met fewer nodes than it looks for, they are all
 * there are, whatever the key. They need not be asked again who they are.
 */
import { formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { RECORD_DIGEST_BYTES } from '../../foundation/records/types.ts';
import type { Lookup, LookupAnswer } from './lookup.ts';

/**
 * Milliseconds from the beginning of a search for which it is remembered. Who starts from it gives records to its nodes
 * within 5 s more (`vicinity.ts`), and the tokens by which they know our address hold for 7.5 s at least.
 */
const RECENT_MS = 2000;
/** Searches that are remembered; one takes some 8 KiB. */
const MAX_SEARCHES = 32;
/** What a node says of records to who asks for none. */
const NONE = { count: 0, digest: new Uint8Array(RECORD_DIGEST_BYTES), records: [], summaries: [] };

interface Search {
  /** Unix milliseconds. */
  readonly began: number;
  /** By the address of who gave them, without the records that they brought. */
  readonly answers: ReadonlyMap<string, LookupAnswer>;
}

export class RecentSearches {
  readonly #clock: Clock;
  readonly #byKey = new LruCache<string, Search>({ maxEntries: MAX_SEARCHES });
  /** The last one that met all nodes there are. */
  #whole: Search | null = null;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Remembers a search that begins now, in which all were asked, once it has come to its end. */
  follow(key: Uint8Array, lookup: Lookup): void {
    const began = this.#clock.now();
    detach(
      lookup.finished.then(() => {
        if (lookup.isStopped) return;
        const heard = lookup.closest(Number.POSITIVE_INFINITY);
        const bare = heard.map((answer) => ({ ...answer, reply: { ...answer.reply, ...NONE } }));
        const answers = new Map(bare.map((answer) => [formatAddress(answer.address), answer]));
        this.#byKey.set(toHex(key), { began, answers });
        if (lookup.hasMetAll) this.#whole = { began, answers };
      }),
    );
  }

  /** What the nodes around a key said a moment ago, by address; null where that is not known. */
  around(key: Uint8Array): ReadonlyMap<string, LookupAnswer> | null {
    return this.#fresh(this.#byKey.get(toHex(key)) ?? null) ?? this.#fresh(this.#whole);
  }

  #fresh(search: Search | null): ReadonlyMap<string, LookupAnswer> | null {
    if (search === null) return null;
    const age = this.#clock.now() - search.began;
    return age >= 0 && age < RECENT_MS ? search.answers : null;
  }
}
