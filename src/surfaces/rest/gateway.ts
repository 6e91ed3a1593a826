/** The gateway: `/aid/{AID}/…` calls the service of an agent, as this node or as a local agent. */

import type { IncomingHttpHeaders } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import type { gatewayStreams } from '../../operations/gateway.ts';
import type { StreamExchange, StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { remoteAdminStreams } from '../../operations/remote-admin.ts';
import { VIA_HEADERS } from '../../operations/via-headers.ts';
import { isPeerPath } from './panel-path.ts';
import { callRemote, pathBelow, type RemoteCaller } from './remote-call.ts';
import { hasUnreadBody } from './response.ts';

// `/via/{AID}/…` is the API of a remote node, if its remote administration allows it.

interface ViaDependencies extends LocalIdentities {
  /** Sends calls over links with the purpose `admin`. */
  readonly caller: RemoteCaller;
}

/**
 * Adapts a rejection to remote administration. The error catalog refers to agents.
 * @param asking the identity that the remote node rejected
 */
function asAdminError(error: unknown, asking: Aid): unknown {
  if (!(error instanceof SvcError) || error.code !== 'access_denied') return error;
  return new SvcError('access_denied', {
    message: `The remote node does not allow ${asking} to administer it. Run there: svc admin on && svc admin allow ${asking}. Or use its password (--via-password).`,
    details: { ...error.details, aid: asking },
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
        throw asAdminError(error, acting.local);
      }
    },
  };
}

// The identity with which a request goes to a remote node. Its headers may name a local agent and an access token.

export interface LocalIdentities {
  /** The node's own identity, used if no agent is named. */
  readonly nodeAid: Aid;
  /** Reads an AID or a label. @throws SvcError `bad_aid`, `ambiguous_label` */
  readonly agent: (text: string) => Aid;
  /** @throws SvcError `not_found` if it is not an agent of this daemon */
  readonly requireLocal: (aid: Aid) => void;
}

/** The caller and the access token that it presents to the remote access list. */
interface ActingIdentity {
  readonly local: Aid;
  readonly accessToken: string | undefined;
}

function single(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** @throws SvcError `bad_aid`, `ambiguous_label`, `not_found` */
export function actingIdentity(
  headers: IncomingHttpHeaders,
  { nodeAid, agent, requireLocal }: LocalIdentities,
): ActingIdentity {
  const named = single(headers, VIA_HEADERS.localAid);
  const local = named === undefined ? nodeAid : agent(named);
  if (local !== nodeAid) requireLocal(local);
  return { local, accessToken: single(headers, VIA_HEADERS.accessToken) };
}

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
