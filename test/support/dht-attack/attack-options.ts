/** What an attack on the places of keys is like, and what came of it. */
import type { Manner } from './hostile-answers.ts';

export interface AttackOptions {
  /** Decides where everybody stands. */
  readonly seed: number;
  readonly honest: number;
  /** How many of the honest nodes share one address. */
  readonly behindOne: number;
  /** Part of the others that stands in networks of the attacker, from 0 to 1. */
  readonly amongHostile: number;
  /** The attacker's addresses, and the networks of 2^16 that they are in. */
  readonly addresses: number;
  readonly networks: number;
  /** Addresses and ports that he tries altogether; nodes at one address near one key, and near one key in all. */
  readonly tries: number;
  readonly perAddress: number;
  readonly perKey: number;
  /** Nodes near each key that make themselves known to everybody, and how many each of the others does to. */
  readonly callers: number;
  readonly contacts: number;
  /**
   * Where they stand, for who does not want to be seen: at so many times the distance of the eighth honest node, one of
   * each network and nobody else. 0 for as near as they can.
   */
  readonly shy: number;
  /** Whether they tell joining nodes a wrong address as theirs. */
  readonly misplaces: boolean;
  /** When they come: before most honest nodes, when all are there, or when first records are stored. */
  readonly begins: 'first' | 'joined' | 'stored';
  /** How they behave, one after the other: each time a record is written under each key, and read so often. */
  readonly manners: readonly Partial<Manner>[];
  readonly reads: number;
}

export const USUAL_ATTACK: AttackOptions = {
  seed: 1,
  honest: 200,
  behindOne: 20,
  amongHostile: 0,
  addresses: 4096,
  networks: 16,
  tries: 131_072,
  perAddress: 1,
  perKey: 160,
  callers: 48,
  contacts: 2,
  shy: 0,
  misplaces: false,
  begins: 'joined',
  manners: [{}],
  reads: 60,
};

export interface AttackFigures {
  /** How many of the 16 closest nodes of the mailbox, the service name and the agent are hostile. */
  readonly taken: readonly number[];
  /** Part of the reads among and from those behind one address that succeeded before the attack; null where it came first. */
  readonly behindOne: number | null;
  /** Part of the reads that found what was written, by behaviour. */
  readonly reads: (Manner & { readonly mailbox: number; readonly service: number; readonly endpoints: number })[];
  /** Part of the nodes in honest tables that is hostile. */
  readonly hostileInTables: number;
  /** Honest nodes that stand in the tables of others. */
  readonly inTables: number;
}
