/** Operations on updates of svcd itself. */
import { Type } from 'typebox';
import { UPDATE_STATES } from '../foundation/domain/updates.ts';
import { declare } from './operation.ts';
import { closed, NONE, nullable, oneOf, Timestamp } from './schemas.ts';

const UPDATE = { params: NONE, query: NONE, body: NONE, heartbeat: false, tag: 'Updates' } as const;

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

export const updateOperations = declare({
  updateStatus: {
    ...UPDATE,
    summary:
      'Shows the newest release that is known and how the last update ended; asks the registry only with `check`.',
    method: 'GET',
    path: '/update/status',
    query: closed({
      check: Type.Optional(Type.Boolean({ default: false, description: 'Ask the npm registry first.' })),
    }),
    output: UpdateStatusView,
    permission: 'read',
    errors: [],
  },

  updateApply: {
    ...UPDATE,
    summary:
      'Looks for a newer release and, in the installed service, puts it in place; `GET /update/status` says how it ends.',
    method: 'POST',
    path: '/update/apply',
    body: Type.Object({}, { additionalProperties: true, description: 'Ignored.' }),
    ignoresBody: true,
    output: Type.Object({
      message: Type.String(),
      warning: Type.Optional(Type.String({ description: 'Why nothing will be installed.' })),
    }),
    status: 202,
    permission: 'write',
    errors: [],
  },
});
