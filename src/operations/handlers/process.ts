/** The handlers of the operations on the process of the daemon. */
import { SvcError } from '../../foundation/errors.ts';
import type { RecentLog } from '../../foundation/recent-log.ts';
import type { CallContext, Handlers } from '../operation.ts';
import { LOG_LINES, type processOperations } from '../process.ts';

export interface ProcessHandlerDependencies {
  readonly log: Pick<RecentLog, 'read' | 'lastSeq'>;
  /** Number of this process. */
  readonly pid: number;
  /** Ends it cleanly. */
  readonly stop: (reason: string) => void;
  /** Has it started anew; null where nobody runs it who would. */
  readonly restart: (() => void) | null;
}

/** Does it once the answer has left: what ends would cut it off. */
function afterwards(context: CallContext, act: () => void): void {
  if (context.onAnswered === undefined) act();
  else context.onAnswered(act);
}

export function processHandlers({
  log,
  pid,
  stop,
  restart,
}: ProcessHandlerDependencies): Handlers<typeof processOperations> {
  return {
    nodeLog: ({ level = 'debug', limit = LOG_LINES, after_seq = 0 }) => ({
      lines: log.read(level, limit, after_seq),
      last_seq: log.lastSeq,
    }),
    nodeStop: (_input, context) => {
      // The panel has no button for it: nothing in a browser is to end the daemon that serves it.
      if (context.fromPage === true)
        throw new SvcError('forbidden_origin', { message: 'No page may end the daemon. Use "svc stop".' });
      if (restart !== null)
        throw new SvcError('wrong_state', {
          message: 'svcd runs as the installed service, which would start it again. Use "svcd service stop".',
        });
      afterwards(context, () => stop('asked'));
      return { pid };
    },
    nodeRestart: (_input, context) => {
      if (restart === null)
        throw new SvcError('wrong_state', {
          message: 'svcd was started by hand: nobody starts it again. End it with "svc stop", and start it as before.',
        });
      afterwards(context, restart);
      return { pid };
    },
  };
}
