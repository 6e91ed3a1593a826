/** The gateway: what a remote agent serves over HTTP, below a path of this API. */
import { Type } from 'typebox';
import { declareStreams } from './declare.ts';
import { AidParams, AidText, closed } from './schemas.ts';
import { CALL_ERRORS, REACH_ERRORS } from './tunnels.ts';

const GATEWAY = {
  summary:
    "Calls a remote agent's service, streaming both ways; WebSocket and other upgrades pass through. `Svc-Local-Aid` names the agent here that calls, `Svc-Access-Token` carries what it presents; this node where it is left out.",
  methods: 'ANY',
  params: closed({ aid: AidText, path: Type.String({ description: 'Handed on as it was written.' }) }),
  // The remote agent's affair.
  query: Type.Object({}),
  produces: '*/*',
  permission: 'peer',
  errors: [
    ...REACH_ERRORS.filter((code) => code !== 'local_aid_required'),
    ...CALL_ERRORS,
    'tunnels_only',
    'bad_evidence',
    'not_found',
  ],
  tag: 'Gateway',
} as const;

export const gatewayStreams = declareStreams(GATEWAY, {
  gateway: { path: '/aid/{aid}/{path*}' },

  gatewayRoot: {
    summary: 'Redirects to the same path with a slash at its end.',
    path: '/aid/{aid}',
    params: AidParams,
    produces: 'text/plain',
    status: 307,
    errors: [],
  },
});
