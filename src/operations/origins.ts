/** Operations on local addresses of remote agents. */
import { Type } from 'typebox';
import { MAX_ORIGINS } from '../foundation/domain/services.ts';
import { MAX_PORT } from '../foundation/domain/tunnels.ts';
import { declare } from './declare.ts';
import { AidParams, AidText, closed, Id, Ok, Timestamp } from './schemas.ts';
import { AccessToken, LastError, REACH_ERRORS } from './tunnels.ts';

const OriginView = Type.Object({
  id: Type.String(),
  local_aid: AidText,
  remote_aid: AidText,
  url: Type.String({ description: 'Local programs reach the agent over HTTP here.' }),
  is_served: Type.Boolean({ description: 'False if its port was in use when the daemon started.' }),
  opened_at: Timestamp,
  active_conns: Type.Integer({ minimum: 0 }),
  served: Type.Integer({ minimum: 0, description: 'HTTP requests, and HTTP/2 connections, since the start.' }),
  last_error: LastError,
});

export const originOperations = declare(
  { tag: 'Tunnels' },
  {
    originOpen: {
      summary: 'Creates a local HTTP address for a remote agent. Returns an existing one with status 200.',
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
            description: '0: the system chooses a port, which then stays.',
          }),
        ),
      }),
      output: OriginView,
      status: 201,
      otherStatuses: [200],
      heartbeat: 'local_aid',
      errors: [
        ...REACH_ERRORS.filter((code) => code !== 'relay_required'),
        'access_pending',
        'port_in_use',
        'quota_exceeded',
      ],
      tool: {
        name: 'svc_origin_open',
        description: 'Create a local HTTP address for an agent.',
        rename: { remote_aid: 'aid' },
        idempotent: true,
      },
    },

    originList: {
      summary: 'Lists the local addresses.',
      route: 'GET /origins',
      output: Type.Object({ origins: Type.Array(OriginView, { maxItems: MAX_ORIGINS }) }),
    },

    originClose: {
      summary: 'Closes a local address and its connections.',
      route: 'DELETE /origins/{id}',
      params: closed({ id: Id }),
      output: Ok,
      errors: ['not_found'],
    },
  },
);
