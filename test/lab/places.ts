/** The places of the matrix, and the promised result for each pair. */
import type { NatKind } from '../support/lab/nat.ts';

interface Place {
  /** Routers between the node and the Internet. */
  readonly routers: readonly NatKind[];
  /** It also has a public IPv6 address behind a firewall. */
  readonly hasIpv6?: true;
  /** Reachable from the Internet. */
  readonly isOpen?: true;
}

/**
 * Places by their name in tables. The IPv6 place has the worst IPv4 routers, so that only IPv6 can improve the result.
 */
export const PLACES = {
  public: { routers: [], isOpen: true },
  full: { routers: ['fullCone'], isOpen: true },
  cone: { routers: ['cone'] },
  symmetric: { routers: ['symmetric'] },
  double: { routers: ['cone', 'cone'] },
  ipv6: { routers: ['symmetric'], hasIpv6: true },
} as const satisfies Record<string, Place>;

export type PlaceName = keyof typeof PLACES;

const ALL: Readonly<Record<PlaceName, Place>> = PLACES;

/** All places in table order. */
export const PLACE_NAMES: readonly PlaceName[] = ['public', 'full', 'cone', 'symmetric', 'double', 'ipv6'];

export function placeOf(name: PlaceName): Place {
  return ALL[name];
}

/** True if its external IPv4 port differs per destination. */
export function changesPorts(name: PlaceName): boolean {
  return placeOf(name).routers.some((kind) => kind === 'symmetric');
}

export interface Pair {
  readonly caller: PlaceName;
  readonly called: PlaceName;
}

export function pairName({ caller, called }: Pair): string {
  return `${caller}-${called}`;
}

export const PAIRS: readonly Pair[] = PLACE_NAMES.flatMap((caller) =>
  PLACE_NAMES.map((called) => ({ caller, called })),
);

/** The promised kind of path. */
export function promised({ caller, called }: Pair): 'direct' | 'relay' {
  const haveIpv6 = [caller, called].every((name) => placeOf(name).hasIpv6 === true);
  return [caller, called].every(changesPorts) && !haveIpv6 ? 'relay' : 'direct';
}

/** True if random ports must collide: one side changes its port, and the router of the other side filters by sender. */
export function isBirthday({ caller, called }: Pair): boolean {
  const [first, second] = [changesPorts(caller), changesPorts(called)];
  if (first === second) return false;
  return placeOf(first ? called : caller).routers.length > 0 && !(first && placeOf(called).isOpen === true);
}

/** True if both routers keep ports, so that a single packet opens a path. */
export function isConePair({ caller, called }: Pair): boolean {
  return [caller, called].every((name) => placeOf(name).routers.length > 0 && !changesPorts(name));
}

/** Groups of pairs by promised result. */
const GROUPS: Readonly<Record<string, (pair: Pair) => boolean>> = {
  open: ({ called }) => placeOf(called).isOpen === true,
  'from-open': ({ caller, called }) => placeOf(caller).isOpen === true && placeOf(called).isOpen !== true,
  cones: isConePair,
  birthday: isBirthday,
  ipv6: ({ caller, called }) => placeOf(caller).hasIpv6 === true && placeOf(called).hasIpv6 === true,
  relay: (pair) => promised(pair) === 'relay',
};

/**
 * The pairs that the names select, in table order.
 * @param names pairs or groups; all pairs if empty
 * @throws Error for an unknown name
 */
export function pairsNamed(names: readonly string[]): readonly Pair[] {
  const known = [...Object.keys(GROUPS), ...PAIRS.map(pairName)];
  const stranger = names.find((name) => !known.includes(name));
  if (stranger !== undefined) throw new Error(`${stranger} is none of ${known.join(', ')}`);
  const isMeant = (pair: Pair): boolean =>
    names.some((name) => name === pairName(pair) || GROUPS[name]?.(pair) === true);
  return names.length === 0 ? PAIRS : PAIRS.filter(isMeant);
}
