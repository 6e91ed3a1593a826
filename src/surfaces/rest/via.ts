/** `/via/{AID}/…` is the API of a remote node, if its remote administration allows it. */
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { remoteAdminStreams } from '../../operations/remote-admin.ts';
import { actingIdentity, type LocalIdentities } from './acting-identity.ts';
import { callRemote, pathBelow, type RemoteCaller } from './remote-call.ts';

export interface ViaDependencies extends LocalIdentities {
  /** Sends calls over links with the purpose `admin`. */
  readonly caller: RemoteCaller;
}

/** Adapts a rejection to remote administration. The error catalog refers to agents. */
function asAdminError(error: unknown): unknown {
  if (!(error instanceof SvcError) || error.code !== 'access_denied') return error;
  return new SvcError('access_denied', {
    message:
      'The remote node does not allow this identity to administer it. Its owner can enable remote administration and allow the AID, or give you a password.',
    cause: error,
  });
}

export function viaHandlers(dependencies: ViaDependencies): StreamHandlers<typeof remoteAdminStreams> {
  const { caller } = dependencies;
  return {
    via: async (exchange) => {
      const { headers, url = '' } = exchange.request;
      const acting = actingIdentity(headers, dependencies);
      const remote = parseAid(String(exchange.input['aid']));
      const target = { caller, ...acting, remote, prefix: `/via/${remote}`, path: pathBelow(url) };
      try {
        await callRemote(exchange, target);
      } catch (error) {
        throw asAdminError(error);
      }
    },
  };
}
