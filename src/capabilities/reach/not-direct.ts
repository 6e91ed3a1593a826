/** Whether punching can connect two nodes, and why a connection is not direct. Pure. */

import { NAT_TYPES, type NatMapping } from '../../foundation/domain/directory.ts';
import type { NotDirectReason } from '../../foundation/domain/reach.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import type { ConnectionView } from '../../network/peers/peer-table.ts';
import { BIRTHDAY_ROUNDS, BIRTHDAY_SPACING_MS } from '../../network/transport/engine-connection.ts';

/** How long a path without a relay is searched for while a relay is in use, in milliseconds. */
export const DIRECT_SEARCH_MS: number = BIRTHDAY_ROUNDS * BIRTHDAY_SPACING_MS;
/** Helpers that must see a node before its ports can be predicted. */
const MIN_PREDICTION_HELPERS = 2;
/** The NAT type that uses a different port for each remote node. */
const SYMMETRIC: number = NAT_TYPES.indexOf('symmetric');

/** Both sides of a path, and the number of helpers that can introduce them. */
export interface Sides {
  readonly ours: NatMapping;
  /** NAT type from the remote node's record. */
  readonly theirs: number;
  readonly helpers: number;
  /** Both nodes have public IPv6 addresses, which no NAT changes. */
  readonly haveIpv6: boolean;
}

export interface Punchable {
  /** Null if one of the NATs is not known. */
  readonly may: boolean | null;
  /** Reason, if punching cannot work. */
  readonly reason: NotDirectReason | null;
}

/** Whether punching can open a path between two nodes. */
export function punchable({ ours, theirs, helpers, haveIpv6 }: Sides): Punchable {
  if (helpers === 0) return { may: false, reason: 'no_helpers' };
  // Strangers can reach this node, so the remote node dials, behind any NAT.
  if (ours === 'open' || haveIpv6) return { may: true, reason: null };
  const symmetric = [ours === 'symmetric', theirs === SYMMETRIC].filter(Boolean).length;
  if (symmetric === 2) return { may: false, reason: 'both_symmetric' };
  if (symmetric === 1 && helpers < MIN_PREDICTION_HELPERS) return { may: false, reason: 'one_helper' };
  return { may: ours === 'unknown' || theirs === 0 ? null : true, reason: null };
}

/** The reason for an indirect path, as a sentence. */
export const NOT_DIRECT_TEXT: Readonly<Record<NotDirectReason, string>> = {
  looking: 'svcd is still looking for a path without a relay.',
  no_helpers: 'The remote node names no helper that could introduce this node.',
  both_symmetric: 'Both NATs use a different port for each node. Only a relay works.',
  no_udp: 'UDP does not work in the network of this machine. A helper carries it over TLS.',
  one_helper: 'One NAT uses a different port for each node, and one helper is not enough.',
  punching_failed: 'The NATs allow punching, but it has not worked yet. svcd will retry.',
  not_reached: 'The node does not respond.',
};

/**
 * Why a connection is not direct; null if it is.
 * @param link the connection in use; null if none could be opened
 * @param now Unix milliseconds
 */
export function notDirectReason(
  link: Pick<ConnectionView, 'path' | 'openedAt'> | null,
  sides: Sides,
  now: number,
): NotDirectReason | null {
  if (link === null) return 'not_reached';
  if (!isRelayed(link.path.kind)) return null;
  if (link.path.kind === 'tls') return 'no_udp';
  const { reason } = punchable(sides);
  return reason ?? (now - link.openedAt < DIRECT_SEARCH_MS ? 'looking' : 'punching_failed');
}
