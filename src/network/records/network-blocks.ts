/**
 * The blocks that addresses are bought in. Addresses of one block are easily had together, so nodes of one block count
 * as one where it matters who is near a key: in tables, in searches, in answers, and in the votes of a read.
 */
import type { Address } from '../../foundation/address.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { hostKeyOf, nodeScope } from './node-address.ts';

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
