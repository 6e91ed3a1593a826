/** What this node knows of where it may be reached, and what of it is worth telling others. Pure. */
import { isIPv4 } from 'node:net';
import { type Address, formatAddress, isEveryInterface } from '../../foundation/address.ts';
import type { AddressSource, AddressVerifier } from '../../foundation/domain/reach.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Reachability } from '../records/types.ts';
import { FIRST_MAPPED_PORT } from '../transport/ports.ts';

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
