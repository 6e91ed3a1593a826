/** Finds agents by their services. */
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { MAX_NAMES_PER_CALL, MAX_PROVIDERS } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { parseMeta } from '../../foundation/records/fields.ts';
import { serviceKey } from '../../foundation/records/keys.ts';
import { decodeServicePayload, type ServicePayload } from '../../foundation/records/payloads.ts';
import { compareFreshness, expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import type { RecordNetwork } from '../../network/records/types.ts';
import { checkServiceName } from './cards.ts';
import type { Records } from './types.ts';

/** Milliseconds for one service name. */
const LIST_TIMEOUT_MS = 5000;

export interface Search {
  readonly services: readonly string[];
  /** One of them must match. Empty for any. */
  readonly protocols: readonly string[];
  /** All of them must match. */
  readonly tags: readonly string[];
  readonly limit: number;
  readonly signal?: AbortSignal;
  /** As in `GetOptions`, for each service. */
  readonly onHeard?: (isEnough: boolean) => void;
}

export interface DiscoveryEntry {
  readonly service: string;
  readonly aid: Aid;
  readonly name: string;
  readonly brief: string;
  readonly protocols: readonly string[];
  readonly tags: readonly string[];
  readonly meta: Readonly<Record<string, unknown>>;
  /** Seconds within which the agent usually starts when it is called; undefined if it always runs. */
  readonly wakesWithinS?: number;
  readonly seq: number;
  /** Unix seconds. */
  readonly publishedAt: number;
  /** Unix seconds. */
  readonly expiresAt: number;
}

interface Found {
  readonly record: SignedRecord;
  readonly payload: ServicePayload;
}

function lower(labels: readonly string[]): Set<string> {
  return new Set(labels.map((label) => label.trim().toLowerCase()));
}

function matches({ payload }: Found, protocols: ReadonlySet<string>, tags: ReadonlySet<string>): boolean {
  const speaks = protocols.size === 0 || !lower(payload.protocols).isDisjointFrom(protocols);
  return speaks && tags.isSubsetOf(lower(payload.tags));
}

/** Newest first; the same order everywhere for records of one second. */
function byAge(a: Found, b: Found): number {
  return b.record.timestamp - a.record.timestamp || Buffer.compare(a.record.encoded, b.record.encoded);
}

/** The newest record of each agent under one name. */
function newestOfEach(service: string, records: readonly SignedRecord[]): Found[] {
  const newest = new Map<Aid, Found>();
  for (const record of records) {
    const payload = record.type === RECORD.service ? decodeServicePayload(record.payload) : null;
    if (payload === null || payload.service !== service) continue;
    const other = newest.get(record.aid);
    if (other === undefined || compareFreshness(record, other.record) > 0) newest.set(record.aid, { record, payload });
  }
  return [...newest.values()];
}

function entryOf({ record, payload }: Found): DiscoveryEntry {
  const { service, name, brief, protocols, tags, meta, wakesWithinS } = payload;
  const { aid, seq, timestamp: publishedAt } = record;
  const wakes = wakesWithinS === undefined ? {} : { wakesWithinS };
  const times = { publishedAt, expiresAt: expiresAt(record) };
  return { service, aid, name, brief, protocols, tags, meta: parseMeta(meta) ?? {}, ...wakes, seq, ...times };
}

/**
 * The agents that offer one of the services and fit the filter.
 * @throws SvcError `bad_service_name`, `invalid_request`, `cancelled`
 */
export async function discover(network: Pick<Records, 'list'>, search: Search): Promise<readonly DiscoveryEntry[]> {
  const services = [...new Set(search.services.map(checkServiceName))];
  if (services.length > MAX_NAMES_PER_CALL)
    throw new SvcError('invalid_request', { message: `A search takes at most ${MAX_NAMES_PER_CALL} service names.` });
  const protocols = lower(search.protocols);
  const tags = lower(search.tags);
  const lists = services.map(async (service) => {
    const { onHeard = () => {} } = search;
    const options = { limit: MAX_PROVIDERS, timeoutMs: LIST_TIMEOUT_MS, onHeard };
    return newestOfEach(service, await network.list(serviceKey(service), [RECORD.service], options));
  });
  const found = (await abortable(Promise.all(lists), search.signal)).flat();
  return found
    .filter((one) => matches(one, protocols, tags))
    .sort(byAge)
    .slice(0, search.limit)
    .map(entryOf);
}

/** Maximum number of search results to remember. */
const MAX_REMEMBERED = 500;

/**
 * Services that this node knows without a search: from the records that it keeps for the network, and from the results
 * of earlier searches.
 */
export class RecentServices {
  readonly #network: Pick<RecordNetwork, 'recent'>;
  readonly #clock: Clock;
  /** By agent and service, the last found last. */
  readonly #found = new Map<string, DiscoveryEntry>();

  constructor(network: Pick<RecordNetwork, 'recent'>, { clock }: { readonly clock: Clock }) {
    this.#network = network;
    this.#clock = clock;
  }

  /** Remembers the results of a search. */
  note(entries: readonly DiscoveryEntry[]): void {
    for (const entry of entries) {
      this.#found.delete(keyOf(entry));
      this.#found.set(keyOf(entry), entry);
    }
    for (const key of this.#found
      .keys()
      .take(Math.max(0, this.#found.size - MAX_REMEMBERED))
      .toArray())
      this.#found.delete(key);
  }

  /** The newest entry of each agent and service, the last published first. */
  list(limit: number): readonly DiscoveryEntry[] {
    const now = unixSeconds(this.#clock);
    const newest = new Map<string, DiscoveryEntry>();
    for (const entry of [...this.#found.values(), ...this.#kept()]) {
      const other = newest.get(keyOf(entry));
      if (entry.expiresAt > now && (other === undefined || other.seq < entry.seq)) newest.set(keyOf(entry), entry);
    }
    return [...newest.values()].sort((a, b) => b.publishedAt - a.publishedAt).slice(0, limit);
  }

  #kept(): DiscoveryEntry[] {
    return this.#network.recent(RECORD.service, MAX_REMEMBERED).flatMap((record) => {
      const payload = decodeServicePayload(record.payload);
      return payload === null ? [] : [entryOf({ record, payload })];
    });
  }
}

function keyOf({ aid, service }: DiscoveryEntry): string {
  return `${aid} ${service}`;
}
