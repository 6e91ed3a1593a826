/** Whom to ask how a port of ours is seen from outside. */
import type { Address } from '../../foundation/address.ts';
import { IP_SCOPE, ipScope, subscriberOf } from '../../foundation/ip.ts';

/** A node of the record network, and when it was last heard (Unix milliseconds). */
export interface HeardNode extends Address {
  readonly lastSeen: number;
}

/**
 * Nodes on the Internet, one of each host, the last heard first: several on one host would all see a port alike,
 * whatever stands before it, and one of our own networks does not see it from outside.
 */
export function observersAmong(nodes: readonly HeardNode[], max: number): Address[] {
  const byHost = new Map<string, Address>();
  for (const { host, port } of nodes.toSorted((a, b) => b.lastSeen - a.lastSeen)) {
    const subscriber = subscriberOf(host);
    if (ipScope(host) === IP_SCOPE.public && !byHost.has(subscriber)) byHost.set(subscriber, { host, port });
  }
  return [...byHost.values()].slice(0, max);
}
