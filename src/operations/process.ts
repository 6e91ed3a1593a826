/** Operations on the process of the daemon: its log, its end, a new start. */
import { Type } from 'typebox';
import { LOG_LEVELS } from '../foundation/log.ts';
import { MAX_LOG_LINES } from '../foundation/recent-log.ts';
import { declare } from './declare.ts';
import { AnyObject, closed, nullable, oneOf, Timestamp } from './schemas.ts';

/** Lines of the log where nothing else is said. */
export const LOG_LINES = 200;

const COMMON = { tag: 'Node' };

const Pid = Type.Integer({ minimum: 0, description: 'Number of the process that ends.' });

export const processOperations = declare(COMMON, {
  nodeLog: {
    summary: 'The newest lines of the log, the oldest of them first; only for programs on this machine.',
    route: 'GET /node/log',
    query: closed({
      level: Type.Optional(oneOf(LOG_LEVELS, { description: 'Nothing less important; `debug` where it is left out.' })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LOG_LINES, default: LOG_LINES })),
      after_seq: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: '`last_seq` of the answer before.' }),
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
      last_seq: Type.Integer({ minimum: 0, description: 'Of the newest line; it begins anew with the daemon.' }),
    }),
    permission: 'local_only',
  },

  nodeStop: {
    summary: 'Ends the daemon; only for programs on this machine, and for no page.',
    route: 'POST /node/stop',
    output: Type.Object({ pid: Pid }),
    permission: 'local_only',
    errors: ['wrong_state'],
  },

  nodeRestart: {
    summary: 'Starts the daemon anew, where it runs as the installed service; only for programs on this machine.',
    route: 'POST /node/restart',
    output: Type.Object({ pid: Pid }),
    permission: 'local_only',
    errors: ['wrong_state'],
  },
});
