/** Addresses of nodes, their routing ids and distances, and the blocks that count once. */

import { createHash } from 'node:crypto';
import { blake2b } from '@noble/hashes/blake2.js';
import { type Address, formatAddress } from '../../foundation/address.ts';
import {
  IP_SCOPE,
  IPV4_BYTES,
  type IpScope,
  ipScope,
  ipv4Number,
  ipv4Scope,
  ipv4ScopeOf,
  ipv4Text,
  subscriberOf,
} from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import type { Path } from '../transport/path.ts';
import { NETWORK_TAG_BYTES } from '../transport/udp-socket.ts';

/* The tag of a network. Its datagrams start with it, and datagrams of other networks get no answer. */

/** The public network has the empty name. */
export function networkTag(network: string): Uint8Array {
  const hash = createHash('sha256').update(`svcd/network/${network}\0`).digest();
  return new Uint8Array(hash.subarray(0, NETWORK_TAG_BYTES));
}

/** Bytes of a packed address. */
export const PACKED_ADDRESS_BYTES = 6;

/** The scope of a node's address; `none` without IPv4, which every node has. */
export function nodeScope(host: string): IpScope {
  return ipv4ScopeOf(host);
}

/** A peer's identity in quotas and votes: its IP address; on this machine, its address and port. */
export function hostKeyOf(address: Address): string {
  return nodeScope(address.host) === IP_SCOPE.loopback ? formatAddress(address) : subscriberOf(address.host);
}

/** The same for a node that is connected. */
export function sourceKeyOf({ source, remote }: Path): string {
  return ipScope(source) === IP_SCOPE.loopback ? formatAddress(remote) : subscriberOf(source);
}

/** Host keys of nodes on this machine: a loopback address and a port. */
const HERE = /^(?:127\.[\d.]+|\[::1\]):\d+$/;
const LOOPBACK = '127.0.0.1';

/** The quota holder of a host key from `hostKeyOf` or `sourceKeyOf`, or a name from `lentSource`. Nodes of the record network count as strangers. */
export function hostHolder(hostKey: string): QuotaHolder {
  return { node: hostKey, source: HERE.test(hostKey) ? LOOPBACK : hostKey, named: false };
}

/** The concatenated bytes of addresses. */
export function packAddresses(addresses: readonly Address[]): Uint8Array {
  const packed = new Uint8Array(addresses.length * PACKED_ADDRESS_BYTES);
  const view = new DataView(packed.buffer);
  addresses.forEach(({ host, port }, i) => {
    view.setUint32(i * PACKED_ADDRESS_BYTES, ipv4Number(host));
    view.setUint16(i * PACKED_ADDRESS_BYTES + IPV4_BYTES, port);
  });
  return packed;
}

/** Six bytes of an IPv4 address and a port, least significant byte of the port first. */
export function addressBytes({ host, port }: Address): Uint8Array {
  const ip = ipv4Number(host);
  return Uint8Array.of(ip >>> 24, ip >>> 16, ip >>> 8, ip, port, port >> 8);
}

/**
 * Addresses in packed bytes, without impossible addresses; null if the length is wrong or there are more than `max`.
 */
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

/** Compares the XOR distances of two ids from a target: below 0 if `a` is closer. */
export function compareDistance(target: Uint8Array, a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < target.length; i++) {
    const t = target[i] ?? 0;
    const difference = (t ^ (a[i] ?? 0)) - (t ^ (b[i] ?? 0));
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The first four bytes of an id as a number: most distances differ there. */
export function headOf(id: Uint8Array): number {
  return (((id[0] ?? 0) << 24) | ((id[1] ?? 0) << 16) | ((id[2] ?? 0) << 8) | (id[3] ?? 0)) >>> 0;
}

/** XOR distance of an id from a target, without its last bytes, for estimates of density. */
export function distancePrefix(target: Uint8Array, id: Uint8Array): number {
  const rest = (((target[4] ?? 0) ^ (id[4] ?? 0)) << 8) | ((target[5] ?? 0) ^ (id[5] ?? 0));
  return ((headOf(target) ^ headOf(id)) >>> 0) * 2 ** 16 + rest;
}

/** A node with its position, and `headOf` of the position if it is known. */
interface Placed {
  readonly id: Uint8Array;
  readonly head?: number;
}

/** The `max` nodes whose ids are closest to a target, closest first. */
export function closestTo<T extends Placed>(target: Uint8Array, nodes: readonly T[], max: number): T[] {
  const head = headOf(target);
  const found: T[] = [];
  const distances: number[] = [];
  for (const node of nodes) {
    const distance = (head ^ (node.head ?? headOf(node.id))) >>> 0;
    let at = found.length;
    for (; at > 0; at--) {
      const before = distances[at - 1] ?? 0;
      if (before < distance) break;
      const other = found[at - 1];
      if (before === distance && other !== undefined && compareDistance(target, other.id, node.id) <= 0) break;
    }
    if (at >= max) continue;
    found.splice(at, 0, node);
    distances.splice(at, 0, distance);
    if (found.length > max) {
      found.pop();
      distances.pop();
    }
  }
  return found;
}

/*
 * The routing id is the position of a node in the network, which no node can choose. It is derived from the address.
 * The ports of a public address lead to only eight positions, or one address could take any position, because ports
 * cost nothing. See docs/decisions/0023-places-cost-addresses.md.
 */

/** Positions of one public address; a power of two. */
export const PLACES_PER_ADDRESS = 8;
/** Leading bytes of an id that the position determines. */
const PLACE_BYTES = 20;

/** Length of a routing id. */
export const ROUTING_ID_BYTES = 32;

function hashOf(host: string, port: number): Uint8Array {
  return blake2b(addressBytes({ host, port }), { dkLen: ROUTING_ID_BYTES });
}

/** Cached ids. Each datagram and search needs ids, and computing them takes longer than everything else. */
const MAX_REMEMBERED_IDS = 4096;
const remembered = new LruCache<string, Uint8Array>({ maxEntries: MAX_REMEMBERED_IDS });

/** As `computedId`, cached. The caller may keep and change the result. */
function routingId(host: string, port: number): Uint8Array {
  const name = formatAddress({ host, port });
  const known = remembered.peek(name);
  if (known !== undefined) return copyOf(known);
  const id = computedId(host, port);
  remembered.set(name, id);
  return copyOf(id);
}

/** In separate memory, because the engine keeps ids as long as it knows a node. */
function copyOf(id: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(id.length);
  copy.set(id);
  return copy;
}

function computedId(host: string, port: number): Uint8Array {
  const own = hashOf(host, port);
  // In local networks addresses are as cheap as ports, and many nodes on one machine are normal.
  if (ipScope(host) !== IP_SCOPE.public) return own;
  // No node listens at such low ports. Their hashes are the positions.
  const place = hashOf(host, (own.at(-1) ?? 0) % PLACES_PER_ADDRESS);
  own.set(place.subarray(0, PLACE_BYTES));
  return own;
}

/** The routing id of a node. */
export function nodeId({ host, port }: Address): Uint8Array {
  return routingId(host, port);
}

/* Addresses are bought in blocks, so the nodes of one block count as one in tables, searches, answers and votes. */

/** The /16 of an IPv4 address. */
function blockOfHost(host: string): string {
  return host.slice(0, host.indexOf('.', host.indexOf('.') + 1));
}

/** The block of a node; null on this machine and in local networks, where many nodes are normal. */
export function blockOf({ host }: Address, isOwnHost: (host: string) => boolean): string | null {
  return nodeScope(host) !== IP_SCOPE.public || isOwnHost(host) ? null : blockOfHost(host);
}

/** The voter of an answer: the block of a public address. */
export function voterOf(address: Address): string {
  return nodeScope(address.host) === IP_SCOPE.public ? blockOfHost(address.host) : hostKeyOf(address);
}

/**
 * The first node of each block in the given order, and the nodes before the last of them whose block has an earlier
 * node. It stops after `max` blocks, because it runs for every answer.
 */
function byBlock<T extends Address>(
  nodes: readonly T[],
  isOwnHost: (host: string) => boolean,
  max: number,
): { readonly apart: T[]; readonly crowd: T[] } {
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
  return { apart, crowd };
}

/** The first node of each block in the given order, then further nodes; at most `max`. */
export function apartFirst<T extends Address>(
  nodes: readonly T[],
  isOwnHost: (host: string) => boolean,
  max: number = nodes.length,
): T[] {
  const { apart, crowd } = byBlock(nodes, isOwnHost, max);
  return [...apart, ...crowd].slice(0, max);
}

/** As `apartFirst` of all nodes, closest to a target first. */
export function closestApart<T extends Address & Placed>(
  target: Uint8Array,
  nodes: readonly T[],
  isOwnHost: (host: string) => boolean,
  max: number,
): T[] {
  // Usually few of the closest nodes share a block.
  const { apart } = byBlock(closestTo(target, nodes, 2 * max), isOwnHost, max);
  if (apart.length >= max) return apart;
  // The insertion of `closestTo` would be slow for all nodes, whose addresses others choose.
  return apartFirst(
    nodes.toSorted((a, b) => compareDistance(target, a.id, b.id)),
    isOwnHost,
    max,
  );
}

/**
 * The node that leaves a full row of the table for a new node: one of several nodes of a block, if the new node's block
 * is missing.
 */
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
