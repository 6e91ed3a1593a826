/** The directory: the publications of this daemon's identities, kept on the network while the daemon runs. */
import type { AgentChange } from '../../foundation/agent-change.ts';
import type { Timer } from '../../foundation/clock.ts';
import { MAX_SERVICES, RECORD_TTL_S } from '../../foundation/domain/directory.ts';
import { DueQueue } from '../../foundation/due-queue.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { isCustomType, MAX_CUSTOM_PAYLOAD_BYTES, RECORD, type RecordType } from '../../foundation/records/types.ts';
import { every, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { Publication, PublicationStore } from '../../foundation/store/publications.ts';
import {
  checkServiceName,
  type OfferedService,
  offeredServices,
  type ProfileCard,
  profilePublication,
  readProfile,
  type ServiceOffer,
  servicePublications,
} from './cards.ts';
import { type Companion, ENDPOINTS, MAX_RENEWAL_MS, Publishing, type PublishResult, RETRY } from './publishing.ts';
import { addressDigest, endpointDigest, keyOf, RecordPublisher, reachabilityDigest } from './record-publisher.ts';
import { type PublicationSummary, Summaries, summarize, withinDelegation } from './summaries.ts';
import type { DirectoryDependencies, DirectoryOptions } from './types.ts';

/** Milliseconds that automatic publication waits for the network after a start. */
const START_GRACE_MS = 5000;
/** Milliseconds that an agent's first publication waits, because most clients publish immediately. */
const FIRST_PUBLISH_MS = 1000;
/** Milliseconds for which our addresses must be unchanged before records contain them. */
const ADDRESS_QUIET_MS = 1000;
/** Debounce for address changes that are not urgent, in milliseconds. */
const ADDRESS_NEWS_MS = 30_000;
/** Milliseconds after the network is ready until svcd checks that it still has our records. */
const PRESENCE_MS = 3000;
/** Milliseconds after that until records with outdated addresses are published. Earlier, the addresses are uncertain. */
const MOVED_MS = 5000;
/** The same if strangers can dial this node, so its address is certain. */
const REACHED_MS = 500;
/** Milliseconds between checks of the clock and of the number of nodes. */
const LOOK_MS = 60_000;

export class Directory implements Component {
  readonly #options: DirectoryOptions;
  readonly #deps: DirectoryDependencies;
  readonly #publishing: Publishing;
  readonly #renewal: DueQueue<Aid>;
  readonly #summaries: Summaries;
  /** Stops repeating tasks and listeners. */
  readonly #stops: (() => void)[] = [];
  #grace: Timer | null = null;
  #peers = 0;
  #lastLook = 0;
  #ready = false;
  /** When the network became ready last, Unix milliseconds. */
  #readyAt = 0;
  #reached = false;
  #stopped = false;

  constructor(options: DirectoryOptions, dependencies: DirectoryDependencies) {
    const deps = { ...dependencies, log: dependencies.log.child('directory') };
    this.#options = options;
    this.#deps = deps;
    const recordPublisher = new RecordPublisher(options, deps);
    this.#publishing = new Publishing({ ...deps, recordPublisher, due: () => this.#renewal.soon() });
    this.#summaries = new Summaries(deps);
    this.#renewal = renewalQueue({ ...deps, renew: async (aid) => this.#publishing.renew(aid) });
  }

  /** Renewals begin when the network is ready, or after a short time. */
  async start(): Promise<void> {
    const { clock, log, network } = this.#deps;
    this.#publishing.start();
    this.#lastLook = clock.now();
    this.applyAutoPublish();
    const onError = (error: unknown): void => log.warn({ error }, 'publications could not be marked for renewal');
    const look = every(clock, { periodMs: LOOK_MS, onError }, () => this.#lookAround());
    const touch = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: LOOK_MS, onError }, () =>
      this.#touchMoved(endpointDigest(this.#deps.ownAddresses.current())),
    );
    const urgent = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: UNTIL_REQUESTED, onError }, () =>
      this.#touchMoved(reachabilityDigest(this.#deps.ownAddresses.current())),
    );
    const moved = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: UNTIL_REQUESTED, onError }, () =>
      this.#touchMoved(addressDigest(this.#deps.ownAddresses.current())),
    );
    const presence = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: UNTIL_REQUESTED, onError }, () =>
      this.#askAfterOwn(),
    );
    const reach = every(clock, { firstMs: 0, periodMs: UNTIL_REQUESTED, onError }, () => {
      const { isNew, isReached } = this.#lookAtNetwork();
      if (isNew) presence.soon(PRESENCE_MS);
      if (isNew || isReached) moved.soon(isReached ? REACHED_MS : MOVED_MS);
    });
    this.#stops.push(
      network.onReachability(() => reach.soon()),
      this.#deps.ownAddresses.onChange((isUrgent) => {
        if (isUrgent) urgent.plan(ADDRESS_QUIET_MS);
        touch.soon(ADDRESS_NEWS_MS);
      }),
      ...[look, touch, urgent, moved, reach, presence].map((repeating) => () => repeating.stop()),
    );
    this.#grace = clock.after(START_GRACE_MS, () => this.#begin());
  }

  /** Adds a source of records that are published with endpoint records; before `start`. It may throw. */
  accompany(companion: Companion): void {
    this.#publishing.companions.push(companion);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    this.#grace?.cancel();
    await Promise.all([this.#publishing.stop(), this.#renewal.stop()]);
  }

  /** Publishes all agents that were never published, if the setting `auto_publish` is on. */
  applyAutoPublish(): void {
    if (!this.#deps.autoPublish()) return;
    const { publications, clock } = this.#deps;
    const { nodeAid } = this.#options;
    publications.createMissingEndpoints(clock.now(), RECORD_TTL_S);
    if (publications.publications(nodeAid).length === 0) {
      publications.transaction(() => {
        publications.claim(nodeAid, clock.now());
        publications.put(nodeAid, ENDPOINTS);
      });
    }
    this.#renewal.soon();
  }

  /** As `Publishing.exported`. */
  exported(aid: Aid): void {
    this.#publishing.exported(aid);
  }

  /** Handles a change of an agent. */
  async agentChanged({ aid, kind }: AgentChange): Promise<void> {
    if (kind === 'deleted') {
      this.#summaries.forget(aid);
      return this.#publishing.forget(aid);
    }
    await this.#publishing.turns.run(aid, () => this.#written(aid, kind));
    this.#renewal.soon();
  }

  /** Publishes a changed agent again, and a new one if `auto_publish` is on. */
  #written(aid: Aid, kind: 'registered' | 'rotated' | 'bound'): void {
    const { publications, clock } = this.#deps;
    if (this.#deps.identity(aid) === null) return;
    const now = clock.now();
    publications.transaction(() => {
      if (kind === 'rotated') publications.touch(aid);
      if (kind === 'bound') publications.touchEndpoints(aid, now);
      if (publications.publications(aid).length > 0) return publications.claim(aid, now);
      if (!this.#deps.autoPublish() || this.#deps.registry.isHeld(aid)) return;
      publications.claim(aid, now + FIRST_PUBLISH_MS);
      publications.put(aid, ENDPOINTS);
    });
  }

  /**
   * Publishes the endpoint record now.
   * @throws SvcError `not_found`, `not_acknowledged`, `stale_sequence`, `bad_delegation`, `timeout`
   */
  async publish(aid: Aid): Promise<PublishResult> {
    return this.#write(aid, [ENDPOINTS]);
  }

  /**
   * Publishes a record under the agent's key and keeps it there: a custom one or encryption keys.
   * @param ttl seconds
   * @throws SvcError `too_large`, and as `publish`
   */
  async publishRecord(aid: Aid, type: RecordType, payload: Uint8Array, ttl: number): Promise<PublishResult> {
    if (isCustomType(type) && payload.length > MAX_CUSTOM_PAYLOAD_BYTES)
      throw new SvcError('too_large', {
        message: `The payload has ${payload.length} bytes; a custom record takes ${MAX_CUSTOM_PAYLOAD_BYTES}.`,
        details: { size: payload.length, limit: MAX_CUSTOM_PAYLOAD_BYTES },
      });
    return this.#write(aid, [{ type, name: '', payload, ttl }]);
  }

  /** Sets the profile card, instead of the previous card. @throws SvcError `too_large`, `invalid_request`, and as `publish` */
  async setProfile(aid: Aid, card: ProfileCard): Promise<PublishResult> {
    return this.#write(aid, [profilePublication(card)]);
  }

  /**
   * Sets the hash of a complete card in the profile card.
   * @param hash null: none
   * @throws SvcError `too_large`, and as `publish`
   */
  async nameCard(aid: Aid, hash: string | null): Promise<PublishResult> {
    const known = this.#deps.publications.publications(aid).find(({ type }) => type === RECORD.profile);
    const { cardHash: _, ...rest } = (known === undefined ? null : readProfile(known.payload)) ?? {};
    return this.setProfile(aid, hash === null ? rest : { ...rest, cardHash: hash });
  }

  /**
   * Removes the profile card. If the network is available, an empty card replaces it there.
   * @throws SvcError `not_found`
   */
  async deleteProfile(aid: Aid): Promise<PublishResult> {
    const { publications, log } = this.#deps;
    this.#publishing.identity(aid);
    const removed = await this.#publishing.turns.run(aid, () => publications.remove(aid, RECORD.profile, ''));
    if (!removed) return { seq: publications.publisher(aid)?.seq ?? 0, replicas: 0 };
    this.#customTypesChanged(aid);
    try {
      return await this.#publishing.publish(aid, [profilePublication({})], false);
    } catch (error) {
      log.warn({ aid, error }, 'the removed profile card stays on the network until it expires');
      return { seq: publications.publisher(aid)?.seq ?? 0, replicas: 0 };
    }
  }

  /**
   * Makes an agent discoverable under service names.
   * @throws SvcError `bad_service_name`, `too_large`, `invalid_request`, `quota_exceeded`, and as `publish`
   */
  async registerServices(aid: Aid, offer: ServiceOffer): Promise<PublishResult> {
    const identity = this.#publishing.identity(aid);
    const rows = this.#deps.publications.publications(aid);
    const profile = rows.find(({ type }) => type === RECORD.profile);
    const wakesWithinS =
      offer.wakesWithinS ?? (profile === undefined ? null : readProfile(profile.payload))?.wakesWithinS;
    const wanted = servicePublications({ ...offer, wakesWithinS }, identity.delegation);
    return this.#write(aid, wanted, () => {
      const known = this.#deps.publications.publications(aid).filter((row) => row.type === RECORD.service);
      const names = new Set([...known, ...wanted].map((one) => one.name));
      if (names.size > MAX_SERVICES)
        throw new SvcError('quota_exceeded', {
          message: `An agent offers at most ${MAX_SERVICES} services.`,
          details: { limit: MAX_SERVICES },
        });
    });
  }

  /**
   * Takes a service off the renewal list.
   * @throws SvcError `bad_service_name`, `not_found` if the agent or the service is not here
   */
  async unregisterService(aid: Aid, service: string): Promise<void> {
    checkServiceName(service);
    this.#publishing.identity(aid);
    const { publications } = this.#deps;
    const removed = await this.#publishing.turns.run(aid, () => publications.remove(aid, RECORD.service, service));
    if (!removed)
      throw new SvcError('not_found', {
        thing: 'service',
        message: `This agent does not offer "${service}".`,
        details: { service },
      });
  }

  /** The services of an agent, by name in alphabetical order. @throws SvcError `not_found` */
  services(aid: Aid): OfferedService[] {
    const { publications, clock } = this.#deps;
    this.#publishing.identity(aid);
    return offeredServices(publications.publications(aid), clock.now());
  }

  /** The summaries of all given identities. */
  summaries(aids: readonly Aid[]): Map<Aid, PublicationSummary> {
    return this.#summaries.of(aids);
  }

  summary(aid: Aid): PublicationSummary {
    const { publications, clock } = this.#deps;
    const now = clock.now();
    const summary = summarize(publications.publisher(aid) ?? undefined, publications.publications(aid), now);
    return withinDelegation(summary, this.#deps.identity(aid)?.delegation.expiresAt ?? 0, now);
  }

  async #write(aid: Aid, wanted: readonly Publication[], check?: () => void): Promise<PublishResult> {
    this.#publishing.identity(aid);
    const known = new Set(this.#deps.publications.publications(aid).map((row) => row.type));
    const newType = wanted.some(({ type }) => isCustomType(type) && !known.has(type));
    try {
      return await this.#publishing.publish(aid, wanted, true, check);
    } finally {
      if (newType) this.#customTypesChanged(aid);
      this.#renewal.soon();
    }
  }

  /** Endpoint records list the custom types. */
  #customTypesChanged(aid: Aid): void {
    this.#deps.publications.touchEndpoints(aid, this.#deps.clock.now());
    this.#renewal.soon();
  }

  #begin(): void {
    this.#grace?.cancel();
    this.#grace = null;
    this.#renewal.start();
  }

  /** Whether there is a network that was not there before, and whether strangers reach this node there who did not. */
  #lookAtNetwork(): { readonly isNew: boolean; readonly isReached: boolean } {
    const { ready, inRoutingTables } = this.#deps.network.reachability();
    const isNew = ready && !this.#ready;
    const reached = ready && inRoutingTables;
    const isReached = reached && !this.#reached;
    this.#ready = ready;
    this.#reached = reached;
    if (isNew) {
      this.#readyAt = this.#deps.clock.now();
      this.#deps.publications.touchUnsettled(this.#deps.clock.now());
      if (this.#grace !== null) this.#begin();
      else this.#renewal.soon();
    }
    return { isNew, isReached };
  }

  /** Publishes everything again if the network has lost it. */
  async #askAfterOwn(): Promise<void> {
    const { publications, clock, log } = this.#deps;
    if (!(await areRecordsLost(this.#deps, this.#readyAt)) || this.#stopped) return;
    log.warn({}, 'the network has lost our records, svcd publishes everything again');
    publications.touchAll(clock.now());
    this.#renewal.soon();
  }

  #touchMoved(digest: string): number {
    const { publications, clock } = this.#deps;
    // A node that cannot dial this one at its old address requests the node's own record.
    publications.touchMoved(digest, clock.now(), this.#options.nodeAid);
    this.#renewal.soon();
    return UNTIL_REQUESTED;
  }

  /** Handles changes without an event: a larger network, a clock that was set, a machine that slept. */
  #lookAround(): void {
    const { network, publications, clock } = this.#deps;
    this.#renewal.soon();
    const { peers, ready } = network.reachability();
    const now = clock.now();
    if (ready && peers > this.#peers) publications.touchUnsettled(now);
    if (now < this.#lastLook) publications.repairTimes(now);
    // A delegation that was not valid with a wrong clock may be valid now.
    if (now > this.#lastLook + 2 * LOOK_MS) publications.resume(now);
    this.#peers = peers;
    this.#lastLook = now;
  }
}

// Check of the published records.

/** Records that are checked. */
const SAMPLES = 8;
/** Records with fewer milliseconds left may have expired by the clocks of other nodes. */
const MIN_LIFE_LEFT_MS = 300_000;

/**
 * Checks that the network still has our newest records. A node that returns to its old address publishes nothing, but the nodes
 * that stored its records may have been replaced, or lost the newest records in a power cut. True if the nodes that should
 * store one of them answer, and less than half of them have it or a newer one: a read that ends with the first answers
 * would miss it now and then.
 * @param readyAt when the network became ready, Unix milliseconds: later records are not checked
 */
async function areRecordsLost(
  { network, publications }: Pick<DirectoryDependencies, 'network' | 'publications'>,
  readyAt: number,
): Promise<boolean> {
  const newest = publications.newestSettled(readyAt, readyAt + MIN_LIFE_LEFT_MS, SAMPLES);
  const answers = await Promise.all(
    newest.map((row) => network.holders(keyOf(row.aid, row), row.type, row.aid, row.seq)),
  );
  return answers.some(({ answered, holding }) => 2 * holding < answered);
}

/** Identities whose records are sent concurrently. */
const CONCURRENCY = 8;
/** Rate of identities per second: well below the limits of storage nodes. */
const PER_SECOND = 20;
/** Burst of identities. */
const BURST = 10;
type RenewalParts = Pick<DirectoryDependencies, 'clock' | 'log'> & {
  /** Returns a number from 0 up to 1, exclusive. */
  random(): number;
  readonly publications: Pick<PublicationStore, 'publishers'>;
  /** Publishes the due records of an identity and schedules its next turn. */
  renew(aid: Aid): Promise<void>;
};

/**
 * Renews due records: a few identities at a time and a limited number per second, so that ten thousand agents do not stall
 * the daemon or flood the network.
 */
export function renewalQueue(parts: RenewalParts): DueQueue<Aid> {
  const { publications, clock, log } = parts;
  const rate = new RateLimiter({ perSecond: PER_SECOND, burst: BURST, maxKeys: 1 }, { clock });
  return new DueQueue(
    { name: 'renewals', retry: RETRY, maxWaitMs: MAX_RENEWAL_MS, atOnce: { total: CONCURRENCY } },
    {
      clock,
      log,
      random: () => parts.random(),
      table: publications.publishers,
      pauseMs: () => (rate.take('') ? 0 : Math.max(1, rate.retryAfterMs(''))),
      work: (aid) => parts.renew(aid),
    },
  );
}
