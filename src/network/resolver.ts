/** Finds where agents are. Answers are kept for a moment, looked up once however many ask. */
import { isIP } from 'node:net';
import { type Address, parseAddress } from '../foundation/address.ts';
import { type Clock, unixSeconds } from '../foundation/clock.ts';
import { SingleFlight } from '../foundation/concurrency.ts';
import { abortable } from '../foundation/deadline.ts';
import { detach } from '../foundation/detached.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import type { Log } from '../foundation/log.ts';
import { LruCache } from '../foundation/lru-cache.ts';
import { agentKey } from '../foundation/records/keys.ts';
import { decodeEndpointsPayload, ENDPOINT_SCHEME, type EndpointsPayload } from '../foundation/records/payloads.ts';
import { compareFreshness, expiresAt, type SignedRecord } from '../foundation/records/record.ts';
import { RECORD, type RecordType } from '../foundation/records/types.ts';
import type { AgentLocation } from './links/types.ts';
import type { NodeAt } from './node-requests.ts';
import type { DialAddress } from './peers/dial.ts';
import type { RecordNetwork } from './records/types.ts';

/** Agents whose records are kept in memory. */
const MAX_CACHED = 4096;
/** Milliseconds for which an answer is given without a second thought. */
const FRESH_MS = 5000;
/** Milliseconds for which an answer is given while a newer one is looked for. */
const USABLE_MS = 60_000;
/** Milliseconds for which "not found" is remembered. */
const NEGATIVE_MS = 1000;
/** Milliseconds for one look-up. */
const LOOKUP_TIMEOUT_MS = 5000;
/** A look-up that several share may have begun that much before the last of them asked, milliseconds. */
const SHARED_MS = 1000;
/** Endpoints that are names are looked up; so many of them per agent. */
const MAX_NAMES = 2;

/** A record that says where an agent is, and what it says. */
export interface Resolved {
  readonly record: SignedRecord;
  readonly payload: EndpointsPayload;
}

/** What a payload says of where to dial. */
interface Dialable {
  /** As it says them: names are not looked up. */
  readonly addresses: readonly DialAddress[];
  readonly hasNames: boolean;
  readonly helpers: readonly NodeAt[];
}

interface ResolveOptions {
  /** Ask all of the closest nodes, past the cache. */
  readonly fresh?: boolean;
  readonly signal?: AbortSignal;
}

interface LocateOptions extends ResolveOptions {
  /** Told of a place that is likely the one, while the network is still asked for a newer one; not always. */
  readonly onLikely?: ((place: AgentLocation) => void) | undefined;
}

interface ResolverDependencies {
  readonly network: Pick<RecordNetwork, 'get' | 'list'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Why a look-up that began then found nothing; null if other nodes say so. See `OutageDiagnosis.explainFailure`. */
  readonly why?: (since: number) => Promise<SvcError | null>;
  /** Whether an address that a record names may be dialled; all are if it is left out. See `DialGuard`. */
  readonly mayDial?: (address: Address) => boolean;
  /** Addresses of a host name; rejects where it has none. */
  lookupHost(host: string): Promise<readonly string[]>;
}

interface Cached {
  /** Null: not found. */
  readonly resolved: Resolved | null;
  readonly at: number;
}

export class Resolver {
  readonly #deps: ResolverDependencies;
  readonly #cache = new LruCache<Aid, Cached>({ maxEntries: MAX_CACHED });
  /** The newest delegation that was seen of each agent, Unix seconds: a record under an older one is a replay. */
  readonly #newestDelegation = new LruCache<Aid, number>({ maxEntries: MAX_CACHED });
  readonly #lookups = new SingleFlight<Resolved | null>();
  /** What was read of payloads, which never change: each link asks, and the texts of addresses are dear to read. */
  readonly #dialable = new WeakMap<EndpointsPayload, Dialable>();

  constructor(dependencies: ResolverDependencies) {
    this.#deps = dependencies;
  }

  /** Takes notice of a record that was just published here. */
  learn(record: SignedRecord): void {
    if (record.type !== RECORD.endpoints) return;
    const payload = decodeEndpointsPayload(record.payload);
    if (payload !== null) this.#remember(record.aid, { record, payload }, null);
  }

  /**
   * Where an agent is.
   * @throws SvcError `resolve_failed`, `network_unavailable`, `clock_wrong`, `cancelled`
   */
  resolve(aid: Aid, options: ResolveOptions = {}): Promise<Resolved> {
    return this.#resolve(aid, options);
  }

  /** Where to dial an agent. @throws SvcError `resolve_failed`, `network_unavailable`, `clock_wrong`, `cancelled` */
  async locate(aid: Aid, { onLikely, ...options }: LocateOptions = {}): Promise<AgentLocation> {
    const onFirst = (record: SignedRecord): void => {
      const payload = record.aid === aid ? decodeEndpointsPayload(record.payload) : null;
      if (payload === null || record.delegation.issuedAt < (this.#newestDelegation.get(aid) ?? 0)) return;
      detach(this.#place(aid, { record, payload }).then(onLikely));
    };
    const resolved = await this.#resolve(aid, options, onLikely === undefined ? undefined : onFirst);
    return await this.#place(aid, resolved);
  }

  async #resolve(aid: Aid, options: ResolveOptions, onFirst?: (record: SignedRecord) => void): Promise<Resolved> {
    const { fresh = false, signal } = options;
    const cached = fresh ? undefined : this.#cached(aid);
    const since = cached === undefined ? this.#deps.clock.now() - SHARED_MS : cached.at - LOOKUP_TIMEOUT_MS;
    const resolved =
      cached === undefined ? await abortable(this.#shared(aid, fresh, onFirst), signal) : cached.resolved;
    if (resolved === null) throw await this.#notFound(aid, since);
    return resolved;
  }

  async #notFound(aid: Aid, since: number): Promise<SvcError> {
    return (await this.#deps.why?.(since)) ?? new SvcError('resolve_failed', { details: { aid } });
  }

  async #place(aid: Aid, { record, payload }: Resolved): Promise<AgentLocation> {
    const { meeting, hasTurn } = payload;
    const { addresses, hasNames, helpers } = this.#read(payload);
    const { mayDial = () => true } = this.#deps;
    return {
      aid,
      nodeKey: payload.nodeKey,
      addresses: (hasNames ? await this.#lookedUp(addresses) : addresses).filter(mayDial),
      helpers: helpers.filter(({ address }) => mayDial(address)),
      natType: payload.natType,
      ...(meeting === undefined ? {} : { meeting }),
      ...(hasTurn === undefined ? {} : { hasTurn }),
      delegationIssuedAt: this.#newestDelegation.get(aid) ?? record.delegation.issuedAt,
    };
  }

  /**
   * The signed records under an agent's AID, of one type or of all. What stands under a delegation
   * older than the newest that shows among them is left out: it may be a thief's, and he can keep it
   * on the network until it expires. So the endpoint record is always asked for, whatever the type.
   * Of one type there may be none; an agent without any is not on the network.
   * @throws SvcError `cancelled`, `resolve_failed` where all were asked for and there is none
   */
  async records(aid: Aid, type: RecordType | null, signal?: AbortSignal): Promise<readonly SignedRecord[]> {
    const types = type === null ? AGENT_KEY_TYPES : AGENT_KEY_TYPES.filter((known) => known === type);
    if (types.length === 0) return [];
    const since = this.#deps.clock.now();
    const asked = types.includes(RECORD.endpoints) ? types : [RECORD.endpoints, ...types];
    const list = this.#deps.network.list(agentKey(aid), asked, { timeoutMs: LOOKUP_TIMEOUT_MS });
    const records = (await abortable(list, signal)).filter((record) => record.aid === aid);
    const seen = records.map((record) => record.delegation.issuedAt);
    const newest = Math.max(this.#newestDelegation.get(aid) ?? 0, ...seen);
    const found = records.filter(({ type: one, delegation }) => types.includes(one) && delegation.issuedAt >= newest);
    if (type === null && records.length === 0) throw await this.#notFound(aid, since);
    return found.sort((a, b) => a.type - b.type);
  }

  /** An answer that may be given now; undefined where the network has to be asked first. */
  #cached(aid: Aid): Cached | undefined {
    const cached = this.#cache.get(aid);
    if (cached === undefined) return undefined;
    const now = this.#deps.clock.now();
    const age = now - cached.at;
    if (age < 0) return undefined;
    if (cached.resolved === null) return age < NEGATIVE_MS ? cached : undefined;
    if (age >= USABLE_MS || expiresAt(cached.resolved.record) <= unixSeconds(this.#deps.clock)) return undefined;
    if (age >= FRESH_MS) this.#refresh(aid);
    return cached;
  }

  #refresh(aid: Aid): void {
    this.#shared(aid, false).catch((error: unknown) =>
      this.#deps.log.debug({ aid, error }, 'a cached agent could not be looked up again'),
    );
  }

  /** One look-up for all who ask at once; of its first record only he is told who began it. */
  #shared(aid: Aid, fresh: boolean, onFirst?: (record: SignedRecord) => void): Promise<Resolved | null> {
    return this.#lookups.run(`${fresh ? 'fresh' : 'any'} ${aid}`, () => this.#ask(aid, fresh, onFirst));
  }

  async #ask(aid: Aid, fresh: boolean, onFirst?: (record: SignedRecord) => void): Promise<Resolved | null> {
    const record = await this.#deps.network.get(agentKey(aid), RECORD.endpoints, {
      timeoutMs: LOOKUP_TIMEOUT_MS,
      thorough: fresh,
      ...(onFirst === undefined ? {} : { onFirst }),
    });
    const payload = record === null || record.aid !== aid ? null : decodeEndpointsPayload(record.payload);
    const resolved = record === null || payload === null ? null : { record, payload };
    // Nothing found may mean a moment without network; a signed answer is good until it expires. Who
    // asks past the cache has found it wrong.
    return this.#remember(aid, resolved, fresh ? null : this.#valid(aid));
  }

  /** What is kept of an agent, where it has not expired. */
  #valid(aid: Aid): Resolved | null {
    const kept = this.#cache.peek(aid)?.resolved ?? null;
    return kept !== null && expiresAt(kept.record) > unixSeconds(this.#deps.clock) ? kept : null;
  }

  /** Keeps the newer of this answer and what is known, or `otherwise` where the answer is of no use; returns it. */
  #remember(aid: Aid, answer: Resolved | null, otherwise: Resolved | null): Resolved | null {
    const before = this.#valid(aid);
    const newest = this.#newestDelegation.get(aid) ?? 0;
    const usable = answer !== null && answer.record.delegation.issuedAt >= newest ? answer : otherwise;
    const older = before !== null && usable !== null && compareFreshness(before.record, usable.record) > 0;
    const kept = older ? before : usable;
    if (kept !== null) this.#newestDelegation.set(aid, kept.record.delegation.issuedAt);
    this.#cache.set(aid, { resolved: kept, at: this.#deps.clock.now() });
    return kept;
  }

  #read(payload: EndpointsPayload): Dialable {
    const known = this.#dialable.get(payload);
    if (known !== undefined) return known;
    const read = readDialable(payload);
    this.#dialable.set(payload, read);
    return read;
  }

  /** The addresses, with those of the names among them; what a name leads to may change at any time. */
  async #lookedUp(addresses: readonly DialAddress[]): Promise<readonly DialAddress[]> {
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

function readDialable({ endpoints, mapped = [], helpers }: EndpointsPayload): Dialable {
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
      // A name would cost a look-up, and helpers are found by their addresses.
      return at === null || isIP(at.host) === 0 ? [] : [{ nodeKey, address: at }];
    }),
  };
}

/** The record types that live under an agent's key. */
const AGENT_KEY_TYPES: readonly RecordType[] = [
  RECORD.endpoints,
  ...Array.from({ length: RECORD.customLast - RECORD.customFirst + 1 }, (_, i) => RECORD.customFirst + i),
  RECORD.encryptionKeys,
];
