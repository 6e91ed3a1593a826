/** The input of the checks: results of other operations of the same daemon. */
import type { operations } from '../../index.ts';
import type { CallContext, Handlers, ResultOf } from '../../operation.ts';

type Operations = typeof operations;

/** The operations that the checks use. */
type Asked =
  | 'status'
  | 'configGet'
  | 'debugHost'
  | 'netcheck'
  | 'contacts'
  | 'addressBookGet'
  | 'agentsList'
  | 'agentGet'
  | 'agentProbe'
  | 'hookList'
  | 'updateStatus';

export type OwnAnswer<N extends Asked> = ResultOf<Operations[N]>;

export interface Examination {
  readonly ask: Pick<Handlers<Operations>, Asked>;
  readonly context: CallContext;
  /**
   * Dials nodes of the record network over QUIC. Returns how many were dialed and how many answered, and whether only
   * packets that are too short for QUIC pass.
   */
  readonly dialSome: () => Promise<{ readonly dialled: number; readonly reached: number; readonly isNarrow: boolean }>;
  /** Milliseconds since 1970. */
  readonly now: number;
}
