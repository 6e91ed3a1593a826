/** Options and results of an eclipse attack on keys of the record network. */
import type { Behavior } from './hostile-node.ts';

export interface AttackOptions {
  /** Seed of all node positions. */
  readonly seed: number;
  readonly honest: number;
  /** Number of honest nodes that share one address. */
  readonly atSharedAddress: number;
  /** Fraction of the other honest nodes in networks of the attacker, 0 to 1. */
  readonly inHostileNetworks: number;
  /** Number of the attacker's addresses, and of their /16 networks. */
  readonly addresses: number;
  readonly networks: number;
  /**
   * Total number of addresses and ports that the attacker tries; nodes per address near one key; nodes near one key.
   */
  readonly tries: number;
  readonly perAddress: number;
  readonly perKey: number;
  /** Nodes near each key that ping every honest node, and how many honest nodes each other hostile node pings. */
  readonly pingers: number;
  readonly pingsEach: number;
  /**
   * Distance of hostile nodes from the key for a stealthy attack, as a multiple of the distance of the eighth honest
   * node. Then there is one hostile node per network, and no other. 0: as near as possible.
   */
  readonly standoff: number;
  /** Whether hostile nodes report a wrong external address to joining nodes. */
  readonly reportsWrongAddress: boolean;
  /**
   * Start of the attack: before most honest nodes start, when all have joined, or when the first records are stored.
   */
  readonly startsAt: 'first' | 'joined' | 'stored';
  /** Behaviors to test in sequence. For each one, a record is written under each key and read `reads` times. */
  readonly behaviors: readonly Partial<Behavior>[];
  readonly reads: number;
}

export const DEFAULT_ATTACK: AttackOptions = {
  seed: 1,
  honest: 200,
  atSharedAddress: 20,
  inHostileNetworks: 0,
  addresses: 4096,
  networks: 16,
  tries: 131_072,
  perAddress: 1,
  perKey: 160,
  pingers: 48,
  pingsEach: 2,
  standoff: 0,
  reportsWrongAddress: false,
  startsAt: 'joined',
  behaviors: [{}],
  reads: 60,
};

export interface AttackFigures {
  /** How many of the 16 nodes closest to the mailbox, the service name and the agent are hostile. */
  readonly hostileClosest: readonly number[];
  /**
   * Fraction of reads that succeeded among the nodes at the shared address, before the attack; null if the attack came
   * first.
   */
  readonly atSharedAddress: number | null;
  /** Fraction of reads that found the record, by behavior. */
  readonly reads: (Behavior & { readonly mailbox: number; readonly service: number; readonly endpoints: number })[];
  /** Fraction of hostile nodes in the routing tables of honest nodes. */
  readonly hostileInTables: number;
  /** Honest nodes in the routing tables of others. */
  readonly inTables: number;
}

/** Results of an attack through lent ports of four helpers, by a machine with one address. */
export interface LentAttackFigures {
  /** Hosts of hostile nodes in the routing table of the victim: through lent ports, and then directly too. */
  readonly throughLentPorts: readonly string[];
  readonly directly: readonly string[];
  /** The source that the victim counts for a stranger at the address of a helper, and for the helper itself. */
  readonly sourceOfBorrower: string;
  readonly sourceOfHelper: string;
}
