/** The gateway: `/aid/{AID}/…` is the service of that agent, called as this node or as an agent here. */
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { gatewayStreams } from '../../operations/gateway.ts';
import type { StreamExchange, StreamHandlers } from '../../operations/handlers/exchange.ts';
import { actingFor, type LocalIdentities } from './acting.ts';
import { hasUnreadBody } from './answer.ts';
import { isPeerPath } from './peer-path.ts';
import { callRemote, pathBelow, type RemoteCaller } from './remote-call.ts';

/** Objects of an agent, which are no affair of its service. */
const OBJECT_PATH = /^\/cas\/[^/?]+(?:\?|$)/;

/**
 * What a browser may want here: a page in a window of its own, and what the script of a page of ours reads. Never a
 * script, a style or a part of another page, which would be of the origin of this API. Programs say nothing.
 */
const DESTINATIONS: ReadonlySet<unknown> = new Set([undefined, 'document', 'empty', 'websocket']);

export interface GatewayDependencies extends LocalIdentities {
  readonly caller: RemoteCaller;
}

/** @throws SvcError `not_found`, `forbidden_origin`, `method_not_allowed` */
function check({ request }: StreamExchange, path: string): void {
  // Written otherwise, such as with escapes, it did not pass the gate as remote content.
  if (!isPeerPath(request.url)) throw new SvcError('not_found');
  // A browser asks for workers with this header, and they would see every request of this origin from then on.
  if (request.headers['service-worker'] !== undefined || !DESTINATIONS.has(request.headers['sec-fetch-dest']))
    throw new SvcError('forbidden_origin');
  if (!OBJECT_PATH.test(path)) return;
  if (request.method === 'GET' || request.method === 'HEAD')
    throw new SvcError('not_found', { message: 'This daemon has no way to objects of other agents.' });
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
      const acting = actingFor(headers, dependencies);
      const remote = parseAid(String(exchange.input['aid']));
      await callRemote(exchange, { caller, ...acting, remote, prefix: `/aid/${remote}`, path });
    },
  };
}
