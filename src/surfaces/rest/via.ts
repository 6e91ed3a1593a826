/** `/via/{AID}/…` is the API of that node, as far as its remote administration lets us. */
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { remoteAdminStreams } from '../../operations/remote-admin.ts';
import { actingFor, type LocalIdentities } from './acting.ts';
import { callRemote, pathBelow, type RemoteCaller } from './remote-call.ts';

export interface ViaDependencies extends LocalIdentities {
  /** Calls over links of purpose `admin`. */
  readonly caller: RemoteCaller;
}

/** What a refusal means here: the catalogue speaks of agents. */
function asRefusal(error: unknown): unknown {
  if (!(error instanceof SvcError) || error.code !== 'access_denied') return error;
  return new SvcError('access_denied', {
    message:
      'The remote node does not let this identity administer it. Its owner can switch remote administration on and allow the AID, or give you a password.',
    cause: error,
  });
}

export function viaHandlers(dependencies: ViaDependencies): StreamHandlers<typeof remoteAdminStreams> {
  const { caller } = dependencies;
  return {
    via: async (exchange) => {
      const { headers, url = '' } = exchange.request;
      const acting = actingFor(headers, dependencies);
      const remote = parseAid(String(exchange.input['aid']));
      const target = { caller, ...acting, remote, prefix: `/via/${remote}`, path: pathBelow(url) };
      try {
        await callRemote(exchange, target);
      } catch (error) {
        throw asRefusal(error);
      }
    },
  };
}
