/** Where the nodes of the matrix are, and what is promised of each pair of places. */
import type { NatKind } from '../support/lab/nat.ts';

interface Place {
  /** Routers between the node and the Internet. */
  readonly routers: readonly NatKind[];
  /** It has a public IPv6 address too, behind a firewall. */
  readonly hasIpv6?: true;
  /** Strangers reach it. */
  readonly isOpen?: true;
}

/** By the name that tables show. A node with IPv6 has the worst of routers before its IPv4: only IPv6 makes it better. */
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

/** Every place, in the order of the table. */
export const PLACE_NAMES: readonly PlaceName[] = ['public', 'full', 'cone', 'symmetric', 'double', 'ipv6'];

export function placeOf(name: PlaceName): Place {
  return ALL[name];
}

/** Whether its outer IPv4 port is another one for each destination. */
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

/** How a pair has to connect in the end. */
export function promised({ caller, called }: Pair): 'direct' | 'relay' {
  const haveIpv6 = [caller, called].every((name) => placeOf(name).hasIpv6 === true);
  return [caller, called].every(changesPorts) && !haveIpv6 ? 'relay' : 'direct';
}

/** Whether random ports have to meet: one side's port changes, and a router before the other one lets in only who was written to. */
export function isBirthday({ caller, called }: Pair): boolean {
  const [first, second] = [changesPorts(caller), changesPorts(called)];
  if (first === second) return false;
  return placeOf(first ? called : caller).routers.length > 0 && !(first && placeOf(called).isOpen === true);
}

/** Whether both sides are behind routers that keep a port, so that one packet opens a way. */
export function isConePair({ caller, called }: Pair): boolean {
  return [caller, called].every((name) => placeOf(name).routers.length > 0 && !changesPorts(name));
}

/** Pairs by what is promised of them, for tries of one kind only. */
const GROUPS: Readonly<Record<string, (pair: Pair) => boolean>> = {
  open: ({ called }) => placeOf(called).isOpen === true,
  'from-open': ({ caller, called }) => placeOf(caller).isOpen === true && placeOf(called).isOpen !== true,
  cones: isConePair,
  birthday: isBirthday,
  ipv6: ({ caller, called }) => placeOf(caller).hasIpv6 === true && placeOf(called).hasIpv6 === true,
  relay: (pair) => promised(pair) === 'relay',
};

/**
 * The pairs that names stand for, in the order of the table.
 * @param names of pairs or groups; all where there is none
 * @throws Error for a name that is neither
 */
export function pairsNamed(names: readonly string[]): readonly Pair[] {
  const known = [...Object.keys(GROUPS), ...PAIRS.map(pairName)];
  const stranger = names.find((name) => !known.includes(name));
  if (stranger !== undefined) throw new Error(`${stranger} is none of ${known.join(', ')}`);
  const isMeant = (pair: Pair): boolean =>
    names.some((name) => name === pairName(pair) || GROUPS[name]?.(pair) === true);
  return names.length === 0 ? PAIRS : PAIRS.filter(isMeant);
}
