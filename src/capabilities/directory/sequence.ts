/** What the network already holds of an agent decides how it is published. Pure. */
import { equalBytes } from '../../foundation/bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import { decodeEndpointsPayload } from '../../foundation/records/payloads.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';

/** Sequence numbers above it leave no room to count on: only a newer delegation helps. */
const MAX_SEQ: number = Number.MAX_SAFE_INTEGER - 2 ** 32;

/** What we know of ourselves. */
export interface OwnState {
  readonly nodeKey: Uint8Array;
  /** Unix seconds of the delegation that we act with. */
  readonly issuedAt: number;
  /** The last sequence number that we gave out. */
  readonly seq: number;
  /** That of the endpoint record that was acknowledged last; 0 where there was none. */
  readonly publishedSeq: number;
}

/**
 * `clear`: ours will be the newest. `behind`: it holds a higher number, `ours` where our own node
 * made it (a backup was restored), otherwise the agent runs elsewhere. `superseded`: it holds a
 * record under a newer delegation, which no number beats.
 */
export type SequenceStanding =
  | { readonly kind: 'clear' }
  | { readonly kind: 'behind'; readonly seq: number; readonly ours: boolean }
  | { readonly kind: 'superseded' };

/** Compares the endpoint record that the network holds with our own state. */
export function standing(held: SignedRecord | null, own: OwnState): SequenceStanding {
  if (held === null || held.delegation.issuedAt < own.issuedAt) return { kind: 'clear' };
  if (held.delegation.issuedAt > own.issuedAt) return { kind: 'superseded' };
  const payload = decodeEndpointsPayload(held.payload);
  const ours = payload !== null && equalBytes(payload.nodeKey, own.nodeKey);
  // A number that we gave out and whose acknowledgement was lost is ours. From another node, an equal
  // number already means that the agent runs there: the later timestamp would win in turns.
  const behind = ours ? held.seq > own.seq : held.seq >= own.publishedSeq;
  return behind ? { kind: 'behind', seq: held.seq, ours } : { kind: 'clear' };
}

/** @throws SvcError `stale_sequence` where there is no number left above `seq` */
export function checkRoomAbove(seq: number): void {
  if (seq <= MAX_SEQ) return;
  throw new SvcError('stale_sequence', {
    message:
      'The network holds a record of this agent with the highest sequence number. If you did not publish it, the operational key was stolen: register the agent with a newer delegation to another key.',
  });
}

export function supersededError(): SvcError {
  return new SvcError('stale_sequence', {
    message:
      'The network holds a record of this agent under a newer delegation: its key was changed elsewhere. Register the agent here with the newest delegation.',
  });
}
