/** Operations on local addresses that are remote agents. */
import { Type } from 'typebox';
import { MAX_ORIGINS } from '../foundation/domain/origins.ts';
import { MAX_PORT } from '../foundation/domain/tunnels.ts';
import { declare } from './declare.ts';
import { AidParams, AidText, closed, Id, Ok, Timestamp } from './schemas.ts';
import { AccessToken, LastError, REACH_ERRORS } from './tunnels.ts';

const OriginView = Type.Object({
  id: Type.String(),
  local_aid: AidText,
  remote_aid: AidText,
  url: Type.String({ description: 'Where any program of this machine speaks HTTP with the agent.' }),
  is_served: Type.Boolean({ description: 'False where its port was taken when the daemon started.' }),
  opened_at: Timestamp,
  active_conns: Type.Integer({ minimum: 0 }),
  served: Type.Integer({ minimum: 0, description: 'Requests, and connections of HTTP/2, since the start.' }),
  last_error: LastError,
});

export const originOperations = declare(
  { tag: 'Tunnels' },
  {
    originOpen: {
      summary: 'Opens a local HTTP address that is a remote agent, or gives the one that stands (status 200).',
      route: 'POST /origins/{aid}',
      params: AidParams,
      body: closed({
        local_aid: Type.Optional(AidText),
        access_token: AccessToken,
        local_port: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: MAX_PORT,
            default: 0,
            description: '0: the system chooses one, which stays the same from then on.',
          }),
        ),
      }),
      output: OriginView,
      status: 201,
      otherStatuses: [200],
      heartbeat: 'local_aid',
      errors: [...REACH_ERRORS.filter((code) => code !== 'relay_required'), 'port_in_use', 'quota_exceeded'],
      tool: {
        name: 'svc_origin_open',
        description: 'Local HTTP address that is an agent.',
        rename: { remote_aid: 'aid' },
        idempotent: true,
      },
    },

    originList: {
      summary: 'Lists the local addresses of remote agents.',
      route: 'GET /origins',
      output: Type.Object({ origins: Type.Array(OriginView, { maxItems: MAX_ORIGINS }) }),
    },

    originClose: {
      summary: 'Closes a local address of a remote agent and its connections.',
      route: 'DELETE /origins/{id}',
      params: closed({ id: Id }),
      output: Ok,
      errors: ['not_found'],
    },
  },
);
