/** What endpoint records say of where their node is, in short: what says something else than is so has to go out anew. */
import { createHash } from 'node:crypto';
import { toHex } from '../../foundation/bytes.ts';
import type { NodeAddresses } from '../../network/reachability/own-addresses.ts';

/** Characters of a hash: of 128 bits, in base64url. */
const HASH_CHARS = 22;

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, HASH_CHARS);
}

/** Begins with `reachOf` what is said. */
export function endpointDigest(addresses: NodeAddresses): string {
  return reachabilityDigest(addresses) + hashOf(addresses);
}

/** The part of it by which others reach the node; begins with `whereOf` it. What stands before a node is known later. */
export function reachabilityDigest(addresses: NodeAddresses): string {
  const helpers = addresses.helpers.map(({ nodeKey, address }) => [toHex(nodeKey), address]);
  return addressDigest(addresses) + hashOf(helpers);
}

/** The part of it without which nobody reaches the node: more is found out of a node in the seconds after its start. */
export function addressDigest({ endpoints, meeting }: NodeAddresses): string {
  return hashOf([endpoints, meeting ?? null]);
}
