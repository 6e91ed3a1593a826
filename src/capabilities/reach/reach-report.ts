/**
 * Reports how this node reaches others and is reached, for users who ask why a connection is slow, relayed or missing.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { pause } from '../../foundation/deadline.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import type { LinkUse, NotDirectReason } from '../../foundation/domain/reach.ts';
import type { LinkPathKind, PathKind } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, nativeAid, nativePublicKey } from '../../foundation/identity/aid.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { AgentPair } from '../../network/links/proven.ts';
import type { AgentLocation, Locator } from '../../network/links/types.ts';
import type { DialAddress } from '../../network/peers/dial.ts';
import type { ConnectionView, PeerTable } from '../../network/peers/peer-table.ts';
import type { ChosenHelpers } from '../../network/reachability/chosen-helpers.ts';
import { commonIpv6Address } from '../../network/reachability/interface-addresses.ts';
import { isPublished, type OwnAddress, type OwnAddresses } from '../../network/reachability/own-addresses.ts';
import type { PortMapper } from '../../network/reachability/port-mapping/port-mapper.ts';
import type { RecordDht } from '../../network/records/record-dht.ts';
import type { Neighbour } from '../../network/records/types.ts';
import { notDirectReason, type Sides } from './not-direct.ts';
import { type PathAttempt, pathAttempts } from './path-attempts.ts';

/** How other nodes reach this one. */
export interface ReachFacts {
  /** The NAT mapping that other nodes last observed. */
  seenMapping(): NatMapping;
  /** The NAT mapping used for punching: `open` only if strangers can reach this node. */
  mapping(): NatMapping;
  /** When another node last reached this node at an address over QUIC, in Unix milliseconds; null if not recently. */
  reachedAt(address: Address): number | null;
  readonly relay: { helps(): boolean };
}

export interface ReachDependencies {
  readonly links: AgentLinks;
  readonly helpers: Pick<ChosenHelpers, 'has' | 'addresses' | 'current'>;
  /** Labels of the address book, by AID. */
  readonly labels: () => Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  readonly pool: PeerTable;
  readonly records: Pick<RecordDht, 'neighbours' | 'reachability' | 'clocks'>;
  readonly ownAddresses: Pick<OwnAddresses, 'current' | 'known' | 'isRefuted'>;
  readonly portMapper: Pick<PortMapper, 'view'>;
  readonly reach: ReachFacts;
  /** The setting `disable_relay`. */
  readonly relayDisabled: () => boolean;
  /** The addresses of this machine's interfaces. */
  readonly interfaces: () => readonly string[];
  /** The kind of a path from this node to an address. */
  readonly kindOf: (address: Address) => PathKind;
  /** True for local agents and the node itself. */
  readonly isHere: (aid: Aid) => boolean;
  readonly resolver: Locator;
}

/** The connectivity of this machine in one address family. */
interface FamilyFacts {
  /** Interface addresses that are not loopback. */
  readonly addresses: number;
  readonly isPublic: boolean;
  /** The address at which other nodes see this node; null if none has reported it. */
  readonly seenAs: Address | null;
}

export interface PingRequest {
  readonly aid: Aid;
  readonly count: number;
  readonly intervalMs: number;
  /** Timeout for the connection, and for each response. */
  readonly timeoutMs: number;
  readonly disableRelay: boolean;
}

/** One probe; null if there was no response. */
export interface ProbeResult {
  readonly rttMs: number | null;
  readonly path: LinkPathKind | null;
}

interface PingResult {
  readonly node: Aid;
  readonly probes: readonly ProbeResult[];
  /** Destination of the packets; null on this daemon. */
  readonly remote: Address | null;
  /** Null if the path is direct. */
  readonly notDirect: NotDirectReason | null;
}

/** Errors that may be due to an outdated location of the agent. */
const STALE_LOCATION_CODES: ReadonlySet<string> = new Set(['connect_failed', 'relay_required']);

/** Removes duplicate addresses and keeps the best-known entry. */
function uniqueAddresses(addresses: readonly OwnAddress[]): OwnAddress[] {
  const known = new Map(addresses.toReversed().map((one) => [formatAddress(one.address), one]));
  return addresses.filter((one) => known.get(formatAddress(one.address)) === one);
}

export class ReachReport {
  readonly #deps: ReachDependencies;

  constructor(dependencies: ReachDependencies) {
    this.#deps = dependencies;
  }

  /** The connections to other nodes. */
  links(): ReturnType<typeof listLinks> {
    return listLinks(this.#deps);
  }

  /** The nodes of the routing table. */
  peers(): ReturnType<typeof listPeers> {
    return listPeers(this.#deps);
  }

  /** The network in front of this node, from known facts only. Sends nothing. */
  check() {
    const { records, ownAddresses, portMapper, helpers, pool } = this.#deps;
    const { ready, peers, clients, observed } = records.reachability();
    const { natType } = ownAddresses.current();
    return {
      ready,
      peers,
      clients,
      isReached: this.#isReached(),
      natType,
      mapping: this.#deps.reach.seenMapping(),
      addresses: uniqueAddresses(ownAddresses.known()).map((one) => ({
        ...one,
        isTold: isPublished(one),
        verifiedAt: this.#deps.reach.reachedAt(one.address),
      })),
      ipv4: this.#family(false, observed),
      ipv6: this.#family(true, observed),
      portMapping: portMapper.view(),
      helpers: helpers.current.map(({ nodeKey, address }) => ({
        node: nativeAid(nodeKey),
        address,
        rttMs: pool.current(nodeKey)?.connection.rtt() ?? null,
      })),
      helpsOthers: this.#deps.reach.relay.helps(),
      relaysAllowed: !this.#deps.relayDisabled(),
      clock: records.clocks(),
    };
  }

  /**
   * How an agent would be reached. Looks up its location, but does not dial.
   * @throws SvcError `resolve_failed`, `cancelled`
   */
  async pathsTo(aid: Aid, signal: AbortSignal) {
    const { isHere, resolver, nodeKey, pool, relayDisabled, kindOf, clock, ownAddresses } = this.#deps;
    if (isHere(aid)) {
      const { natType } = ownAddresses.current();
      return { node: nativeAid(nodeKey), isHere: true, natType, link: null, ways: [], notDirect: null };
    }
    const place = await resolver.locate(aid, { fresh: false, signal });
    const sides = this.#sides(place);
    const link = currentLink(pool, place.nodeKey);
    const ways: readonly PathAttempt[] = pathAttempts({
      place,
      sides,
      link,
      ways: pool.ways(place),
      relaysAllowed: !relayDisabled(),
      hasIpv6: this.#family(true, []).addresses > 0,
      kindOf: (address: DialAddress) => (address.isMapped === true ? 'mapped' : kindOf(address)),
    });
    const notDirect = link === null ? null : notDirectReason(link, sides, clock.now());
    return { node: nativeAid(place.nodeKey), isHere: false, natType: place.natType, link, ways, notDirect };
  }

  /**
   * Sends probes to the node of an agent over the connection that links use. Opens the connection if there is none.
   * @throws SvcError `resolve_failed`, `connect_failed`, `relay_required`, `timeout` if the node is not reached,
   *   `cancelled`
   */
  async ping({ aid, count, intervalMs, ...request }: PingRequest, signal: AbortSignal): Promise<PingResult> {
    const { isHere, nodeKey, pool, clock } = this.#deps;
    if (isHere(aid)) {
      const probes = Array.from({ length: count }, (): ProbeResult => ({ rttMs: 0, path: 'local' }));
      return { node: nativeAid(nodeKey), probes, remote: null, notDirect: null };
    }
    const place = await this.#connectTo(aid, request, signal);
    const probes: ProbeResult[] = [];
    for (let i = 0; i < count; i++) {
      if (i > 0) await pause(this.#deps.clock, intervalMs, signal);
      probes.push(await this.#probe(place, request, signal));
    }
    const link = currentLink(pool, place.nodeKey);
    const notDirect = notDirectReason(link, this.#sides(place), clock.now());
    return { node: nativeAid(place.nodeKey), probes, remote: link?.path.remote ?? null, notDirect };
  }

  /** Failed dials to this node count more than a reachable record network. */
  #isReached(): boolean | null {
    const { records, ownAddresses } = this.#deps;
    const { peers, clients, natType, inRoutingTables } = records.reachability();
    if (ownAddresses.isRefuted) return false;
    return peers + clients === 0 || (natType === 0 && !inRoutingTables) ? null : inRoutingTables;
  }

  #sides({ natType, helpers, nodeKey, addresses }: AgentLocation): Sides {
    const others = helpers.filter(
      (one) => !equalBytes(one.nodeKey, nodeKey) && !equalBytes(one.nodeKey, this.#deps.nodeKey),
    );
    const interfaces = this.#deps.interfaces().map((address) => ({ address }));
    const haveIpv6 = commonIpv6Address(addresses, interfaces) !== null;
    return { ours: this.#deps.reach.mapping(), theirs: natType, helpers: others.length, haveIpv6 };
  }

  #family(isV6: boolean, observed: readonly Address[]): FamilyFacts {
    const own = this.#deps.interfaces().filter((host) => host.includes(':') === isV6 && ipScope(host) > IP_SCOPE.link);
    return {
      addresses: own.length,
      isPublic: own.some((host) => ipScope(host) === IP_SCOPE.public),
      seenAs: observed.find(({ host }) => host.includes(':') === isV6) ?? null,
    };
  }

  /** The location of an agent, after a connection to its node is open. */
  async #connectTo(aid: Aid, request: Omit<PingRequest, 'aid' | 'count' | 'intervalMs'>, signal: AbortSignal) {
    const { clock, resolver } = this.#deps;
    using limit = awakeTimeout(clock, request.timeoutMs, signal);
    const known = await resolver.locate(aid, { fresh: false, signal: limit.signal });
    try {
      await this.#connect(known, request.disableRelay, limit.signal);
      return known;
    } catch (error) {
      if (limit.signal.aborted || !(error instanceof SvcError) || !STALE_LOCATION_CODES.has(error.code)) throw error;
      const fresh = await resolver.locate(aid, { fresh: true, signal: limit.signal });
      await this.#connect(fresh, request.disableRelay, limit.signal);
      return fresh;
    }
  }

  async #connect(place: AgentLocation, disableRelay: boolean, signal: AbortSignal): Promise<void> {
    await this.#deps.pool.connect(place, signal, { relays: !disableRelay });
  }

  async #probe(
    place: AgentLocation,
    { timeoutMs, disableRelay }: Pick<PingRequest, 'timeoutMs' | 'disableRelay'>,
    signal: AbortSignal,
  ): Promise<ProbeResult> {
    using limit = awakeTimeout(this.#deps.clock, timeoutMs, signal);
    try {
      await this.#connect(place, disableRelay, limit.signal);
      const { rttMs, path } = await this.#deps.pool.probe(place.nodeKey, limit.signal);
      return { rttMs, path: path.kind };
    } catch (error) {
      if (signal.aborted || !(error instanceof SvcError)) throw error;
      return { rttMs: null, path: null };
    }
  }
}

// This node's connections to others, and the nodes of its routing table.

/** A remote agent and the local agents that communicate with it. */
interface RemoteAgent {
  readonly aid: Aid;
  /** Its label in the address book; null if it has none. */
  readonly label: string | null;
  readonly localAids: readonly Aid[];
}

export interface LinkSummary extends ConnectionView {
  readonly agents: readonly RemoteAgent[];
  readonly use: LinkUse;
}

interface KnownPeer extends Neighbour {
  /** The AID of the key that it claims. */
  readonly node: Aid | null;
  readonly isHelper: boolean;
}

function agentsIn(pairs: readonly AgentPair[], labels: Readonly<Record<string, string>>): RemoteAgent[] {
  const locals = Map.groupBy(pairs, ({ remote }) => remote);
  return [...locals].map(([aid, met]) => ({
    aid,
    label: labels[aid] ?? null,
    localAids: met.map(({ local }) => local),
  }));
}

/** The open connections, grouped by node. */
function listLinks({ pool, links, helpers, labels }: ReachDependencies): readonly LinkSummary[] {
  const names = labels();
  const views = pool.connections().map((view): LinkSummary => {
    const key = nativePublicKey(view.node);
    const isHelper = key !== null && view.current && helpers.has(key);
    const use = isHelper ? 'helper' : 'all';
    return { ...view, use, agents: key === null ? [] : agentsIn(links.pairsWith(key), names) };
  });
  return [...Map.groupBy(views, ({ node }) => node).values()].flat();
}

/** The nodes of the routing table, most recently heard first. */
function listPeers({ records, helpers }: ReachDependencies): readonly KnownPeer[] {
  const isHelper = ({ host, port, nodeKey }: Neighbour): boolean =>
    (nodeKey !== null && helpers.has(nodeKey)) ||
    helpers.addresses.some((helper) => helper.host === host && helper.port === port);
  return records
    .neighbours()
    .map((one) => ({ ...one, node: one.nodeKey === null ? null : nativeAid(one.nodeKey), isHelper: isHelper(one) }))
    .sort((a, b) => b.lastSeen - a.lastSeen);
}

/** The connection that new streams to a node use; null if there is none. */
function currentLink(pool: PeerTable, nodeKey: Uint8Array): ConnectionView | null {
  const aid = nativeAid(nodeKey);
  return pool.connections().find(({ current, node }) => current && node === aid) ?? null;
}
