/** Where this node can be reached: what it publishes in endpoint records. */
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
import { natTypeOf } from './nat.ts';

/* What this node knows of where it may be reached, and what of it is worth telling others. Pure. */

export interface OwnAddress {
  /** The host may be a name where it is configured. */
  readonly address: Address;
  readonly source: AddressSource;
  /** Who reached us there from outside, unasked: nodes of the record network, a helper; null where nobody has yet. */
  readonly verifiedBy: AddressVerifier | null;
}

export interface OwnFacts {
  /** Where the QUIC endpoint listens. */
  readonly quic: Address;
  /** Host name or address to publish while none has been seen from outside; empty for none. */
  readonly fallbackHost: string;
  /** The addresses of this machine's interfaces, loopback included. */
  readonly interfaces: readonly string[];
  readonly reachability: Pick<Reachability, 'observed' | 'inRoutingTables'>;
  /** What other parts have found out: mapped ports. */
  readonly found: readonly OwnAddress[];
  /** Whether others that dialled back to an address have reached us, by address: it counts more than any guess. */
  readonly dialled: ReadonlyMap<string, boolean>;
}

function sourceOfOwn(host: string): AddressSource {
  return ipScope(host) === IP_SCOPE.public ? 'interface' : 'lan';
}

/** Who has reached us at an address, where others have dialled it; what else is known of that, where none has. */
function verifiedBy({ dialled }: OwnFacts, address: Address, otherwise: OwnAddress['verifiedBy']) {
  const isReached = dialled.get(formatAddress(address));
  if (isReached === undefined) return otherwise;
  return isReached ? 'helper' : null;
}

/** Addresses on the Internet that others may dial back to, each once: of IPv4, as others see us there. */
export function provableAddresses(known: readonly OwnAddress[]): Address[] {
  const isProvable = ({ source, address: { host, port } }: OwnAddress): boolean =>
    source !== 'configured' && isIPv4(host) && ipScope(host) === IP_SCOPE.public && port >= FIRST_MAPPED_PORT;
  const provable = known.filter(isProvable).map(({ address }) => [formatAddress(address), address] as const);
  return [...new Map(provable).values()];
}

/** True where others have dialled all addresses that strangers could reach us at, and have reached none. */
export function isRefuted(known: readonly OwnAddress[], dialled: ReadonlyMap<string, boolean>): boolean {
  const verdicts = provableAddresses(known).map((address) => dialled.get(formatAddress(address)));
  return verdicts.length > 0 && verdicts.every((isReached) => isReached === false);
}

/**
 * What was found out. Strangers who come unasked to the host of our router come by the ports that it maps: all of them
 * are mapped, or none.
 */
function foundOut(facts: OwnFacts): OwnAddress[] {
  const { found, reachability } = facts;
  const isReached = (host: string): boolean =>
    reachability.inRoutingTables && reachability.observed.some((one) => one.host === host);
  return found.map((one) => {
    const byPeers = one.source === 'mapped' && one.verifiedBy === null && isReached(one.address.host);
    return { ...one, verifiedBy: verifiedBy(facts, one.address, byPeers ? 'peers' : one.verifiedBy) };
  });
}

/**
 * All addresses that are known, the best first. An address that others see is that of our record network: at the same
 * host our QUIC port is reached too where strangers reach the node as it is, and otherwise nobody knows.
 */
export function knownAddresses(facts: OwnFacts): OwnAddress[] {
  const { quic, fallbackHost, interfaces, reachability } = facts;
  const found = foundOut(facts);
  const at = (host: string): Address => ({ host, port: quic.port });
  if (!isEveryInterface(quic.host)) return [{ address: quic, source: 'configured', verifiedBy: null }, ...found];
  const own = interfaces.filter((host) => ipScope(host) > IP_SCOPE.link);
  const observed = reachability.observed
    .filter(({ host }) => own.length === 0 || ipScope(host) !== IP_SCOPE.loopback)
    .map(({ host }): OwnAddress => {
      const source = own.includes(host) ? sourceOfOwn(host) : 'observed';
      const address = at(host);
      return { address, source, verifiedBy: verifiedBy(facts, address, reachability.inRoutingTables ? 'peers' : null) };
    });
  // Where the router says which of its ports is ours, it is not another one.
  const isMapped = (host: string): boolean =>
    found.some(({ source, address }) => source === 'mapped' && address.host === host);
  const seen = observed.filter(({ source, address }) => source !== 'observed' || !isMapped(address.host));
  const known = [...seen, ...found];
  const isSeen = known.some(isTold);
  const stated: OwnAddress[] =
    isSeen || fallbackHost === '' ? [] : [{ address: at(fallbackHost), source: 'configured', verifiedBy: null }];
  const near = own.map((host): OwnAddress => ({ address: at(host), source: sourceOfOwn(host), verifiedBy: null }));
  const all = [...known, ...stated, ...near];
  return all.some(isTold) ? all : [...all, { address: at('127.0.0.1'), source: 'lan', verifiedBy: null }];
}

/** Whether an address is told to others: what a router or a NAT shows is so only once somebody has reached us there. */
export function isTold({ source, verifiedBy }: OwnAddress): boolean {
  return verifiedBy !== null || (source !== 'observed' && source !== 'mapped');
}

/** Addresses to tell others, each once, the best first. */
export function toldAddresses(known: readonly OwnAddress[]): OwnAddress[] {
  const seen = new Set<string>();
  return known.filter(isTold).filter(({ address }) => {
    const name = formatAddress(address);
    return !seen.has(name) && seen.add(name);
  });
}

export interface NodeAddresses {
  /** `quic://host:port`, best first. */
  readonly endpoints: readonly string[];
  /** Those of them that are ports of our router. */
  readonly mapped: readonly string[];
  readonly natType: number;
  readonly helpers: readonly HelperNode[];
  /** Where this node is met while it has no helper. */
  readonly meeting?: TurnRendezvous;
  /** True where callers may be led here by a TURN server of ours. */
  readonly hasTurn?: true;
}

const NOTHING: NodeAddresses = { endpoints: [], mapped: [], natType: 0, helpers: [] };

/** Whether a change makes a node reachable, or what was told of it wrong. One more helper, or a better guess, does neither. */
function isUrgent(before: NodeAddresses, now: NodeAddresses): boolean {
  const names = ({ helpers }: NodeAddresses): string[] =>
    helpers.map(({ nodeKey, address }) => `${toHex(nodeKey)} ${address}`);
  const helping = new Set(names(now));
  const isFirst = before.helpers.length === 0 && now.helpers.length > 0;
  const places = [before, now].map(({ meeting }) =>
    meeting === undefined ? '' : `${toHex(meeting.publicKey)} ${meeting.host}`,
  );
  return (
    isFirst ||
    places[0] !== places[1] ||
    before.endpoints.join() !== now.endpoints.join() ||
    names(before).some((helper) => !helping.has(helper))
  );
}

function endpointOf(address: Address): string {
  return `${ENDPOINT_SCHEME}${formatAddress(address)}`;
}

interface OwnAddressesOptions {
  /** Host name or address to publish while none has been seen from outside; empty for none. */
  readonly fallbackHost: string;
  /** Whether there is a TURN server that this node may use. */
  readonly hasTurn?: boolean;
}

interface OwnAddressesDependencies {
  readonly records: Pick<RecordNetwork, 'reachability' | 'onReachability'>;
  /** Where the QUIC endpoint listens. */
  readonly quic: () => Address;
  /** The addresses of this machine's interfaces, loopback included. */
  readonly interfaces: () => readonly string[];
}

export class OwnAddresses implements Component {
  readonly #options: OwnAddressesOptions;
  readonly #deps: OwnAddressesDependencies;
  readonly #changes = new Listeners<[isUrgent: boolean]>();
  #unsubscribe: () => void = () => {};
  /** By the part that found them. */
  readonly #found = new Map<string, readonly OwnAddress[]>();
  #dialled: ReadonlyMap<string, boolean> = new Map();
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

  /** The addresses of this moment. */
  current(): NodeAddresses {
    const told = toldAddresses(this.known()).slice(0, MAX_ENDPOINTS);
    const endpoints = told.map(({ address }) => endpointOf(address));
    const mapped = told.filter(({ source }) => source === 'mapped').map(({ address }) => endpointOf(address));
    const natType = natTypeOf(this.#mapping, this.#deps.records.reachability().natType, this.isRefuted);
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

  /** True where others have dialled all addresses that strangers could reach us at, and have reached none. */
  get isRefuted(): boolean {
    return isRefuted(this.known(), this.#dialled);
  }

  /** Takes whether others that dialled back to an address have reached us, by address. */
  dialledBack(verdicts: ReadonlyMap<string, boolean>): void {
    this.#dialled = verdicts;
    this.#compare();
  }

  /** To be called when this machine may have other addresses than a moment ago. */
  look(): void {
    this.#compare();
  }

  /** Everything that is known of where this node may be reached, the best first. */
  known(): readonly OwnAddress[] {
    const { records, quic, interfaces } = this.#deps;
    return knownAddresses({
      ...this.#options,
      quic: quic(),
      interfaces: interfaces(),
      reachability: records.reachability(),
      found: [...this.#found.values()].flat(),
      dialled: this.#dialled,
    });
  }

  /**
   * Takes what a part has found out, in place of what it said before.
   * @param by names the part
   */
  found(by: string, addresses: readonly OwnAddress[]): void {
    this.#found.set(by, addresses);
    this.#compare();
  }

  /** Takes the helpers that this node is connected to, the best first; at most 4 of them are told to others. */
  helpedBy(helpers: readonly HelperNode[]): void {
    this.#helpers = helpers;
    this.#compare();
  }

  /** Takes where those find this node whom no helper introduces; null where nobody is looked for. */
  metAt(meeting: TurnRendezvous | null): void {
    this.#meeting = meeting;
    this.#compare();
  }

  /** Takes what was found to stand before a port of ours. */
  seenBehind(mapping: NatMapping): void {
    this.#mapping = mapping;
    this.#compare();
  }

  /**
   * Calls back when `current` gives something else: with true where others reach us by what is new, or no more by what
   * they know. Returns how to stop.
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
