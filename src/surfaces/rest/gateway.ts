/** The gateway: `/aid/{AID}/…` calls the service of an agent, as this node or as a local agent. */
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { gatewayStreams } from '../../operations/gateway.ts';
import type { StreamExchange, StreamHandlers } from '../../operations/handlers/exchange.ts';
import { actingIdentity, type LocalIdentities } from './acting-identity.ts';
import { isPeerPath } from './peer-path.ts';
import { callRemote, pathBelow, type RemoteCaller } from './remote-call.ts';
import { hasUnreadBody } from './response.ts';

/** Objects of an agent, which its service does not serve. */
const OBJECT_PATH = /^\/cas\/[^/?]+(?:\?|$)/;

/**
 * Browser destinations that are allowed: top-level pages, and requests by scripts of the panel. Scripts, styles and
 * frames are rejected, because they would run in the origin of this API. Other programs send no header.
 */
const DESTINATIONS: ReadonlySet<unknown> = new Set([undefined, 'document', 'empty', 'websocket']);

export interface GatewayDependencies extends LocalIdentities {
  readonly caller: RemoteCaller;
}

/** @throws SvcError `not_found`, `forbidden_origin`, `method_not_allowed` */
function check({ request }: StreamExchange, path: string): void {
  // A path with a different spelling, such as percent-encoding, was not treated as remote content by the gate.
  if (!isPeerPath(request.url)) throw new SvcError('not_found');
  // Browsers send this header for service workers, which could then intercept every request of this origin.
  if (request.headers['service-worker'] !== undefined || !DESTINATIONS.has(request.headers['sec-fetch-dest']))
    throw new SvcError('forbidden_origin');
  if (!OBJECT_PATH.test(path)) return;
  if (request.method === 'GET' || request.method === 'HEAD')
    throw new SvcError('not_found', { message: 'This daemon cannot fetch objects of other agents.' });
  throw new SvcError('method_not_allowed', { details: { allow: 'GET, HEAD' } });
}

export function gatewayHandlers(dependencies: GatewayDependencies): StreamHandlers<typeof gatewayStreams> {
  const { caller } = dependencies;
  return {
    gatewayRoot: (exchange) => {
      check(exchange, '/');
      const { request, response, input } = exchange;
      const query = /\?.*$/s.exec(request.url ?? '')?.[0] ?? '';
      if (hasUnreadBody(request)) response.shouldKeepAlive = false;
      response.writeHead(307, { location: `/aid/${String(input['aid'])}/${query}`, 'content-length': '0' }).end();
    },
    gateway: async (exchange) => {
      const { url = '', headers } = exchange.request;
      const path = pathBelow(url);
      check(exchange, path);
      const acting = actingIdentity(headers, dependencies);
      const remote = parseAid(String(exchange.input['aid']));
      await callRemote(exchange, { caller, ...acting, remote, prefix: `/aid/${remote}`, path });
    },
  };
}
