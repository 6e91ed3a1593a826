/** The places of the matrix, and the promised result for each pair. */
import type { LimitKind } from '../support/lab/limits/limits.ts';
import type { NatKind } from '../support/lab/nat.ts';

interface Place {
  /** Routers between the node and the Internet. */
  readonly routers: readonly NatKind[];
  /** The restriction of its network. */
  readonly limit?: LimitKind;
  /** False if no direct path is promised. */
  readonly isDirect?: false;
  /** It also has a public IPv6 address behind a firewall. */
  readonly hasIpv6?: true;
  /** Reachable from the Internet. */
  readonly isOpen?: true;
}

/**
 * Places by their name in tables. The IPv6 place has the worst IPv4 routers, so that only IPv6 can improve the result.
 * Then networks that allow little, see `LimitKind`. Times are 30 seconds.
 */
const PLACES = {
  public: { routers: [], isOpen: true },
  full: { routers: ['fullCone'], isOpen: true },
  cone: { routers: ['cone'] },
  symmetric: { routers: ['symmetric'] },
  double: { routers: ['cone', 'cone'] },
  ipv6: { routers: ['symmetric'], hasIpv6: true },
  'udp-blocked': { routers: [], limit: 'udp-blocked', isDirect: false },
  'tcp-443-only': { routers: [], limit: 'tcp-443-only', isDirect: false },
  'connect-proxy': { routers: [], limit: 'connect-proxy', isDirect: false },
  'proxy-password': { routers: [], limit: 'proxy-password', isDirect: false },
  'proxy-password-rotating': { routers: [], limit: 'proxy-password-rotating', isDirect: false },
  inspected: { routers: [], limit: 'inspected', isDirect: false },
  'quic-dropped': { routers: [], limit: 'quic-dropped', isDirect: false },
  'five-tuple-30s': { routers: ['cone'], limit: 'five-tuple' },
  'ipv6-nat64': { routers: [], limit: 'ipv6-nat64', isDirect: false },
  'ipv6-only': { routers: [], limit: 'ipv6-only', isDirect: false },
  'mtu-1200': { routers: [], limit: 'mtu-1200', isDirect: false },
  'idle-cut-30s': { routers: [], limit: 'idle-cut', isDirect: false },
  portal: { routers: ['cone'], limit: 'portal' },
} as const satisfies Record<string, Place>;

export type PlaceName = keyof typeof PLACES;

const ALL: Readonly<Record<PlaceName, Place>> = PLACES;

/** All places in table order, and those with a restricted network. */
export const PLACE_NAMES = Object.keys(PLACES) as readonly PlaceName[];
const LIMITED_NAMES = PLACE_NAMES.filter((name) => placeOf(name).limit !== undefined);

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

function isLimited({ caller, called }: Pair): boolean {
  return LIMITED_NAMES.includes(caller) || LIMITED_NAMES.includes(called);
}

const ALL_PAIRS: readonly Pair[] = PLACE_NAMES.flatMap((caller) => PLACE_NAMES.map((called) => ({ caller, called })));
/** The pairs of a run without names: behind NATs and firewalls that allow UDP. */
const PAIRS = ALL_PAIRS.filter((pair) => !isLimited(pair));

/** The promised kind of path. `any`: a connection. */
export function promised({ caller, called }: Pair): 'direct' | 'relay' | 'any' {
  if ([caller, called].some((name) => placeOf(name).isDirect === false)) return 'any';
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
export function isConePair(pair: Pair): boolean {
  const { caller, called } = pair;
  return !isLimited(pair) && [caller, called].every((name) => placeOf(name).routers.length > 0 && !changesPorts(name));
}

/** The group of all pairs with a network that allows little. */
const LIMITED = 'places';

/** Groups of the other pairs by promised result. */
const GROUPS: Readonly<Record<string, (pair: Pair) => boolean>> = {
  open: ({ called }) => placeOf(called).isOpen === true,
  'from-open': ({ caller, called }) => placeOf(caller).isOpen === true && placeOf(called).isOpen !== true,
  cones: isConePair,
  birthday: isBirthday,
  ipv6: ({ caller, called }) => placeOf(caller).hasIpv6 === true && placeOf(called).hasIpv6 === true,
  relay: (pair) => promised(pair) === 'relay',
};

/** True if a name selects a pair: its own name, a group, or with `places` and the name of a place limited networks. */
function isNamed(name: string, pair: Pair): boolean {
  if (name === pairName(pair)) return true;
  if (!isLimited(pair)) return GROUPS[name]?.(pair) === true;
  return name === LIMITED || pair.caller === name || pair.called === name;
}

/**
 * The pairs that the names select, in table order.
 * @param names pairs or groups; without names the pairs of networks that allow UDP
 * @throws Error for an unknown name
 */
export function pairsNamed(names: readonly string[]): readonly Pair[] {
  const known = [...Object.keys(GROUPS), LIMITED, ...LIMITED_NAMES, ...ALL_PAIRS.map(pairName)];
  const stranger = names.find((name) => !known.includes(name));
  if (stranger !== undefined) throw new Error(`${stranger} is none of ${known.join(', ')}`);
  return names.length === 0 ? PAIRS : ALL_PAIRS.filter((pair) => names.some((name) => isNamed(name, pair)));
}
