/** Read repair: gives what was read to nodes near its key that lack it or hold an older one. */

import { toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES } from '../../foundation/records/types.ts';
import type { Lookup, LookupAnswer } from './lookup.ts';
import type { NodeClient } from './node-client.ts';
import { STORE_WIDTH } from './placement.ts';

/** Nodes that one read repairs, for how long the same record is not repaired again, and the life it must have left. */
const MAX_REPAIRS = 3;
const REPAIR_PAUSE_MS = 60_000;
const MIN_REPAIR_LIFE_S = 60;
const MAX_REPAIRS_REMEMBERED = 2000;

interface ReadRepairDependencies {
  readonly clock: Clock;
  readonly client: Pick<NodeClient, 'store'>;
}

export class ReadRepair {
  readonly #deps: ReadRepairDependencies;
  readonly #repaired: LruCache<string, true>;

  constructor(dependencies: ReadRepairDependencies) {
    this.#deps = dependencies;
    this.#repaired = new LruCache({ maxEntries: MAX_REPAIRS_REMEMBERED, ttlMs: REPAIR_PAUSE_MS }, dependencies);
  }

  /** To be called with what was read, and who held it. */
  onRead(key: Uint8Array, record: SignedRecord, lookup: Lookup, holders: readonly LookupAnswer[]): void {
    // protocol-dht.md, step 13
    const name = `${toHex(key)}.${record.type}`;
    const life = expiresAt(record) - unixSeconds(this.#deps.clock);
    if (record.encoded.length > MAX_DATAGRAM_RECORD_BYTES || life < MIN_REPAIR_LIFE_S || this.#repaired.has(name))
      return;
    const lacking = lookup
      .closest(lookup.beyond(STORE_WIDTH))
      .filter((answer) => answer.token !== null && !holders.includes(answer));
    if (lacking.length === 0) return;
    this.#repaired.set(name, true);
    for (const answer of lacking.slice(0, MAX_REPAIRS)) detach(this.#deps.client.store(answer, key, record));
  }
}
