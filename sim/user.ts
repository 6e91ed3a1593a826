/** Users of one capability: their actions, and the checks of the results. */
import type { Random } from '../test/support/random.ts';
import type { Agent } from './agent.ts';
import type { SimulatedNode } from './node.ts';
import type { Schedule } from './schedule.ts';

/** The world as users see it. */
export interface Surroundings {
  readonly schedule: Schedule;
  readonly random: Random;
  readonly agents: readonly Agent[];
  readonly nodes: readonly SimulatedNode[];
  /** Notes or texts that one action sends. */
  readonly burst: number;
  /** Adds a line to the timeline. */
  readonly note: (text: string) => void;
  /** Reports that a guarantee was broken. */
  readonly violate: (guarantee: string, text: string) => void;
  /** Runs an operation. Null if it failed in a way that faults explain. */
  readonly attempt: <T>(what: string, work: () => Promise<T>) => Promise<T | null>;
  /** True if nothing has been wrong for this time, milliseconds, and the nodes of the agents have run since then. */
  readonly isCalm: (ms: number, ...agents: readonly Agent[]) => boolean;
  /** The faults that were active after a time, with their duration after it. Both in milliseconds. */
  faultsSince(at: number): readonly { readonly kind: string; readonly ms: number }[];
}

export interface Users {
  readonly name: string;
  /** How often they act, relative to others. */
  readonly weight: number;
  /** One action of an agent whose node runs. */
  act(agent: Agent): Promise<void>;
  /** Checks everything after the network has healed. */
  audit(): Promise<void>;
  figures(): Readonly<Record<string, number>>;
}
