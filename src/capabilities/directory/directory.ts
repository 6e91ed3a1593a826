/** The directory: what identities of this daemon publish, kept on the network while they are alive. */
import type { AgentChange } from '../../foundation/agent-change.ts';
import type { Timer } from '../../foundation/clock.ts';
import { MAX_SERVICES, RECORD_TTL_S } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { isCustomType, MAX_CUSTOM_PAYLOAD_BYTES, RECORD, type RecordType } from '../../foundation/records/types.ts';
import { every, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { Publication } from '../../foundation/store/publications.ts';
import { addressDigest, endpointDigest, reachabilityDigest } from './endpoint-digest.ts';
import { PresenceCheck } from './presence-check.ts';
import { type ProfileCard, profilePublication, readProfile } from './profile-cards.ts';
import { type Companion, ENDPOINTS, Publishing, type PublishResult } from './publishing.ts';
import { RecordPublisher } from './record-publisher.ts';
import { Renewal } from './renewal.ts';
import {
  checkServiceName,
  type OfferedService,
  offeredServices,
  type ServiceOffer,
  servicePublications,
} from './service-cards.ts';
import { Summaries } from './summaries.ts';
import { type PublicationSummary, summarize } from './summary.ts';
import type { DirectoryDependencies, DirectoryOptions } from './types.ts';

/** Milliseconds that automatic publication waits for the network after a start. */
const START_GRACE_MS = 5000;
/** Milliseconds that an agent's first publication waits: most clients publish at once themselves. */
const FIRST_PUBLISH_MS = 1000;
/** Milliseconds for which our addresses have to be unchanged before records say the new ones. */
const ADDRESS_QUIET_MS = 1000;
/** Milliseconds for which news of our addresses are collected by which nobody reaches us sooner or later. */
const ADDRESS_NEWS_MS = 30_000;
/** Milliseconds from the moment when the network is ready until it is asked whether it still has what was published. */
const REMEMBRANCE_MS = 3000;
/** Milliseconds from then until records that lead elsewhere go out anew: sooner less is known of where this node is … */
const MOVED_MS = 5000;
/** … but where strangers reach it, they do so where it is known to be. */
const REACHED_MS = 500;
/** Milliseconds between looks at the clock and at how many nodes there are to keep our records. */
const LOOK_MS = 60_000;

export class Directory implements Component {
  readonly #options: DirectoryOptions;
  readonly #deps: DirectoryDependencies;
  readonly #publishing: Publishing;
  readonly #renewal: Renewal;
  readonly #remembrance: PresenceCheck;
  readonly #summaries: Summaries;
  /** Ends what repeats, and what tells us something. */
  readonly #stops: (() => void)[] = [];
  #grace: Timer | null = null;
  #peers = 0;
  #lastLook = 0;
  #ready = false;
  #reached = false;
  #stopped = false;

  constructor(options: DirectoryOptions, dependencies: DirectoryDependencies) {
    const deps = { ...dependencies, log: dependencies.log.child('directory') };
    this.#options = options;
    this.#deps = deps;
    const recordPublisher = new RecordPublisher(options, deps);
    this.#publishing = new Publishing(options, { ...deps, recordPublisher, due: () => this.#renewal.wake() });
    this.#summaries = new Summaries(deps);
    this.#remembrance = new PresenceCheck(deps);
    this.#renewal = new Renewal({ ...deps, renew: async (aid) => this.#publishing.renew(aid) });
  }

  /** Begins to renew as soon as the network is ready, or shortly after. */
  async start(): Promise<void> {
    const { clock, log, network } = this.#deps;
    this.#publishing.start();
    this.#lastLook = clock.now();
    this.applyAutoPublish();
    const onError = (error: unknown): void => log.warn({ error }, 'publications could not be marked for renewal');
    const look = every(clock, { periodMs: LOOK_MS, onError }, () => this.#lookAround());
    const touch = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: LOOK_MS, onError }, () =>
      this.#touchMoved(endpointDigest(this.#deps.addresses())),
    );
    const urgent = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: UNTIL_REQUESTED, onError }, () =>
      this.#touchMoved(reachabilityDigest(this.#deps.addresses())),
    );
    const moved = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: UNTIL_REQUESTED, onError }, () =>
      this.#touchMoved(addressDigest(this.#deps.addresses())),
    );
    const remembrance = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: UNTIL_REQUESTED, onError }, () =>
      this.#askAfterOwn(),
    );
    const reach = every(clock, { firstMs: 0, periodMs: UNTIL_REQUESTED, onError }, () => {
      const { isNew, isReached } = this.#lookAtNetwork();
      if (isNew) remembrance.soon(REMEMBRANCE_MS);
      if (isNew || isReached) moved.soon(isReached ? REACHED_MS : MOVED_MS);
    });
    this.#stops.push(
      network.onReachability(() => reach.soon()),
      this.#deps.onAddresses((isUrgent) => {
        if (isUrgent) urgent.plan(ADDRESS_QUIET_MS);
        touch.soon(ADDRESS_NEWS_MS);
      }),
      ...[look, touch, urgent, moved, reach, remembrance].map((repeating) => () => repeating.stop()),
    );
    this.#grace = clock.after(START_GRACE_MS, () => this.#begin());
  }

  /** Names what goes out beside the endpoint records of agents; before `start`. Where it throws, they go out alone. */
  accompany(companion: Companion): void {
    this.#publishing.companions.push(companion);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    this.#grace?.cancel();
    await Promise.all([this.#publishing.stop(), this.#renewal.stop()]);
  }

  /** The setting `auto_publish` may have been switched on: what was never published is now. */
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
    this.#renewal.wake();
  }

  /** Takes notice of what happened to an agent. */
  async agentChanged({ aid, kind }: AgentChange): Promise<void> {
    if (kind === 'deleted') {
      this.#summaries.forget(aid);
      return this.#publishing.forget(aid);
    }
    if (kind !== 'alive') await this.#publishing.turns.run(aid, () => this.#written(aid, kind));
    else if (this.#publishing.isLapsed(aid)) await this.#publishing.revive(aid);
    else return;
    this.#renewal.wake();
  }

  /** A write asks for publication: of what was published before, and anew where the setting says so. */
  #written(aid: Aid, kind: 'registered' | 'rotated' | 'bound'): void {
    const { publications, clock } = this.#deps;
    if (this.#deps.identity(aid) === null) return;
    const now = clock.now();
    publications.transaction(() => {
      if (kind === 'rotated') publications.touch(aid);
      if (kind === 'bound') publications.touchEndpoints(aid, now);
      if (publications.publications(aid).length > 0) return publications.claim(aid, now);
      if (!this.#deps.autoPublish() || this.#deps.isHeld(aid)) return;
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

  /** Sets the profile card, in place of the one before. @throws SvcError `too_large`, `invalid_request`, and as `publish` */
  async setProfile(aid: Aid, card: ProfileCard): Promise<PublishResult> {
    return this.#write(aid, [profilePublication(card)]);
  }

  /**
   * Has the profile card name a fuller card, and say all else as before.
   * @param hash null: none
   * @throws SvcError `too_large`, and as `publish`
   */
  async nameCard(aid: Aid, hash: string | null): Promise<PublishResult> {
    const known = this.#deps.publications.publications(aid).find(({ type }) => type === RECORD.profile);
    const { cardHash: _, ...rest } = (known === undefined ? null : readProfile(known.payload)) ?? {};
    return this.setProfile(aid, hash === null ? rest : { ...rest, cardHash: hash });
  }

  /**
   * Removes the profile card. An empty one takes its place on the network, as far as it can be reached now.
   * @throws SvcError `not_found`
   */
  async deleteProfile(aid: Aid): Promise<PublishResult> {
    const { publications, log } = this.#deps;
    this.#publishing.identity(aid);
    const removed = await this.#publishing.turns.run(aid, () => publications.remove(aid, RECORD.profile, ''));
    if (!removed) return { seq: publications.publisher(aid)?.seq ?? 0, replicas: 0 };
    this.#customTypesChanged(aid);
    try {
      return await this.#publishing.publishOnce(aid, profilePublication({}));
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
    const wanted = servicePublications(offer, identity.delegation);
    const known = this.#deps.publications.publications(aid).filter((row) => row.type === RECORD.service);
    const names = new Set([...known, ...wanted].map((one) => one.name));
    if (names.size > MAX_SERVICES)
      throw new SvcError('quota_exceeded', { message: `An agent offers at most ${MAX_SERVICES} services.` });
    return this.#write(aid, wanted);
  }

  /**
   * Takes a service off the renewal list.
   * @throws SvcError `bad_service_name`, `not_found` where the agent or the service is not here
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

  /** What an agent offers, by name in alphabetical order. @throws SvcError `not_found` */
  services(aid: Aid): OfferedService[] {
    const { publications, clock } = this.#deps;
    this.#publishing.identity(aid);
    return offeredServices(publications.publications(aid), clock.now());
  }

  /** How the publications of several identities stand; all of the asked ones are there. */
  summaries(aids: readonly Aid[]): Map<Aid, PublicationSummary> {
    return this.#summaries.of(aids);
  }

  summary(aid: Aid): PublicationSummary {
    const { publications, clock } = this.#deps;
    return summarize(publications.publisher(aid) ?? undefined, publications.publications(aid), clock.now());
  }

  async #write(aid: Aid, wanted: readonly Publication[]): Promise<PublishResult> {
    this.#publishing.identity(aid);
    const known = new Set(this.#deps.publications.publications(aid).map((row) => row.type));
    const newType = wanted.some(({ type }) => isCustomType(type) && !known.has(type));
    try {
      return await this.#publishing.publish(aid, wanted);
    } finally {
      if (newType) this.#customTypesChanged(aid);
      this.#renewal.wake();
    }
  }

  /** Endpoint records say which custom types there are. */
  #customTypesChanged(aid: Aid): void {
    this.#deps.publications.touchEndpoints(aid, this.#deps.clock.now());
    this.#renewal.wake();
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
      this.#deps.publications.touchUnsettled(this.#deps.clock.now());
      if (this.#grace !== null) this.#begin();
      else this.#renewal.wake();
    }
    return { isNew, isReached };
  }

  /** Has everything go out anew where the network does not know it any more. */
  async #askAfterOwn(): Promise<void> {
    const { publications, clock, log } = this.#deps;
    if (!(await this.#remembrance.isLost()) || this.#stopped) return;
    log.warn({}, 'the network has lost what was published here: everything is published again');
    publications.touchAll(clock.now());
    this.#renewal.wake();
  }

  #touchMoved(said: string): number {
    const { publications, clock } = this.#deps;
    // Who looks for an agent on a node that does not answer where it was asks for the node's own record.
    publications.touchMoved(said, clock.now(), this.#options.nodeAid);
    this.#renewal.wake();
    return UNTIL_REQUESTED;
  }

  /** What no event tells: a grown network, a clock that was set, a machine that slept. */
  #lookAround(): void {
    const { network, publications, clock } = this.#deps;
    this.#renewal.wake();
    const { peers, ready } = network.reachability();
    const now = clock.now();
    if (ready && peers > this.#peers) publications.touchUnsettled(now);
    if (now < this.#lastLook) publications.repairTimes(now);
    // What was not valid by a wrong clock may be by this one.
    if (now > this.#lastLook + 2 * LOOK_MS) publications.resume(now);
    this.#peers = peers;
    this.#lastLook = now;
  }
}
