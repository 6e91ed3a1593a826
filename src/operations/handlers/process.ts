/** Handlers of the operations on the daemon process. */
import { SvcError } from '../../foundation/errors.ts';
import type { RecentLog } from '../../foundation/recent-log.ts';
import type { CallContext, Handlers } from '../operation.ts';
import { LOG_LINES, type processOperations } from '../process.ts';

export interface ProcessHandlerDependencies {
  readonly log: Pick<RecentLog, 'read' | 'lastSeq'>;
  /** The process ID. */
  readonly pid: number;
  /** Stops the process cleanly. */
  readonly stop: (reason: string) => void;
  /** Restarts the process; null if no service manager runs it. */
  readonly restart: (() => void) | null;
}

/** Waits until the response was sent: stopping would interrupt it. */
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
      // A web page must not stop the daemon that serves it.
      if (context.fromPage === true)
        throw new SvcError('forbidden_origin', { message: 'A web page cannot stop the daemon. Use "svc stop".' });
      if (restart !== null)
        throw new SvcError('wrong_state', {
          message: 'svcd runs as a system service, which would restart it. Use "svcd service stop".',
        });
      afterwards(context, () => stop('asked'));
      return { pid };
    },
    nodeRestart: (_input, context) => {
      if (restart === null)
        throw new SvcError('wrong_state', {
          message: 'svcd was started by hand, so it cannot restart itself. Stop it with "svc stop" and start it again.',
        });
      afterwards(context, restart);
      return { pid };
    },
  };
}
