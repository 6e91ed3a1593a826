/** Operations on updates of svcd itself. */
import { Type } from 'typebox';
import { UPDATE_STATES } from '../foundation/domain/updates.ts';
import { declare } from './declare.ts';
import { closed, nullable, oneOf, Timestamp } from './schemas.ts';

const COMMON = { tag: 'Updates' };

export const UpdateStatusView = Type.Object({
  current_version: Type.String(),
  latest_version: nullable(
    Type.String({ description: 'Null until the registry was asked, and where it could not be.' }),
  ),
  update_available: Type.Boolean(),
  state: oneOf(UPDATE_STATES, {
    description: 'What is under way, or how the last update or look ended.',
  }),
  last_check_at: nullable(Timestamp),
  last_error: Type.Optional(Type.String({ description: 'Why it failed or was rolled back.' })),
  managed: Type.Boolean({ description: 'Runs as the installed service: updates can be applied.' }),
  warning: Type.Optional(Type.String({ description: 'Why there are no updates here.' })),
});

export const updateOperations = declare(COMMON, {
  updateStatus: {
    summary:
      'Shows the newest release that is known and how the last update ended; asks the registry only with `check`.',
    route: 'GET /update/status',
    query: closed({
      check: Type.Optional(Type.Boolean({ default: false, description: 'Ask the npm registry first.' })),
    }),
    output: UpdateStatusView,
  },

  updateApply: {
    summary:
      'Looks for a newer release and, in the installed service, puts it in place; `GET /update/status` says how it ends.',
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
