/** The gateway: the HTTP services of remote agents below a path of this API. */
import { Type } from 'typebox';
import { declareStreams } from './declare.ts';
import { AidParams, AidText, closed } from './schemas.ts';
import { CALL_ERRORS, REACH_ERRORS } from './tunnels.ts';

const GATEWAY = {
  summary:
    'Calls the service of a remote agent, with streaming in both directions and WebSocket. `Svc-Local-Aid` names the calling agent (default: this node); `Svc-Access-Token` carries the access token.',
  methods: 'ANY',
  params: closed({ aid: AidText, path: Type.String({ description: 'Forwarded unchanged.' }) }),
  // The remote service defines the query.
  query: Type.Object({}),
  produces: '*/*',
  permission: 'peer',
  errors: [
    ...REACH_ERRORS.filter((code) => code !== 'local_aid_required'),
    ...CALL_ERRORS,
    'access_pending',
    'tunnels_only',
    'bad_evidence',
    'not_found',
  ],
  tag: 'Gateway',
} as const;

export const gatewayStreams = declareStreams(GATEWAY, {
  gateway: { path: '/aid/{aid}/{path*}' },

  gatewayRoot: {
    summary: 'Redirects to the same path with a slash at the end.',
    path: '/aid/{aid}',
    params: AidParams,
    produces: 'text/plain',
    status: 307,
    errors: [],
  },
});
