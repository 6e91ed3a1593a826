/** What almost every part of a node uses. */
import type { Clock } from './clock.ts';
import type { Aid } from './identity/aid.ts';
import type { Log } from './log.ts';

export interface NodeParts {
  readonly clock: Clock;
  readonly log: Log;
}

/** For parts that spread their work at random. */
export interface RandomParts extends NodeParts {
  /** A number from 0 up to but not including 1. */
  readonly random: () => number;
}

/** The agents that the owners of local agents know. */
export interface KnownAgents {
  /**
   * True if the owner of a local agent knows `peer`: it is in the access list, has a label, or is a friend in chat. Known
   * agents have priority over strangers.
   */
  readonly isKnown: (aid: Aid, peer: Aid) => boolean;
}

/** The newest delegation of each agent, also of earlier runs. `issuedAt` in Unix seconds. */
export interface DelegationMemory {
  /** 0 if none is known. Older delegations are refused. */
  newest(aid: Aid): number;
  /** @param source the IP address of an accepted caller. Null if this node chose the agent */
  note(aid: Aid, issuedAt: number, source?: string | null): void;
}

/** Sends notes. */
export interface NoteSending {
  send(
    sender: Aid,
    recipient: Aid,
    msgType: number,
    body: Uint8Array,
    signal?: AbortSignal,
  ): Promise<{ readonly delivered: boolean }>;
}
