/** Addresses of DHT nodes: IPv4 and a port, six bytes on the wire, and the routing id that follows from them. */
import { isIPv4 } from 'node:net';
import peer from 'dht-rpc/lib/peer.js';
import type { SocketAddress } from '../quic/types.ts';

/** Bytes of a packed address. */
export const PACKED_ADDRESS_BYTES = 6;

/** Where an address makes sense: nowhere, on one machine, in one private network, everywhere. */
export const SCOPE = { none: 0, loopback: 1, private: 2, public: 3 } as const;
export type Scope = (typeof SCOPE)[keyof typeof SCOPE];

function scopeOfOctets(a: number, b: number): Scope {
  if (a === 0 || a >= 224) return SCOPE.none;
  if (a === 127) return SCOPE.loopback;
  const isPrivate =
    a === 10 ||
    (a === 172 && b >= 16 && b < 32) ||
    (a === 192 && b === 168) ||
    (a === 169 && b === 254) ||
    (a === 100 && b >= 64 && b < 128);
  return isPrivate ? SCOPE.private : SCOPE.public;
}

/** How far an IPv4 address reaches; `none` for any other text, multicast and the like. */
export function scopeOf(host: string): Scope {
  if (!isIPv4(host)) return SCOPE.none;
  const [a = 0, b = 0] = host.split('.', 2).map(Number);
  return scopeOfOctets(a, b);
}

/** `host:port`, the identity of a node in tables and caches. */
export function addressKey(address: SocketAddress): string {
  return `${address.host}:${address.port}`;
}

/** Whose share of our storage and rates a peer spends: its IP address; on one machine, each port is a node. */
export function publisherOf(address: SocketAddress): string {
  return scopeOf(address.host) === SCOPE.loopback ? addressKey(address) : address.host;
}

/** The routing id of a node: nobody can choose his own. */
export function nodeId(address: SocketAddress): Uint8Array {
  return peer.id(address.host, address.port);
}

/** The bytes of addresses, one after the other. */
export function packAddresses(addresses: readonly SocketAddress[]): Uint8Array {
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

/** Addresses of packed bytes, impossible ones left out; null where the length is wrong or there are more than `max`. */
export function unpackAddresses(packed: Uint8Array, max: number): SocketAddress[] | null {
  if (packed.length % PACKED_ADDRESS_BYTES !== 0 || packed.length / PACKED_ADDRESS_BYTES > max) return null;
  const addresses: SocketAddress[] = [];
  for (let at = 0; at < packed.length; at += PACKED_ADDRESS_BYTES) {
    const [a = 0, b = 0, c, d, high = 0, low = 0] = packed.subarray(at, at + PACKED_ADDRESS_BYTES);
    const port = high * 256 + low;
    if (port !== 0 && scopeOfOctets(a, b) !== SCOPE.none) addresses.push({ host: `${a}.${b}.${c}.${d}`, port });
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

function distancePrefix(target: Uint8Array, id: Uint8Array): number {
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
