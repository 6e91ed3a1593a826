/** Addresses of DHT nodes: IPv4 and a port, six bytes on the wire, and how far their ids are from a target. */
import { isIPv4 } from 'node:net';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { IP_SCOPE, type IpScope, ipScope, ipv4Scope, ipv4Text, subscriberOf } from '../../foundation/ip.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import type { Path } from '../transport/path.ts';

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
