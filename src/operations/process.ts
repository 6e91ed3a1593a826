/** Operations on the daemon process: log, stop, restart. */
import { Type } from 'typebox';
import { UPDATE_STATES } from '../foundation/domain/updates.ts';
import { LOG_LEVELS } from '../foundation/log.ts';
import { MAX_LOG_LINES } from '../foundation/recent-log.ts';
import { declare } from './declare.ts';
import { AnyObject, closed, nullable, oneOf, Timestamp } from './schemas.ts';

// Operations on updates of svcd.

const UPDATE = { tag: 'Updates' };

const UpdateStatusView = Type.Object({
  current_version: Type.String(),
  latest_version: nullable(Type.String({ description: 'Null before the first answer of the registry.' })),
  update_available: Type.Boolean(),
  state: oneOf(UPDATE_STATES, {
    description: 'The current step, or the result of the last update or check.',
  }),
  last_check_at: nullable(Timestamp),
  last_error: Type.Optional(Type.String({ description: 'Why the last update failed or was rolled back.' })),
  managed: Type.Boolean({ description: 'Runs as a system service that can be updated.' }),
  warning: Type.Optional(Type.String({ description: 'Why updates are not available here.' })),
});

export const updateOperations = declare(UPDATE, {
  updateStatus: {
    summary: 'Shows the newest known release and the result of the last update. Asks the registry only with `check`.',
    route: 'GET /update/status',
    query: closed({
      check: Type.Optional(Type.Boolean({ default: false, description: 'Ask the npm registry first.' })),
    }),
    output: UpdateStatusView,
  },

  updateApply: {
    summary:
      'Checks for a newer release and installs it, if svcd runs as a system service. `GET /update/status` shows the result.',
    route: 'POST /update/apply',
    body: Type.Object({}, { additionalProperties: true, description: 'Ignored.' }),
    ignoresBody: true,
    output: Type.Object({
      message: Type.String(),
      warning: Type.Optional(Type.String({ description: 'Why nothing will be installed.' })),
    }),
    status: 202,
  },
});

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
