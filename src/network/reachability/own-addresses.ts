/** The addresses of this node that it publishes in endpoint records. */
import { isIPv4 } from 'node:net';
import { type Address, formatAddress, isEveryInterface } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import type { AddressSource, AddressVerifier } from '../../foundation/domain/reach.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import {
  ENDPOINT_SCHEME,
  type HelperNode,
  MAX_ENDPOINTS,
  type TurnRendezvous,
} from '../../foundation/records/payloads.ts';
import type { Reachability, RecordNetwork } from '../records/types.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';
import { combineNatType } from './nat.ts';

/* The addresses at which this node may be reachable, and the subset to publish. Pure. */

export interface OwnAddress {
  /** The host may be a name if the address is configured. */
  readonly address: Address;
  readonly source: AddressSource;
  /**
   * The proof that strangers can reach this address: packets from nodes of the record network, or a helper that dialed it; null if there is none yet.
   */
  readonly verifiedBy: AddressVerifier | null;
}

export interface AddressEvidence {
  /** The address that the QUIC endpoint listens on. */
  readonly quic: Address;
  /** Host name or address to publish until other nodes report one; empty for none. */
  readonly fallbackHost: string;
  /** The addresses of this machine's interfaces, loopback included. */
  readonly interfaces: readonly string[];
  readonly reachability: Pick<Reachability, 'observed' | 'inRoutingTables'>;
  /** Addresses found by other components: port mappings. */
  readonly found: readonly OwnAddress[];
  /** Results of dial-backs, by address. They take precedence over all other evidence. */
  readonly dialedBack: ReadonlyMap<string, boolean>;
}

function interfaceSource(host: string): AddressSource {
  return ipScope(host) === IP_SCOPE.public ? 'interface' : 'lan';
}

/** The result of a dial-back to the address, or `otherwise` if no node has tried. */
function verifiedBy({ dialedBack: dialled }: AddressEvidence, address: Address, otherwise: OwnAddress['verifiedBy']) {
  const isReached = dialled.get(formatAddress(address));
  if (isReached === undefined) return otherwise;
  return isReached ? 'helper' : null;
}

/** Public IPv4 addresses that helpers can dial back to, without duplicates. */
export function addressesToVerify(known: readonly OwnAddress[]): Address[] {
  const isProvable = ({ source, address: { host, port } }: OwnAddress): boolean =>
    source !== 'configured' && isIPv4(host) && ipScope(host) === IP_SCOPE.public && port >= FIRST_MAPPED_PORT;
  const provable = known.filter(isProvable).map(({ address }) => [formatAddress(address), address] as const);
  return [...new Map(provable).values()];
}

/** True if dial-backs to all addresses that strangers could use have failed. */
export function isRefuted(known: readonly OwnAddress[], dialled: ReadonlyMap<string, boolean>): boolean {
  const verdicts = addressesToVerify(known).map((address) => dialled.get(formatAddress(address)));
  return verdicts.length > 0 && verdicts.every((isReached) => isReached === false);
}

/**
 * The addresses that other components found. If strangers reach the external host of the router, they use the mapped
 * ports: either all ports are mapped or none.
 */
function verifyFound(facts: AddressEvidence): OwnAddress[] {
  const { found, reachability } = facts;
  const isReached = (host: string): boolean =>
    reachability.inRoutingTables && reachability.observed.some((one) => one.host === host);
  return found.map((one) => {
    const byPeers = one.source === 'mapped' && one.verifiedBy === null && isReached(one.address.host);
    return { ...one, verifiedBy: verifiedBy(facts, one.address, byPeers ? 'peers' : one.verifiedBy) };
  });
}

/**
 * All known addresses, in order of preference. The observed address belongs to the record network's port. The QUIC port
 * is reachable at the same host if the node is reachable without a NAT; otherwise that is unknown.
 */
export function collectAddresses(facts: AddressEvidence): OwnAddress[] {
  const { quic, fallbackHost, interfaces, reachability } = facts;
  const found = verifyFound(facts);
  const at = (host: string): Address => ({ host, port: quic.port });
  if (!isEveryInterface(quic.host)) return [{ address: quic, source: 'configured', verifiedBy: null }, ...found];
  const own = interfaces.filter((host) => ipScope(host) > IP_SCOPE.link);
  const observed = reachability.observed
    .filter(({ host }) => own.length === 0 || ipScope(host) !== IP_SCOPE.loopback)
    .map(({ host }): OwnAddress => {
      const source = own.includes(host) ? interfaceSource(host) : 'observed';
      const address = at(host);
      return { address, source, verifiedBy: verifiedBy(facts, address, reachability.inRoutingTables ? 'peers' : null) };
    });
  // A port mapping replaces the guessed port at the same host.
  const isMapped = (host: string): boolean =>
    found.some(({ source, address }) => source === 'mapped' && address.host === host);
  const seen = observed.filter(({ source, address }) => source !== 'observed' || !isMapped(address.host));
  const known = [...seen, ...found];
  const isSeen = known.some(isPublished);
  const stated: OwnAddress[] =
    isSeen || fallbackHost === '' ? [] : [{ address: at(fallbackHost), source: 'configured', verifiedBy: null }];
  const near = own.map((host): OwnAddress => ({ address: at(host), source: interfaceSource(host), verifiedBy: null }));
  const all = [...known, ...stated, ...near];
  return all.some(isPublished) ? all : [...all, { address: at('127.0.0.1'), source: 'lan', verifiedBy: null }];
}

/**
 * Whether to publish an address. Addresses seen by a router or through a NAT are published only after they have been
 * verified.
 */
export function isPublished({ source, verifiedBy }: OwnAddress): boolean {
  return verifiedBy !== null || (source !== 'observed' && source !== 'mapped');
}

/** The addresses to publish, without duplicates, in order of preference. */
export function publishedAddresses(known: readonly OwnAddress[]): OwnAddress[] {
  const seen = new Set<string>();
  return known.filter(isPublished).filter(({ address }) => {
    const name = formatAddress(address);
    return !seen.has(name) && seen.add(name);
  });
}

export interface NodeAddresses {
  /** `quic://host:port`, in order of preference. */
  readonly endpoints: readonly string[];
  /** The endpoints that are mapped ports of the router. */
  readonly mapped: readonly string[];
  readonly natType: number;
  readonly helpers: readonly HelperNode[];
  /** Where callers can contact this node while it has no helper. */
  readonly meeting?: TurnRendezvous;
  /** True if this node's TURN server can relay callers. */
  readonly hasTurn?: true;
}

const NOTHING: NodeAddresses = { endpoints: [], mapped: [], natType: 0, helpers: [] };

/** Number of helpers with which the loss of one does not make a node unreachable. */
const MIN_HELPERS = 2;

/**
 * Whether a change makes this node reachable, or reachable after the loss of a helper, or invalidates published
 * addresses. A third helper or a better guess does none of these.
 */
function isUrgent(before: NodeAddresses, now: NodeAddresses): boolean {
  const names = ({ helpers }: NodeAddresses): string[] =>
    helpers.map(({ nodeKey, address }) => `${toHex(nodeKey)} ${address}`);
  const helping = new Set(names(now));
  const isNeeded = before.helpers.length < Math.min(MIN_HELPERS, now.helpers.length);
  const places = [before, now].map(({ meeting }) =>
    meeting === undefined ? '' : `${toHex(meeting.publicKey)} ${meeting.host}`,
  );
  return (
    isNeeded ||
    places[0] !== places[1] ||
    before.endpoints.join() !== now.endpoints.join() ||
    names(before).some((helper) => !helping.has(helper))
  );
}

function formatEndpoint(address: Address): string {
  return `${ENDPOINT_SCHEME}${formatAddress(address)}`;
}

interface OwnAddressesOptions {
  /** Host name or address to publish until other nodes report one; empty for none. */
  readonly fallbackHost: string;
  /** Whether this node can use a TURN server. */
  readonly hasTurn?: boolean;
}

interface OwnAddressesDependencies {
  readonly records: Pick<RecordNetwork, 'reachability' | 'onReachability'>;
  /** The address that the QUIC endpoint listens on. */
  readonly quic: () => Address;
  /** The addresses of this machine's interfaces, loopback included. */
  readonly interfaces: () => readonly string[];
}

export class OwnAddresses implements Component {
  readonly #options: OwnAddressesOptions;
  readonly #deps: OwnAddressesDependencies;
  readonly #changes = new Listeners<[isUrgent: boolean]>();
  #unsubscribe: () => void = () => {};
  /** By the component that found them. */
  readonly #found = new Map<string, readonly OwnAddress[]>();
  #dialBackResults: ReadonlyMap<string, boolean> = new Map();
  #helpers: readonly HelperNode[] = [];
  #meeting: TurnRendezvous | null = null;
  #mapping: NatMapping = 'unknown';
  #last: NodeAddresses = NOTHING;

  constructor(options: OwnAddressesOptions, dependencies: OwnAddressesDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    this.#last = this.current();
    this.#unsubscribe = this.#deps.records.onReachability(() => this.#compare());
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
  }

  /** The addresses to publish now. */
  current(): NodeAddresses {
    const published = publishedAddresses(this.known()).slice(0, MAX_ENDPOINTS);
    const endpoints = published.map(({ address }) => formatEndpoint(address));
    const mapped = published.filter(({ source }) => source === 'mapped').map(({ address }) => formatEndpoint(address));
    const natType = combineNatType(this.#mapping, this.#deps.records.reachability().natType, this.isRefuted);
    const helpers = this.#helpers;
    const meeting = this.#meeting;
    const isMet = helpers.length > 0 || meeting !== null;
    return {
      endpoints,
      mapped,
      natType,
      helpers,
      ...(meeting === null ? {} : { meeting }),
      ...(isMet && this.#options.hasTurn === true ? { hasTurn: true } : {}),
    };
  }

  /** True if dial-backs to all addresses that strangers could use have failed. */
  get isRefuted(): boolean {
    return isRefuted(this.known(), this.#dialBackResults);
  }

  /** Sets the results of dial-backs, by address. */
  setDialBackResults(verdicts: ReadonlyMap<string, boolean>): void {
    this.#dialBackResults = verdicts;
    this.#compare();
  }

  /** Call when the addresses of this machine may have changed. */
  refresh(): void {
    this.#compare();
  }

  /** All known addresses of this node, in order of preference. */
  known(): readonly OwnAddress[] {
    const { records, quic, interfaces } = this.#deps;
    return collectAddresses({
      ...this.#options,
      quic: quic(),
      interfaces: interfaces(),
      reachability: records.reachability(),
      found: [...this.#found.values()].flat(),
      dialedBack: this.#dialBackResults,
    });
  }

  /**
   * Replaces the addresses that a component found.
   * @param by the name of the component
   */
  found(by: string, addresses: readonly OwnAddress[]): void {
    this.#found.set(by, addresses);
    this.#compare();
  }

  /** Sets the connected helpers, in order of preference. Up to 4 are published. */
  setHelpers(helpers: readonly HelperNode[]): void {
    this.#helpers = helpers;
    this.#compare();
  }

  /** Sets where callers contact this node without a helper; null if nowhere. */
  setMeeting(meeting: TurnRendezvous | null): void {
    this.#meeting = meeting;
    this.#compare();
  }

  /** Sets the detected NAT mapping. */
  setMapping(mapping: NatMapping): void {
    this.#mapping = mapping;
    this.#compare();
  }

  /**
   * Subscribes to changes of `current`. The handler receives the result of `isUrgent`. Returns a function that
   * unsubscribes.
   */
  onChange(handler: (isUrgent: boolean) => void): () => void {
    return this.#changes.add(handler);
  }

  #compare(): void {
    const now = this.current();
    const before = this.#last;
    if (JSON.stringify(now) === JSON.stringify(before)) return;
    this.#last = now;
    this.#changes.notify(isUrgent(before, now));
  }
}
