/** Operations on updates of svcd. */
import { Type } from 'typebox';
import { UPDATE_STATES } from '../foundation/domain/updates.ts';
import { declare } from './declare.ts';
import { closed, nullable, oneOf, Timestamp } from './schemas.ts';

const COMMON = { tag: 'Updates' };

export const UpdateStatusView = Type.Object({
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

export const updateOperations = declare(COMMON, {
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
