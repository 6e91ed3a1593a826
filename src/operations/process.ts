/** Operations on the daemon process: log, stop, restart. */
import { Type } from 'typebox';
import { LOG_LEVELS } from '../foundation/log.ts';
import { MAX_LOG_LINES } from '../foundation/recent-log.ts';
import { declare } from './declare.ts';
import { AnyObject, closed, nullable, oneOf, Timestamp } from './schemas.ts';

/** Default number of log lines. */
export const LOG_LINES = 200;

const COMMON = { tag: 'Node' };

const Pid = Type.Integer({ minimum: 0, description: 'Process ID of the daemon.' });

export const processOperations = declare(COMMON, {
  nodeLog: {
    summary: 'Returns the newest lines of the log, oldest first.',
    route: 'GET /node/log',
    query: closed({
      level: Type.Optional(oneOf(LOG_LEVELS, { description: 'Least important level to return; default `debug`.' })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LOG_LINES, default: LOG_LINES })),
      after_seq: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: '`last_seq` of the previous response.' }),
      ),
    }),
    output: Type.Object({
      lines: Type.Array(
        Type.Object({
          seq: Type.Integer({ minimum: 1 }),
          at: Timestamp,
          level: oneOf(LOG_LEVELS),
          component: nullable(Type.String()),
          message: Type.String(),
          fields: AnyObject,
        }),
      ),
      last_seq: Type.Integer({
        minimum: 0,
        description: 'Number of the newest line. It starts at 1 with each daemon.',
      }),
    }),
    permission: 'local_only',
  },

  nodeStop: {
    summary: 'Stops the daemon. A web page cannot stop it.',
    route: 'POST /node/stop',
    output: Type.Object({ pid: Pid }),
    permission: 'local_only',
    errors: ['wrong_state'],
  },

  nodeRestart: {
    summary: 'Restarts the daemon, if it runs as a system service.',
    route: 'POST /node/restart',
    output: Type.Object({ pid: Pid }),
    permission: 'local_only',
    errors: ['wrong_state'],
  },
});
