/** The way to a node by a relay: what is left where nothing else leads there, and sooner there than a punched one. */
import { SvcError } from '../../foundation/errors.ts';
import type { Dialler, NodePlace } from '../links/dial.ts';
import type { QuicConnection } from '../quic/types.ts';
import type { Caller } from './caller.ts';
import { othersHelping } from './reachable-helpers.ts';

/** Head start of all ways without a relay, milliseconds. */
export const RELAY_DELAY_MS = 1_000;
/** Time to reach a node by a relay of any of its helpers, milliseconds. */
export const RELAY_TIMEOUT_MS = 10_000;

interface RelayedDependencies {
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  readonly caller: Pick<Caller, 'relay'>;
  /** Told where a relay leads to a node, so that a better way is looked for. */
  readonly reached: (place: NodePlace) => void;
}

/** Dials by a relay: the first of the node's helpers that has room. */
export function relayed({ nodeKey, caller, reached }: RelayedDependencies): Dialler {
  const helping = (place: NodePlace) => othersHelping(place, nodeKey);
  return {
    kind: 'relay',
    delayMs: RELAY_DELAY_MS,
    timeoutMs: RELAY_TIMEOUT_MS,
    mayLead: (place) => helping(place).length > 0,
    dial: async (place, signal) => {
      let last: unknown = new SvcError('connect_failed');
      for (const helper of helping(place)) {
        try {
          const connection: QuicConnection = await caller.relay(place.nodeKey, helper, signal);
          reached(place);
          return connection;
        } catch (error) {
          if (signal.aborted) throw error;
          last = error;
        }
      }
      throw last;
    },
  };
}
