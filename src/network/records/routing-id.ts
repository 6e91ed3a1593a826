/**
 * The routing id of a node, which says where it stands in the network: nobody can choose his own. It follows from the
 * address, and of a public one only eight different places do, whatever the port: else one address would take any
 * place that it likes, for ports cost nothing. See docs/decisions/0023-places-cost-addresses.md.
 */
import { blake2b } from '@noble/hashes/blake2.js';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { addressBytes } from './rpc/messages.ts';

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
