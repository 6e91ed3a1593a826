/** Where the nodes of the attacked network stand, and which ports bring an attacker close to a key. The same each time. */
import type { Address } from '../../../src/foundation/address.ts';
import { ipv4Text } from '../../../src/foundation/ip.ts';
import { nodeId } from '../../../src/network/dht/routing-id.ts';
import { Random } from '../random.ts';

/** Public networks that this machine answers for while the test runs. */
const WIDE_NETWORKS = [45, 62, 77, 93, 109, 151, 185, 203] as const;
const FIRST_PORT = 1024;
const PORTS = 0x1_0000 - FIRST_PORT;

/** Shell commands that make all addresses of these networks those of this machine, in a network namespace. */
export const PUBLIC_MACHINE: string = [
  'ip link set lo up',
  ...WIDE_NETWORKS.map((first) => `ip route add local ${first}.0.0.0/8 dev lo`),
].join(' && ');

/** An address with its routing id, under the rule in force. */
export interface Place extends Address {
  readonly id: Uint8Array;
}

export function placeAt(host: string, port: number): Place {
  return { host, port, id: nodeId({ host, port }) };
}

/** The first two bytes of an address. */
export function networkOf({ host }: Address): string {
  return host.split('.', 2).join('.');
}

/** Bytes of a distance that a number holds exactly. */
const DISTANCE_BYTES = 6;

/** How far an id is from a key, from 0 to below 1. */
export function distance(key: Uint8Array, id: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < DISTANCE_BYTES; i++) sum = sum * 256 + ((key[i] ?? 0) ^ (id[i] ?? 0));
  return sum / 256 ** DISTANCE_BYTES;
}

/** The places that are closest to a key, closest first. */
export function closestPlaces<T extends Place>(key: Uint8Array, places: readonly T[], max: number): T[] {
  return places
    .map((place) => ({ place, far: distance(key, place.id) }))
    .sort((a, b) => a.far - b.far)
    .slice(0, max)
    .map(({ place }) => place);
}

/** Different networks of 2^16 addresses, each as its first two bytes in a number. */
function networks(random: Random, count: number, taken: ReadonlySet<number> = new Set()): number[] {
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
  /** How many of them stand behind one address. */
  readonly behindOne: number;
  /** Part of the others that stands in networks of the attacker, from 0 to 1. */
  readonly amongHostile: number;
  readonly hostile: readonly number[];
}

/** Honest nodes stand anywhere; the last ones all behind one address. */
export function honestPlaces({ seed, nodes, behindOne, amongHostile, hostile }: HonestPlan): Place[] {
  const random = new Random(seed);
  const host = (): string => ipv4Text(random.pick(WIDE_NETWORKS) * 2 ** 24 + random.below(2 ** 24));
  const among = (): string => ipv4Text(random.pick(hostile) * 2 ** 16 + random.below(2 ** 16));
  const port = (): number => FIRST_PORT + random.below(PORTS);
  const alone = Array.from({ length: nodes - behindOne }, () =>
    placeAt(random.chance(amongHostile) ? among() : host(), port()),
  );
  const shared = host();
  const first = 30_000;
  return [...alone, ...Array.from({ length: behindOne }, (_, i) => placeAt(shared, first + i))];
}

export interface AttackPlan {
  readonly seed: number;
  readonly addresses: number;
  /** Networks of 2^16 addresses that they come from. */
  readonly networks: number;
  /** Addresses and ports that are tried altogether. */
  readonly tries: number;
  /** Nodes at one address that stand near one key. */
  readonly perAddress: number;
  /** Nodes that stand near one key. */
  readonly perKey: number;
  /** How far from each key they stand at the least: who stands too near stands out. 0 for as near as they can. */
  readonly apart: readonly number[];
  /** Whether all other addresses are used too. */
  readonly crowd: boolean;
}

/** The wide networks of an attacker, each as its first two bytes in a number. */
export function hostileNetworks(plan: Pick<AttackPlan, 'seed' | 'networks' | 'addresses'>): number[] {
  return networks(new Random(plan.seed), Math.min(plan.networks, plan.addresses));
}

/** Addresses of an attacker: as many networks of 256 addresses as there can be in his few wide ones. */
function attackerHosts(plan: AttackPlan): string[] {
  const wide = hostileNetworks(plan);
  return Array.from({ length: plan.addresses }, (_, i) => {
    const network = wide[i % wide.length] ?? 0;
    const nth = Math.floor(i / wide.length);
    return ipv4Text(network * 2 ** 16 + (nth % 256) * 256 + 10 + Math.floor(nth / 256));
  });
}

/** How well a distance fits who wants to stand no nearer than `least`; smaller is better. */
function beyond(far: number, least: number): number {
  return far >= least ? far - least : 1 + least - far;
}

/**
 * The places that an attacker takes: at each address the ports that bring it closest to one of the keys, the closest
 * of each of his networks, and every address that is left at some port.
 */
export function attackPlaces(plan: AttackPlan, keys: readonly Uint8Array[]): Place[] {
  const hosts = attackerHosts(plan);
  const ports = Math.min(PORTS, Math.floor(plan.tries / hosts.length));
  const near = keys.map((): { readonly place: Place; readonly far: number }[] => []);
  const random = new Random(plan.seed + 1);
  for (const host of hosts) {
    const first = random.below(PORTS);
    const tried = Array.from({ length: ports }, (_, i) => placeAt(host, FIRST_PORT + ((first + i) % PORTS)));
    for (const [i, key] of keys.entries()) {
      const best = tried
        .map((place) => ({ place, far: beyond(distance(key, place.id), plan.apart[i] ?? 0) }))
        .sort((a, b) => a.far - b.far);
      near[i]?.push(...best.slice(0, plan.perAddress));
    }
  }
  const chosen = near.flatMap((places) => {
    const byNetwork = Map.groupBy(
      places.sort((a, b) => a.far - b.far),
      ({ place }) => networkOf(place),
    );
    const each = Math.ceil(plan.perKey / byNetwork.size);
    return [...byNetwork.values()].flatMap((group) => group.slice(0, each).map(({ place }) => place));
  });
  const used = new Set(chosen.map(({ host }) => host));
  const left = plan.crowd ? hosts.filter((host) => !used.has(host)) : [];
  const crowd = left.map((host) => placeAt(host, FIRST_PORT + random.below(PORTS)));
  const all = new Map([...chosen, ...crowd].map((place) => [`${place.host}:${place.port}`, place]));
  return [...all.values()];
}

/** Addresses and ports that are tried for phantoms, and how many of those closest to a key are named. */
const PHANTOM_TRIES = 60_000;
const PHANTOMS = 300;

/**
 * Addresses that lead to places near a key; nobody is there.
 * @param blocks the wide networks that they are in; anywhere where there are none
 */
export function phantomsNear(key: Uint8Array, blocks: readonly string[] = []): Place[] {
  const random = new Random(5);
  const inBlock = (block: string): string => `${block}.${random.below(256)}.${random.below(256)}`;
  const anywhere = (): string => ipv4Text(random.pick(WIDE_NETWORKS) * 2 ** 24 + random.below(2 ** 24));
  const some = (tries: number, host: () => string): Place[] =>
    Array.from({ length: tries }, () => placeAt(host(), FIRST_PORT + random.below(PORTS)));
  if (blocks.length === 0) return closestPlaces(key, some(PHANTOM_TRIES, anywhere), PHANTOMS);
  const each = blocks.length;
  return blocks.flatMap((block) =>
    closestPlaces(
      key,
      some(PHANTOM_TRIES / each, () => inBlock(block)),
      PHANTOMS / each,
    ),
  );
}
