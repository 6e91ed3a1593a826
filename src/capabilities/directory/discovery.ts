/** Finds agents by their services. */
import { abortable } from '../../foundation/deadline.ts';
import { MAX_NAMES_PER_CALL, MAX_PROVIDERS } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { parseMeta } from '../../foundation/records/fields.ts';
import { serviceKey } from '../../foundation/records/keys.ts';
import { decodeServicePayload, type ServicePayload } from '../../foundation/records/payloads.ts';
import { compareFreshness, expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
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
}

export interface DiscoveryEntry {
  readonly service: string;
  readonly aid: Aid;
  readonly name: string;
  readonly brief: string;
  readonly protocols: readonly string[];
  readonly tags: readonly string[];
  readonly meta: Readonly<Record<string, unknown>>;
  readonly seq: number;
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
  const { service, name, brief, protocols, tags, meta } = payload;
  const { aid, seq } = record;
  const expires = expiresAt(record);
  return { service, aid, name, brief, protocols, tags, meta: parseMeta(meta) ?? {}, seq, expiresAt: expires };
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
    const options = { limit: MAX_PROVIDERS, timeoutMs: LIST_TIMEOUT_MS };
    return newestOfEach(service, await network.list(serviceKey(service), [RECORD.service], options));
  });
  const found = (await abortable(Promise.all(lists), search.signal)).flat();
  return found
    .filter((one) => matches(one, protocols, tags))
    .sort(byAge)
    .slice(0, search.limit)
    .map(entryOf);
}
