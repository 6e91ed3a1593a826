/** Resolves AIDs to endpoints. Results are cached, and concurrent requests for an agent share one lookup. */
import { isIP } from 'node:net';
import { type Address, parseAddress } from '../foundation/address.ts';
import { unixSeconds } from '../foundation/clock.ts';
import { SingleFlight } from '../foundation/concurrency.ts';
import { abortable } from '../foundation/deadline.ts';
import { detach } from '../foundation/detached.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import { LruCache } from '../foundation/lru-cache.ts';
import type { NodeParts } from '../foundation/node-parts.ts';
import { agentKey } from '../foundation/records/keys.ts';
import { decodeEndpointsPayload, ENDPOINT_SCHEME, type EndpointsPayload } from '../foundation/records/payloads.ts';
import { compareFreshness, type SignedRecord, validUntil } from '../foundation/records/record.ts';
import { RECORD, type RecordType } from '../foundation/records/types.ts';
import type { AgentLocation } from './links/types.ts';
import type { NodeAt } from './node-requests.ts';
import type { DialAddress } from './peers/dial.ts';
import type { RecordNetwork } from './records/types.ts';

/** Maximum number of agents with cached records. */
const MAX_CACHED = 4096;
/** How long a cached result is used without a refresh, milliseconds. */
const FRESH_TTL_MS = 5000;
/** How long a cached result is used while it is refreshed, milliseconds. */
const STALE_TTL_MS = 60_000;
/** How long "not found" is cached, milliseconds. */
const NEGATIVE_TTL_MS = 1000;
/** Timeout of a lookup, milliseconds. */
const LOOKUP_TIMEOUT_MS = 5000;
/** How long before the last request a shared lookup may have started, milliseconds. */
const SHARED_LOOKUP_AGE_MS = 1000;
/** Maximum number of host names to resolve for one agent. */
const MAX_NAMES = 2;

/** An endpoint record and its decoded payload. */
export interface Resolved {
  readonly record: SignedRecord;
  readonly payload: EndpointsPayload;
}

/** The addresses and helpers of a payload. */
interface ParsedEndpoints {
  /** Host names are not resolved. */
  readonly addresses: readonly DialAddress[];
  readonly hasNames: boolean;
  readonly helpers: readonly NodeAt[];
}

interface ResolveOptions {
  /** Bypass the cache and query all of the closest nodes. */
  readonly fresh?: boolean;
  readonly signal?: AbortSignal;
}

interface LocateOptions extends ResolveOptions {
  /** May be called with a likely location before the lookup for the newest record is complete. */
  readonly onLikely?: ((place: AgentLocation) => void) | undefined;
}

interface ResolverDependencies extends NodeParts {
  readonly network: Pick<RecordNetwork, 'get' | 'list'>;
  /**
   * Explains why a lookup that started at `since` found nothing; null if other nodes answered. See
   * `OutageDiagnosis.explainFailure`.
   */
  readonly explainFailure?: (since: number) => Promise<SvcError | null>;
  /**
   * Waits for a network that is not ready yet. True if it became ready, so that the lookup is repeated. See
   * `UdpFallback.becomesReady`.
   */
  readonly becomesReady?: () => Promise<boolean>;
  /** Whether an address from a record may be dialed; by default all may. See `DialGuard`. */
  readonly mayDial?: (address: Address) => boolean;
  /** The addresses of a host name; rejects if there are none. */
  lookupHost(host: string): Promise<readonly string[]>;
}

interface Cached {
  /** Null if not found. */
  readonly resolved: Resolved | null;
  /** False if too few nodes answered to conclude that the agent is not published. */
  readonly isHeard: boolean;
  readonly at: number;
}

export class Resolver {
  readonly #deps: ResolverDependencies;
  readonly #cache = new LruCache<Aid, Cached>({ maxEntries: MAX_CACHED });
  /** The newest delegation of each agent, Unix seconds. A record under an older one is a replay. */
  readonly #newestDelegation = new LruCache<Aid, number>({ maxEntries: MAX_CACHED });
  readonly #lookups = new SingleFlight<Cached>();
  /** Decoded payloads. Each link needs one, and parsing addresses is slow. */
  readonly #parsed = new WeakMap<EndpointsPayload, ParsedEndpoints>();

  constructor(dependencies: ResolverDependencies) {
    this.#deps = dependencies;
  }

  /** Caches a valid record that was published on this node or that another lookup has found. */
  learn(record: SignedRecord): void {
    if (record.type !== RECORD.endpoints) return;
    const payload = decodeEndpointsPayload(record.payload);
    if (payload !== null) this.#store(record.aid, { record, payload }, null);
  }

  /**
   * Resolves an agent.
   * @throws SvcError `resolve_failed`, `network_unavailable`, `clock_wrong`, `cancelled`
   */
  resolve(aid: Aid, options: ResolveOptions = {}): Promise<Resolved> {
    return this.#resolve(aid, options);
  }

  /**
   * Resolves an agent to the addresses to dial.
   * @throws SvcError `resolve_failed`, `network_unavailable`, `clock_wrong`, `cancelled`
   */
  async locate(aid: Aid, { onLikely, ...options }: LocateOptions = {}): Promise<AgentLocation> {
    const onFirst = (record: SignedRecord): void => {
      const payload = record.aid === aid ? decodeEndpointsPayload(record.payload) : null;
      if (payload === null || record.delegation.issuedAt < (this.#newestDelegation.get(aid) ?? 0)) return;
      detach(this.#toLocation(aid, { record, payload }).then(onLikely));
    };
    const resolved = await this.#resolve(aid, options, onLikely === undefined ? undefined : onFirst);
    return await this.#toLocation(aid, resolved);
  }

  async #resolve(aid: Aid, options: ResolveOptions, onFirst?: (record: SignedRecord) => void): Promise<Resolved> {
    const { fresh = false, signal } = options;
    const cached = fresh ? undefined : this.#getUsable(aid);
    const since = cached === undefined ? this.#deps.clock.now() - SHARED_LOOKUP_AGE_MS : cached.at - LOOKUP_TIMEOUT_MS;
    const { resolved, isHeard } = cached ?? (await abortable(this.#lookUpShared(aid, fresh, onFirst), signal));
    if (resolved === null) throw await this.#notFound(aid, since, isHeard);
    return resolved;
  }

  async #notFound(aid: Aid, since: number, isHeard: boolean): Promise<SvcError> {
    const cause = (await this.#deps.explainFailure?.(since)) ?? null;
    if (cause !== null) return cause;
    return isHeard ? new SvcError('resolve_failed', { details: { aid } }) : notHeard({ aid });
  }

  async #toLocation(aid: Aid, { record, payload }: Resolved): Promise<AgentLocation> {
    const { meeting, hasTurn } = payload;
    const { addresses, hasNames, helpers } = this.#getParsed(payload);
    const { mayDial = () => true } = this.#deps;
    return {
      aid,
      nodeKey: payload.nodeKey,
      addresses: (hasNames ? await this.#resolveNames(addresses) : addresses).filter(mayDial),
      helpers: helpers.filter(({ address }) => mayDial(address)),
      natType: payload.natType,
      ...(meeting === undefined ? {} : { meeting }),
      ...(hasTurn === undefined ? {} : { hasTurn }),
      delegationIssuedAt: this.#newestDelegation.get(aid) ?? record.delegation.issuedAt,
    };
  }

  /**
   * The signed records of an agent, of one type or of all types. Records under an older delegation than the newest one
   * found are omitted: they may be replayed with a stolen key until that delegation expires. Therefore the endpoint
   * record is always fetched too. The result for one type may be empty; an agent without any records is not on the
   * network.
   * @throws SvcError `cancelled`, `resolve_failed` if all types were requested and there is no record
   */
  async records(aid: Aid, type: RecordType | null, signal?: AbortSignal): Promise<readonly SignedRecord[]> {
    const types = type === null ? AGENT_KEY_TYPES : AGENT_KEY_TYPES.filter((known) => known === type);
    if (types.length === 0) return [];
    const since = this.#deps.clock.now();
    const requestedTypes = types.includes(RECORD.endpoints) ? types : [RECORD.endpoints, ...types];
    let isHeard = true;
    const onHeard = (isEnough: boolean): void => {
      isHeard = isEnough;
    };
    const list = this.#deps.network.list(agentKey(aid), requestedTypes, { timeoutMs: LOOKUP_TIMEOUT_MS, onHeard });
    const records = (await abortable(list, signal)).filter((record) => record.aid === aid);
    const seen = records.map((record) => record.delegation.issuedAt);
    const newest = Math.max(this.#newestDelegation.get(aid) ?? 0, ...seen);
    const found = records.filter(({ type: one, delegation }) => types.includes(one) && delegation.issuedAt >= newest);
    if (type === null && records.length === 0) throw await this.#notFound(aid, since, isHeard);
    return found.sort((a, b) => a.type - b.type);
  }

  /** A cached result; undefined if a lookup is necessary. */
  #getUsable(aid: Aid): Cached | undefined {
    const cached = this.#cache.get(aid);
    if (cached === undefined) return undefined;
    const now = this.#deps.clock.now();
    const age = now - cached.at;
    if (age < 0) return undefined;
    if (cached.resolved === null) return age < NEGATIVE_TTL_MS ? cached : undefined;
    if (age >= STALE_TTL_MS || validUntil(cached.resolved.record) <= unixSeconds(this.#deps.clock)) return undefined;
    if (age >= FRESH_TTL_MS) this.#refresh(aid);
    return cached;
  }

  #refresh(aid: Aid): void {
    this.#lookUpShared(aid, false).catch((error: unknown) =>
      this.#deps.log.debug({ aid, error }, 'cannot refresh a cached agent'),
    );
  }

  /** Shares one lookup among concurrent requests. Only the request that started it receives the first record. */
  #lookUpShared(aid: Aid, fresh: boolean, onFirst?: (record: SignedRecord) => void): Promise<Cached> {
    return this.#lookups.run(`${fresh ? 'fresh' : 'any'} ${aid}`, () => this.#lookUp(aid, fresh, onFirst));
  }

  async #lookUp(aid: Aid, fresh: boolean, onFirst?: (record: SignedRecord) => void): Promise<Cached> {
    let isHeard = true;
    const onHeard = (isEnough: boolean): void => {
      isHeard = isEnough;
    };
    const more = onFirst === undefined ? {} : { onFirst };
    const options = { timeoutMs: LOOKUP_TIMEOUT_MS, thorough: fresh, onHeard, ...more };
    const get = () => this.#deps.network.get(agentKey(aid), RECORD.endpoints, options);
    let record = await get();
    if (record === null && ((await this.#deps.becomesReady?.()) === true || !isHeard)) record = await get();
    const payload = record === null || record.aid !== aid ? null : decodeEndpointsPayload(record.payload);
    const resolved = record === null || payload === null ? null : { record, payload };
    // A failed lookup may mean that the network is down for a moment, and a signed record is valid until it expires.
    // However, callers that bypass the cache have found the cached record to be wrong.
    return this.#store(aid, resolved, fresh ? null : this.#getUnexpired(aid), isHeard);
  }

  /** The cached result of an agent, unless it has expired. */
  #getUnexpired(aid: Aid): Resolved | null {
    const result = this.#cache.peek(aid)?.resolved ?? null;
    return result !== null && validUntil(result.record) > unixSeconds(this.#deps.clock) ? result : null;
  }

  /** Caches and returns the newer of an answer and the cached result, or `otherwise` if the answer is not usable. */
  #store(aid: Aid, answer: Resolved | null, otherwise: Resolved | null, isHeard = true): Cached {
    const before = this.#getUnexpired(aid);
    const newest = this.#newestDelegation.get(aid) ?? 0;
    const usable = answer !== null && answer.record.delegation.issuedAt >= newest ? answer : otherwise;
    const older = before !== null && usable !== null && compareFreshness(before.record, usable.record) > 0;
    const result = older ? before : usable;
    if (result !== null) this.#newestDelegation.set(aid, result.record.delegation.issuedAt);
    const cached = { resolved: result, at: this.#deps.clock.now(), isHeard };
    this.#cache.set(aid, cached);
    return cached;
  }

  #getParsed(payload: EndpointsPayload): ParsedEndpoints {
    const known = this.#parsed.get(payload);
    if (known !== undefined) return known;
    const parsed = parseEndpoints(payload);
    this.#parsed.set(payload, parsed);
    return parsed;
  }

  /** Resolves the host names among the addresses. The results are not cached, because they may change at any time. */
  async #resolveNames(addresses: readonly DialAddress[]): Promise<readonly DialAddress[]> {
    let names = 0;
    const found = await Promise.all(
      addresses.map(async (address): Promise<readonly DialAddress[]> => {
        if (isIP(address.host) !== 0) return [address];
        names += 1;
        if (names > MAX_NAMES) return [];
        const hosts = await this.#deps.lookupHost(address.host).catch(() => []);
        return hosts.slice(0, MAX_NAMES).map((host) => ({ ...address, host }));
      }),
    );
    return found.flat();
  }
}

/** The error if too few nodes answered to conclude that a record does not exist. */
export function notHeard(details: Readonly<Record<string, string>>): SvcError {
  return new SvcError('network_unavailable', {
    message: 'Too few nodes of the network have answered yet for a result. Try again in a few seconds.',
    details: { ...details, cause: 'not_heard' },
  });
}

function parseEndpoints({ endpoints, mapped = [], helpers }: EndpointsPayload): ParsedEndpoints {
  const addresses = endpoints.flatMap((text): DialAddress[] => {
    const address = parseAddress(text.slice(ENDPOINT_SCHEME.length));
    if (address === null) return [];
    return [mapped.includes(text) ? { ...address, isMapped: true } : address];
  });
  return {
    addresses,
    hasNames: addresses.some(({ host }) => isIP(host) === 0),
    helpers: helpers.flatMap(({ nodeKey, address }) => {
      const at = parseAddress(address);
      // Names would require a lookup. Helpers always publish IP addresses.
      return at === null || isIP(at.host) === 0 ? [] : [{ nodeKey, address: at }];
    }),
  };
}

/** The types of records that are stored under an agent's key. */
const AGENT_KEY_TYPES: readonly RecordType[] = [
  RECORD.endpoints,
  ...Array.from({ length: RECORD.customLast - RECORD.customFirst + 1 }, (_, i) => RECORD.customFirst + i),
  RECORD.encryptionKeys,
];
