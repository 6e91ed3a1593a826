/** Addresses of DHT nodes: IPv4 and a port, six bytes on the wire, and how far their ids are from a target. */

import { createHash } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { blake2b } from '@noble/hashes/blake2.js';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { IP_SCOPE, type IpScope, ipScope, ipv4Scope, ipv4Text, subscriberOf } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import type { Path } from '../transport/path.ts';

/** The tag of a network. Each of its datagrams begins with it, and a datagram of another network gets no answer. */

/** Bytes of a network's tag. */
export const NETWORK_TAG_BYTES = 8;

/** The public network has the empty name. */
export function networkTag(network: string): Uint8Array {
  const hash = createHash('sha256').update(`svcd/network/${network}\0`).digest();
  return new Uint8Array(hash.subarray(0, NETWORK_TAG_BYTES));
}

/** Bytes of a packed address. */
export const PACKED_ADDRESS_BYTES = 6;

/** How far the address of a node reaches; `none` for what is no IPv4 address, as all nodes of the DHT have one. */
export function nodeScope(host: string): IpScope {
  return isIPv4(host) ? ipScope(host) : IP_SCOPE.none;
}

/** Who a peer is to our quotas and votes: its IP address; on one machine, each port is a node. */
export function hostKeyOf(address: Address): string {
  return nodeScope(address.host) === IP_SCOPE.loopback ? formatAddress(address) : subscriberOf(address.host);
}

/** The same of a node that asks over a connection. */
export function sourceKeyOf({ source, remote }: Path): string {
  return ipScope(source) === IP_SCOPE.loopback ? formatAddress(remote) : subscriberOf(source);
}

/** Host keys of the nodes on this machine: a loopback address and a port. */
const HERE = /^(?:127\.[\d.]+|\[::1\]):\d+$/;
const LOOPBACK = '127.0.0.1';

/** The holder of a quota that a host key stands for, as `hostKeyOf` or `sourceKeyOf`. Nodes of the record network are all strangers. */
export function hostHolder(hostKey: string): QuotaHolder {
  return { node: hostKey, source: HERE.test(hostKey) ? LOOPBACK : hostKey, named: false };
}

/** The bytes of addresses, one after the other. */
export function packAddresses(addresses: readonly Address[]): Uint8Array {
  const packed = new Uint8Array(addresses.length * PACKED_ADDRESS_BYTES);
  addresses.forEach(({ host, port }, i) => {
    const at = i * PACKED_ADDRESS_BYTES;
    host.split('.').forEach((byte, j) => {
      packed[at + j] = Number(byte);
    });
    packed[at + 4] = port >> 8;
    packed[at + 5] = port & 0xff;
  });
  return packed;
}

/** Six bytes of an IPv4 address and a port, least significant byte of the port first. */
export function addressBytes({ host, port }: Address): Uint8Array {
  return Uint8Array.of(...host.split('.').map(Number), port & 0xff, port >> 8);
}

/** Addresses of packed bytes, impossible ones left out; null where the length is wrong or there are more than `max`. */
export function unpackAddresses(packed: Uint8Array, max: number): Address[] | null {
  if (packed.length % PACKED_ADDRESS_BYTES !== 0 || packed.length / PACKED_ADDRESS_BYTES > max) return null;
  const view = new DataView(packed.buffer, packed.byteOffset, packed.length);
  const addresses: Address[] = [];
  for (let at = 0; at < packed.length; at += PACKED_ADDRESS_BYTES) {
    const ip = view.getUint32(at);
    const port = view.getUint16(at + 4);
    if (port !== 0 && ipv4Scope(ip) !== IP_SCOPE.none) addresses.push({ host: ipv4Text(ip), port });
  }
  return addresses;
}

/** Compares how far two ids are from a target, by XOR: below 0 where `a` is the closer. */
export function compareDistance(target: Uint8Array, a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < target.length; i++) {
    const t = target[i] ?? 0;
    const difference = (t ^ (a[i] ?? 0)) - (t ^ (b[i] ?? 0));
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Bytes of a distance that a number holds exactly. */
const DISTANCE_PREFIX_BYTES = 6;

/** How far an id is from a target, by XOR, in units that leave the last bytes out: to compare how dense nodes stand. */
export function distancePrefix(target: Uint8Array, id: Uint8Array): number {
  let distance = 0;
  for (let i = 0; i < DISTANCE_PREFIX_BYTES; i++) distance = distance * 256 + ((target[i] ?? 0) ^ (id[i] ?? 0));
  return distance;
}

/** The `max` nodes whose ids are closest to a target, closest first. */
export function closestTo<T extends { readonly id: Uint8Array }>(
  target: Uint8Array,
  nodes: readonly T[],
  max: number,
): T[] {
  return nodes
    .map((node) => ({ node, distance: distancePrefix(target, node.id) }))
    .sort((a, b) => a.distance - b.distance || compareDistance(target, a.node.id, b.node.id))
    .slice(0, max)
    .map(({ node }) => node);
}

/**
 * The routing id of a node, which says where it stands in the network: nobody can choose his own. It follows from the
 * address, and of a public one only eight different places do, whatever the port: else one address would take any
 * place that it likes, for ports cost nothing. See docs/decisions/0023-places-cost-addresses.md.
 */

/** Places that the ports of one public address lead to; a power of two. */
export const PLACES_PER_ADDRESS = 8;
/** Leading bytes of an id that the place decides: two nodes that have them in common are nowhere told apart. */
const PLACE_BYTES = 20;

/** Length of a routing id. */
export const ROUTING_ID_BYTES = 32;

function hashOf(host: string, port: number): Uint8Array {
  return blake2b(addressBytes({ host, port }), { dkLen: ROUTING_ID_BYTES });
}

/** Ids that are remembered: each datagram from a node and each search near it asks for its id, which takes longer than all else. */
const MAX_REMEMBERED_IDS = 4096;
const remembered = new LruCache<string, Uint8Array>({ maxEntries: MAX_REMEMBERED_IDS });

/** As `computedId`, from memory where it can. Whoever gets one may keep it and change it. */
function routingId(host: string, port: number): Uint8Array {
  const name = formatAddress({ host, port });
  const known = remembered.peek(name);
  if (known !== undefined) return copyOf(known);
  const id = computedId(host, port);
  remembered.set(name, id);
  return copyOf(id);
}

/** In memory of its own: the engine keeps ids for as long as it knows a node. */
function copyOf(id: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(id.length);
  copy.set(id);
  return copy;
}

function computedId(host: string, port: number): Uint8Array {
  const own = hashOf(host, port);
  // In one's own network addresses are as cheap as ports, and many nodes on one machine are no attack.
  if (ipScope(host) !== IP_SCOPE.public) return own;
  // No node listens at ports so low: what they hash to names the places.
  const place = hashOf(host, (own.at(-1) ?? 0) % PLACES_PER_ADDRESS);
  own.set(place.subarray(0, PLACE_BYTES));
  return own;
}

/** The routing id of a node. */
export function nodeId({ host, port }: Address): Uint8Array {
  return routingId(host, port);
}

/**
 * The blocks that addresses are bought in. Addresses of one block are easily had together, so nodes of one block count
 * as one where it matters who is near a key: in tables, in searches, in answers, and in the votes of a read.
 */

/** The /16 of an IPv4 address. */
function blockOfHost(host: string): string {
  return host.slice(0, host.indexOf('.', host.indexOf('.') + 1));
}

/** The block that a node stands for; null where many nodes are no attack: on one machine, in one's own network. */
export function blockOf({ host }: Address, isOwnHost: (host: string) => boolean): string | null {
  return nodeScope(host) !== IP_SCOPE.public || isOwnHost(host) ? null : blockOfHost(host);
}

/** Whose word an answer is, where several have to say the same: that of a block of public addresses. */
export function voterOf(address: Address): string {
  return nodeScope(address.host) === IP_SCOPE.public ? blockOfHost(address.host) : hostKeyOf(address);
}

/** Those who come first of their block in the order given, then the others; `max` of them. Looks at no more than it needs: it runs for every answer. */
export function apartFirst<T extends Address>(
  nodes: readonly T[],
  isOwnHost: (host: string) => boolean,
  max: number = nodes.length,
): T[] {
  const taken = new Set<string>();
  const apart: T[] = [];
  const crowd: T[] = [];
  for (const node of nodes) {
    if (apart.length >= max) break;
    const block = blockOf(node, isOwnHost);
    if (block !== null && taken.has(block)) crowd.push(node);
    else {
      if (block !== null) taken.add(block);
      apart.push(node);
    }
  }
  return [...apart, ...crowd].slice(0, max);
}

/** Who leaves a full row of the table for a node: one of several of a block, where none of the node's own block is there. */
export function leavingFor<T extends Address>(
  newcomer: Address,
  row: readonly T[],
  isOwnHost: (host: string) => boolean,
): T | null {
  const blocks = row.map((node) => blockOf(node, isOwnHost));
  const block = blockOf(newcomer, isOwnHost);
  if (block !== null && blocks.includes(block)) return null;
  return row.findLast((_, i) => blocks[i] !== null && blocks.indexOf(blocks[i] ?? null) < i) ?? null;
}
