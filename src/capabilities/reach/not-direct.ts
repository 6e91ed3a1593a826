/** Whether two nodes can be led together without a relay, and why the way between them is no direct one. Pure. */
import { NAT_TYPES, type NatMapping } from '../../foundation/domain/directory.ts';
import type { NotDirectReason } from '../../foundation/domain/reach.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import type { ConnectionView } from '../../network/links/views.ts';
import { BIRTHDAY_ROUNDS, BIRTHDAY_SPACING_MS } from '../../network/reach/client-pool.ts';

/** A way without a relay is looked for so long beside a relay, milliseconds. */
export const LOOKING_MS: number = BIRTHDAY_ROUNDS * BIRTHDAY_SPACING_MS;
/** So many helpers have to see a node for ports to be guessed. */
const WITNESSES = 2;
/** The NAT type of who has another port for each other node. */
const SYMMETRIC: number = NAT_TYPES.indexOf('symmetric');

/** The two sides of a way, and how many nodes can introduce them to each other. */
export interface Sides {
  readonly ours: NatMapping;
  /** NAT type of the other node's record. */
  readonly theirs: number;
  readonly helpers: number;
  /** Both have public IPv6 addresses, which no NAT changes. */
  readonly haveIpv6: boolean;
}

export interface Punchable {
  /** Null where it is not known what stands before one of them. */
  readonly may: boolean | null;
  /** Where it may not. */
  readonly reason: NotDirectReason | null;
}

/** Whether a way can be punched between two nodes. */
export function punchable({ ours, theirs, helpers, haveIpv6 }: Sides): Punchable {
  if (helpers === 0) return { may: false, reason: 'no_helpers' };
  // Strangers reach us: the other node dials, whatever its port.
  if (ours === 'open' || haveIpv6) return { may: true, reason: null };
  const symmetric = [ours === 'symmetric', theirs === SYMMETRIC].filter(Boolean).length;
  if (symmetric === 2) return { may: false, reason: 'both_symmetric' };
  if (symmetric === 1 && helpers < WITNESSES) return { may: false, reason: 'one_helper' };
  return { may: ours === 'unknown' || theirs === 0 ? null : true, reason: null };
}

/** Why the way is no direct one, as a sentence. */
export const NOT_DIRECT_TEXT: Readonly<Record<NotDirectReason, string>> = {
  looking: 'A way without a relay is still being looked for.',
  no_helpers: 'The other node names no helper that could introduce this one.',
  both_symmetric: 'Both NATs use another port for each node: only a relay leads there.',
  one_helper: 'One NAT uses another port for each node, and one helper is too few.',
  punching_failed: 'The NATs allow it, but no hole could be opened yet: it is tried again later.',
  not_reached: 'The node does not answer at all.',
};

/**
 * Why a connection is no direct one; null where it is.
 * @param link the one that is used; null where none could be made
 * @param now Unix milliseconds
 */
export function whyNotDirect(
  link: Pick<ConnectionView, 'path' | 'openedAt'> | null,
  sides: Sides,
  now: number,
): NotDirectReason | null {
  if (link === null) return 'not_reached';
  if (!isRelayed(link.path.kind)) return null;
  const { reason } = punchable(sides);
  return reason ?? (now - link.openedAt < LOOKING_MS ? 'looking' : 'punching_failed');
}
