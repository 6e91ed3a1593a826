/** Positions of the nodes in the attacked network, and ports that bring an attacker close to a key. Deterministic. */
import type { Address } from '../../../src/foundation/address.ts';
import { ipv4Text } from '../../../src/foundation/ip.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import { Random } from '../random.ts';

/** Public networks whose addresses this machine uses during the test. */
const WIDE_NETWORKS = [45, 62, 77, 93, 109, 151, 185, 203] as const;
const FIRST_PORT = 1024;
const PORTS = 0x1_0000 - FIRST_PORT;

/** Shell commands that make all addresses of these networks local, in a network namespace. */
export const PUBLIC_MACHINE: string = [
  'ip link set lo up',
  ...WIDE_NETWORKS.map((first) => `ip route add local ${first}.0.0.0/8 dev lo`),
].join(' && ');

/** An address with the routing id that follows from it. */
export interface Position extends Address {
  readonly id: Uint8Array;
}

export function positionAt(host: string, port: number): Position {
  return { host, port, id: nodeId({ host, port }) };
}

/** The first two bytes of an address. */
export function networkOf({ host }: Address): string {
  return host.split('.', 2).join('.');
}

/** Bytes of a distance that a number represents exactly. */
const DISTANCE_BYTES = 6;

/** Distance of an id from a key, from 0 up to, but not including, 1. */
export function distance(key: Uint8Array, id: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < DISTANCE_BYTES; i++) sum = sum * 256 + ((key[i] ?? 0) ^ (id[i] ?? 0));
  return sum / 256 ** DISTANCE_BYTES;
}

/** The positions closest to a key, closest first. */
export function closestPositions<T extends Position>(key: Uint8Array, positions: readonly T[], max: number): T[] {
  return positions
    .map((position) => ({ position, far: distance(key, position.id) }))
    .sort((a, b) => a.far - b.far)
    .slice(0, max)
    .map(({ position }) => position);
}

/** Distinct /16 networks, each as its first two bytes in a number. */
function pickNetworks(random: Random, count: number, taken: ReadonlySet<number> = new Set()): number[] {
  const found = new Set<number>();
  while (found.size < count) {
    const network = random.pick(WIDE_NETWORKS) * 256 + random.below(256);
    if (!taken.has(network)) found.add(network);
  }
  return [...found];
}

export interface HonestPlan {
  readonly seed: number;
  readonly nodes: number;
  /** Number of nodes at the shared address. */
  readonly atSharedAddress: number;
  /** Fraction of the other nodes in networks of the attacker, 0 to 1. */
  readonly inHostileNetworks: number;
  readonly hostile: readonly number[];
}

/** Random positions for honest nodes; the last ones share one address. */
export function honestPositions({ seed, nodes, atSharedAddress, inHostileNetworks, hostile }: HonestPlan): Position[] {
  const random = new Random(seed);
  const host = (): string => ipv4Text(random.pick(WIDE_NETWORKS) * 2 ** 24 + random.below(2 ** 24));
  const among = (): string => ipv4Text(random.pick(hostile) * 2 ** 16 + random.below(2 ** 16));
  const port = (): number => FIRST_PORT + random.below(PORTS);
  const alone = Array.from({ length: nodes - atSharedAddress }, () =>
    positionAt(random.chance(inHostileNetworks) ? among() : host(), port()),
  );
  const shared = host();
  const first = 30_000;
  return [...alone, ...Array.from({ length: atSharedAddress }, (_, i) => positionAt(shared, first + i))];
}

export interface AttackPlan {
  readonly seed: number;
  readonly addresses: number;
  /** Number of /16 networks. */
  readonly networks: number;
  /** Total number of addresses and ports to try. */
  readonly tries: number;
  /** Nodes at one address near one key. */
  readonly perAddress: number;
  /** Nodes near one key. */
  readonly perKey: number;
  /** Smallest distance to each key: nodes that are too near are conspicuous. 0: as near as possible. */
  readonly minDistances: readonly number[];
  /** Whether all other addresses are used too. */
  readonly usesAllAddresses: boolean;
}

/** The /16 networks of an attacker, each as its first two bytes in a number. */
export function hostileNetworks(plan: Pick<AttackPlan, 'seed' | 'networks' | 'addresses'>): number[] {
  return pickNetworks(new Random(plan.seed), Math.min(plan.networks, plan.addresses));
}

/** Addresses of an attacker, spread over as many /24 networks as its /16 networks contain. */
function attackerHosts(plan: AttackPlan): string[] {
  const wide = hostileNetworks(plan);
  return Array.from({ length: plan.addresses }, (_, i) => {
    const network = wide[i % wide.length] ?? 0;
    const nth = Math.floor(i / wide.length);
    return ipv4Text(network * 2 ** 16 + (nth % 256) * 256 + 10 + Math.floor(nth / 256));
  });
}

/** Rank of a distance if it should be at least `least`, and close to it; smaller is better. */
function distanceRank(far: number, least: number): number {
  return far >= least ? far - least : 1 + least - far;
}

/**
 * The positions of an attacker: at each address the ports closest to one of the keys, the closest of these in each of
 * its networks, and every unused address at some port.
 */
export function attackPositions(plan: AttackPlan, keys: readonly Uint8Array[]): Position[] {
  const hosts = attackerHosts(plan);
  const ports = Math.min(PORTS, Math.floor(plan.tries / hosts.length));
  const near = keys.map((): { readonly position: Position; readonly far: number }[] => []);
  const random = new Random(plan.seed + 1);
  for (const host of hosts) {
    const first = random.below(PORTS);
    const tried = Array.from({ length: ports }, (_, i) => positionAt(host, FIRST_PORT + ((first + i) % PORTS)));
    for (const [i, key] of keys.entries()) {
      const best = tried
        .map((position) => ({ position, far: distanceRank(distance(key, position.id), plan.minDistances[i] ?? 0) }))
        .sort((a, b) => a.far - b.far);
      near[i]?.push(...best.slice(0, plan.perAddress));
    }
  }
  const chosen = near.flatMap((positions) => {
    const byNetwork = Map.groupBy(
      positions.sort((a, b) => a.far - b.far),
      ({ position }) => networkOf(position),
    );
    const each = Math.ceil(plan.perKey / byNetwork.size);
    return [...byNetwork.values()].flatMap((group) => group.slice(0, each).map(({ position }) => position));
  });
  const used = new Set(chosen.map(({ host }) => host));
  const left = plan.usesAllAddresses ? hosts.filter((host) => !used.has(host)) : [];
  const others = left.map((host) => positionAt(host, FIRST_PORT + random.below(PORTS)));
  const all = new Map([...chosen, ...others].map((position) => [`${position.host}:${position.port}`, position]));
  return [...all.values()];
}

/** Addresses and ports to try for phantoms, and the number of closest ones to name. */
const PHANTOM_TRIES = 60_000;
const PHANTOMS = 300;

/**
 * Unused addresses whose positions are near a key.
 * @param blocks their /16 networks; empty for any network
 */
export function phantomsNear(key: Uint8Array, blocks: readonly string[] = []): Position[] {
  const random = new Random(5);
  const inBlock = (block: string): string => `${block}.${random.below(256)}.${random.below(256)}`;
  const anywhere = (): string => ipv4Text(random.pick(WIDE_NETWORKS) * 2 ** 24 + random.below(2 ** 24));
  const some = (tries: number, host: () => string): Position[] =>
    Array.from({ length: tries }, () => positionAt(host(), FIRST_PORT + random.below(PORTS)));
  if (blocks.length === 0) return closestPositions(key, some(PHANTOM_TRIES, anywhere), PHANTOMS);
  const each = blocks.length;
  return blocks.flatMap((block) =>
    closestPositions(
      key,
      some(PHANTOM_TRIES / each, () => inBlock(block)),
      PHANTOMS / each,
    ),
  );
}
