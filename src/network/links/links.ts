/** Links between agents: in memory on one daemon, otherwise over the connection between two nodes. */

import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { unixSeconds } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { CLOCK_SKEW_S } from '../../foundation/domain/time.ts';
import { isUnresolved, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { guard } from '../../foundation/stream-listeners.ts';
import { asStep } from '../../foundation/traces/traced-request.ts';
import { knownOf } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { probe } from '../peers/session.ts';
import { KIND, Refusal, STATUS } from '../peers/wire.ts';
import type { BulkStreams } from '../transport/types.ts';
import { BulkMoves } from './bulk-moves.ts';
import { FRESH_MS, LinkInitiator, type Opening } from './link-initiator.ts';
import { type LinkCheck, type LinkHandler, LinkResponder } from './link-responder.ts';
import { isCurrent } from './proofs.ts';
import { type AgentPair, DelegationFloor, MetAgents, OpenLinks, ProvenAgents } from './proven.ts';
import { asLink, localPair, pathOf } from './stream.ts';
import {
  type AgentLocation,
  type LinkNames,
  type LinkPath,
  type LinkPaths,
  type LinkStream,
  type Links,
  type LinksDependencies,
  type LocalIdentity,
  type LocateOptions,
  type OpenOptions,
  type Purpose,
  TUNNEL_PURPOSES,
} from './types.ts';

/** Default timeout for finding an agent, reaching its node and its permission, milliseconds. */
export const OPEN_TIMEOUT_MS = 15_000;
/** Maximum number of agents with a stored last node. */
const MAX_MET = 16_384;

interface AgentLinksDependencies extends LinksDependencies, NodeParts {
  readonly pool: PeerTable;
  /** The cause if a call since that time reached no node. See `OutageDiagnosis.explainDial`. */
  readonly why?: (since: number) => Promise<SvcError | null>;
  /** Shared with the verification of records, so a known delegation is not verified again. */
  readonly verifier?: DelegationVerifier;
  /** Carries bulk links across lossy paths. Without it they stay on their connection. */
  readonly bulk?: BulkStreams;
}

/** The caller already passed an access token, so a hint to pass one would mislead. */
function tokenRefused(): Refusal {
  const message =
    'The remote agent refuses this caller: the access token was not accepted. Ask its owner for a valid one.';
  return new Refusal(STATUS.accessDenied, message);
}

export class AgentLinks implements Links, LinkPaths {
  readonly #dependencies: AgentLinksDependencies;
  readonly #floor: DelegationFloor;
  readonly #opening: LinkInitiator;
  readonly #answering: LinkResponder;
  readonly #metOn = new LruCache<Aid, Uint8Array>({ maxEntries: MAX_MET });
  readonly #met: MetAgents;
  /** The last called agent of each node, by the node's key in hex. */
  readonly #called = new LruCache<string, Aid>({ maxEntries: MAX_MET });

  /** Handles the streams of kind "link". */
  constructor(dependencies: AgentLinksDependencies) {
    const { pool, clock } = dependencies;
    this.#dependencies = dependencies;
    this.#met = new MetAgents({ clock });
    const openLinks = new OpenLinks();
    const raised = (aid: Aid, issuedAt: number): void => openLinks.endOlder(aid, issuedAt);
    this.#floor = new DelegationFloor({ ...dependencies, raised });
    const verifier = dependencies.verifier ?? new DelegationVerifier();
    const proven = new ProvenAgents(this.#floor, verifier);
    const moves = dependencies.bulk === undefined ? null : new BulkMoves(clock, dependencies.bulk);
    this.#opening = new LinkInitiator(pool, proven, openLinks, clock, moves);
    this.#answering = new LinkResponder({
      ...dependencies,
      proven,
      openLinks,
      met: this.#met,
      known: pool.known,
      lingers: (stream, session) => pool.gate.lingers(stream, session),
      log: dependencies.log.child('links'),
    });
    pool.handle(KIND.link, (stream, session, signal) => this.#answering.answer(stream, session, signal));
    if (moves === null) return;
    pool.handle(KIND.lane, (stream, session, signal) => moves.handle(stream, session, signal));
    pool.handle(KIND.bulkLink, async (stream, session, signal) => {
      const number = await moves.readNumber(stream, signal);
      await this.#answering.answer(stream, session, signal, () => moves.accepted(session, stream, number));
    });
  }

  async open(local: Aid, remote: Aid, purpose: Purpose, options: OpenOptions = {}): Promise<LinkStream> {
    const caller = this.#caller(local);
    const { accessToken } = options;
    const names: LinkNames = { caller: local, called: remote, purpose, accessToken, nodeKey: null };
    using limit = awakeTimeout(this.#dependencies.clock, options.timeoutMs ?? OPEN_TIMEOUT_MS, options.signal);
    const { first, silence, trace } = options;
    const isBulk = options.bulk === true;
    const relays = options.disableRelay !== true;
    const isUnasked = options.isUnasked === true;
    const opening = { caller, names, relays, first, isBulk, silence, trace, isUnasked, signal: limit.signal };
    const here = await this.#isHere(remote, limit.signal);
    if (here) {
      const link = await asStep(trace, 'link', () => this.#openHere(names, limit.signal)).catch((error: unknown) => {
        const isRefused = error instanceof SvcError && error.code === 'access_denied';
        throw accessToken !== undefined && isRefused ? tokenRefused() : error;
      });
      if (first !== undefined) link.write(first.bytes({ instance: '', isFresh: false }));
      if (first?.isAll === true) link.end();
      return link;
    }
    const since = this.#dependencies.clock.now();
    try {
      return await this.#openThere(opening);
    } catch (error) {
      if (accessToken !== undefined && error instanceof Refusal && error.refusal === STATUS.accessDenied)
        throw tokenRefused();
      const isUnreached = error instanceof SvcError && !(error instanceof Refusal) && error.code === 'connect_failed';
      const trouble = isUnreached ? await this.#dependencies.why?.(since) : null;
      if (trouble) throw trouble;
      const saysWhy = purpose === 'http' || isTunnel(purpose);
      if (saysWhy || !(error instanceof SvcError) || error.code !== 'relay_required') throw error;
      // Only tunnels and calls document this code. For other purposes the node is unreachable.
      throw new SvcError('connect_failed', { message: error.message, cause: error });
    }
  }

  /**
   * True if the agent of this daemon is to be called. With a newer delegation the agent has moved: it is called at its
   * new node as soon as a record names that node.
   */
  async #isHere(aid: Aid, signal: AbortSignal): Promise<boolean> {
    const identity = this.#dependencies.identity(aid);
    if (identity === null) return false;
    const { issuedAt } = identity.delegation;
    if (issuedAt >= this.#floor.of(aid)) return true;
    try {
      const { nodeKey, delegationIssuedAt } = await this.#locate(aid, { fresh: false, signal });
      return delegationIssuedAt <= issuedAt || equalBytes(nodeKey, this.#dependencies.pool.nodeKey);
    } catch (error) {
      if (isUnresolved(error)) return true;
      throw error;
    }
  }

  /**
   * Begins to connect to the node of an agent that a link will be opened to soon, or probes it over a connection that
   * was quiet. Only the hello of nodes is sent.
   * `open` shares the attempt, and reports its errors.
   */
  async approach(remote: Aid): Promise<void> {
    const { pool, clock } = this.#dependencies;
    using limit = awakeTimeout(clock, OPEN_TIMEOUT_MS);
    try {
      const place = await this.#locate(remote, { fresh: false, signal: limit.signal });
      if (equalBytes(place.nodeKey, pool.nodeKey)) return;
      const session = pool.current(place.nodeKey, true);
      if (session !== null && !session.heardWithin(FRESH_MS)) {
        session.expectAnswer();
        await probe(session, clock, limit.signal);
      }
      if (session !== null) return;
      await pool.connect(place, limit.signal, { relays: true });
    } catch {
      // `open` meets the same error, or finds another place.
    }
  }

  accept(purpose: Purpose, handler: LinkHandler, check?: LinkCheck): void {
    this.#answering.accept(purpose, handler, check);
  }

  path(remote: Aid, disableRelay: boolean): LinkPath | null {
    const nodeKey = this.#metOn.get(remote);
    const session = nodeKey === undefined ? null : this.#dependencies.pool.current(nodeKey, !disableRelay);
    return session === null ? null : pathOf(session.connection, session.upgrade.isReady);
  }

  /** Recent pairs of local agents and agents of a node. */
  pairsWith(nodeKey: Uint8Array): readonly AgentPair[] {
    return this.#met.with(nodeKey);
  }

  /** Known agents of a node: the last called one first, then recent callers, newest first. */
  agentsOn(nodeKey: Uint8Array): readonly Aid[] {
    const called = this.#called.peek(toHex(nodeKey));
    const met = this.pairsWith(nodeKey).toReversed();
    return [...new Set([...(called === undefined ? [] : [called]), ...met.map(({ remote }) => remote)])];
  }

  onPathChange(handler: () => void): () => void {
    const { pool } = this.#dependencies;
    const subscriptions = [pool.onPathChange(handler), pool.upgraded.add(handler)];
    return () => {
      for (const unsubscribe of subscriptions) unsubscribe();
    };
  }

  reset(remote: Aid): void {
    const nodeKey = this.#metOn.get(remote);
    if (nodeKey !== undefined) this.#dependencies.pool.reset(nodeKey);
  }

  /** The local caller. Its delegation is checked here, so that the user gets the exact reason. */
  #caller(local: Aid): LocalIdentity {
    const identity = this.#dependencies.identity(local);
    if (identity === null)
      throw new SvcError('not_found', { message: 'The calling agent is not on this daemon.', details: { aid: local } });
    const now = unixSeconds(this.#dependencies.clock);
    if (now < identity.delegation.issuedAt - CLOCK_SKEW_S)
      throw new SvcError('clock_wrong', {
        message: `By the clock of this machine, the delegation of ${local} is not valid yet. Set the clock, or make a new delegation if this clock is right.`,
        details: { aid: local },
      });
    if (!isCurrent(identity.delegation, 0, now))
      throw new SvcError('bad_delegation', {
        message: `The delegation of ${local} has expired (± ${CLOCK_SKEW_S} s), or the clock of this machine is wrong.`,
        details: { aid: local },
      });
    return identity;
  }

  /** Checks the same permission as for a remote caller, then connects both agents in memory. */
  async #openHere(names: LinkNames, signal: AbortSignal): Promise<LinkStream> {
    await abortable(this.#answering.permit(names.purpose, names, null), signal);
    const [near, far] = localPair();
    const path = () => ({ kind: 'local', remote: null, source: null, rttMs: 0 }) as const;
    guard(near);
    guard(far);
    this.#answering.deliver(asLink(far, names, path));
    return asLink(near, names, path);
  }

  async #openThere(opening: Omit<Opening, 'place'>): Promise<LinkStream> {
    const { names, signal, trace } = opening;
    let ahead: AbortController | null = null;
    try {
      const onLikely = (place: AgentLocation): void => {
        ahead ??= new AbortController();
        this.#dialAhead(place, opening, ahead.signal);
      };
      const cached = await asStep(trace, 'resolve', () =>
        this.#locate(names.called, { fresh: false, signal, onLikely }),
      );
      return await this.#openFound(cached, opening);
    } finally {
      cancel(ahead);
    }
  }

  /**
   * Connects to the likely place of an agent during the lookup of its newest record. That saves a round trip or two.
   * Before the place is certain, only the hello of nodes is sent.
   */
  #dialAhead(place: AgentLocation, { names, relays }: Omit<Opening, 'place'>, signal: AbortSignal): void {
    const { pool } = this.#dependencies;
    const isOld = place.delegationIssuedAt < this.#floor.of(names.called);
    if (signal.aborted || isOld || equalBytes(place.nodeKey, pool.nodeKey)) return;
    // The caller for the certain place shares this attempt and its error.
    pool.connect(place, signal, { relays }).catch(() => {});
  }

  async #openFound(cached: AgentLocation, opening: Omit<Opening, 'place'>): Promise<LinkStream> {
    const { names, signal, trace } = opening;
    try {
      return await this.#openAt(cached, opening);
    } catch (error) {
      if (!isStale(error) || signal.aborted) throw error;
      const fresh = await asStep(trace, 'resolve', () => this.#locate(names.called, { fresh: true, signal }));
      if (leadsTo(fresh, cached, error)) throw error;
      return await this.#openAt(fresh, opening);
    }
  }

  async #locate(aid: Aid, options: LocateOptions & { readonly signal: AbortSignal }): Promise<AgentLocation> {
    const location = await abortable(this.#dependencies.resolver.locate(aid, options), options.signal);
    // The record is verified. Older delegations are no longer valid on connections either.
    this.#floor.note(aid, location.delegationIssuedAt, null);
    return location;
  }

  async #openAt(location: AgentLocation, opening: Omit<Opening, 'place'>): Promise<LinkStream> {
    const { names, isUnasked } = opening;
    if (equalBytes(location.nodeKey, this.#dependencies.pool.nodeKey)) throw new Refusal(STATUS.notHere);
    this.#called.set(toHex(location.nodeKey), names.called);
    const link = await this.#opening.open({ ...opening, place: location });
    this.#metOn.set(names.called, location.nodeKey);
    this.#met.note(location.nodeKey, { local: names.caller, remote: names.called });
    const isUse = names.purpose === 'http' || names.purpose === 'entry' || isTunnel(names.purpose);
    if (isUse && !isUnasked) this.#dependencies.pool.known.note(location.nodeKey);
    return link;
  }
}

/** Most links need no early attempt, and an error object is expensive. */
function cancel(ahead: AbortController | null): void {
  ahead?.abort(new SvcError('cancelled'));
}

function isTunnel(purpose: Purpose): boolean {
  return TUNNEL_PURPOSES.some((one) => one === purpose);
}

/** True if another lookup of the place may help. */
function isStale(error: unknown): error is SvcError {
  if (error instanceof Refusal) return error.refusal === STATUS.notHere;
  return error instanceof SvcError && (error.code === 'connect_failed' || error.code === 'relay_required');
}

/** True if the fresh place equals the failed one. */
function leadsTo(fresh: AgentLocation, failed: AgentLocation, error: SvcError): boolean {
  if (!equalBytes(fresh.nodeKey, failed.nodeKey)) return false;
  if (error instanceof Refusal) return true;
  const known = new Set(knownOf(failed));
  return knownOf(fresh).every((one) => known.has(one));
}
