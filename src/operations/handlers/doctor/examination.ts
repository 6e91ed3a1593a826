/** What an examination asks: other operations of the same daemon, whose answers are what everybody sees. */
import type { operations } from '../../index.ts';
import type { CallContext, Handlers, ResultOf } from '../../operation.ts';

type Operations = typeof operations;

/** What is asked. */
type Asked =
  | 'status'
  | 'configGet'
  | 'debugHost'
  | 'netcheck'
  | 'contacts'
  | 'agentsList'
  | 'agentGet'
  | 'agentProbe'
  | 'updateStatus';

export type OwnAnswer<N extends Asked> = ResultOf<Operations[N]>;

export interface Examination {
  readonly ask: Pick<Handlers<Operations>, Asked>;
  readonly context: CallContext;
  /** Dials some of the nodes that answer in the record network over QUIC: how many, and how many of them are reached. */
  readonly dialSome: () => Promise<{ readonly dialled: number; readonly reached: number }>;
  /** Milliseconds since 1970. */
  readonly now: number;
}
