/** The way to a node by a TURN server, of ours or of its own: the last one. */
import { SvcError } from '../../foundation/errors.ts';
import type { Dialer, NodePlace } from '../peers/dial.ts';
import type { PunchInitiator } from './punch-initiator.ts';
import { othersHelping } from './reachable-helpers.ts';
import type { TurnRendezvousClient } from './turn-rendezvous-client.ts';

/** Head start of all other ways, milliseconds. */
export const TURN_DELAY_MS = 2_000;
/** Time to reach a node by a TURN server, milliseconds. */
export const TURN_TIMEOUT_MS = 15_000;

interface TurnedDependencies {
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  readonly caller: Pick<PunchInitiator, 'turn'>;
  /** For nodes without helpers. */
  readonly knocker: Pick<TurnRendezvousClient, 'mayLead' | 'meet'>;
  /** Whether we have a TURN server. */
  readonly hasTurn: () => boolean;
}

/**
 * Dials by a TURN server, introduced by the first of the node's helpers that does so, or over the record network where it
 * has none.
 */
export function turned({ nodeKey, caller, knocker, hasTurn }: TurnedDependencies): Dialer {
  const helping = (place: NodePlace) => othersHelping(place, nodeKey);
  return {
    kind: 'turn',
    delayMs: () => TURN_DELAY_MS,
    timeoutMs: TURN_TIMEOUT_MS,
    mayLead: (place) => (helping(place).length > 0 ? hasTurn() || place.hasTurn === true : knocker.mayLead(place)),
    dial: async (place, signal) => {
      if (helping(place).length === 0) return await knocker.meet(place, signal);
      let last: unknown = new SvcError('connect_failed');
      for (const helper of helping(place)) {
        try {
          return await caller.turn(place.nodeKey, helper, signal);
        } catch (error) {
          if (signal.aborted) throw error;
          last = error;
        }
      }
      throw last;
    },
  };
}
