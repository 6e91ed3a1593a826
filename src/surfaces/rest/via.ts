/** `/via/{AID}/…` is the API of that node, as far as its remote administration lets us. */
import type { IncomingHttpHeaders } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import type { StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { remoteAdminStreams } from '../../operations/remote-admin.ts';
import { VIA_HEADERS } from '../../operations/via-headers.ts';
import { callRemote, pathBelow, type RemoteCaller } from './remote-call.ts';

export interface ViaDependencies {
  /** Calls over links of purpose `admin`. */
  readonly caller: RemoteCaller;
  /** The node's own identity. */
  readonly nodeAid: Aid;
  /** @throws SvcError `not_found` where it is no identity of this daemon */
  readonly requireLocal: (aid: Aid) => void;
}

function single(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
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
  const { caller, nodeAid, requireLocal } = dependencies;
  return {
    via: async (exchange) => {
      const { headers, url = '' } = exchange.request;
      const named = single(headers, VIA_HEADERS.localAid);
      const local = named === undefined ? nodeAid : parseAid(named);
      if (local !== nodeAid) requireLocal(local);
      const remote = parseAid(String(exchange.input['aid']));
      const accessToken = single(headers, VIA_HEADERS.accessToken);
      const target = { caller, local, remote, prefix: `/via/${remote}`, path: pathBelow(url), accessToken };
      try {
        await callRemote(exchange, target);
      } catch (error) {
        throw asRefusal(error);
      }
    },
  };
}
