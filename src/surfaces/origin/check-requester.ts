/**
 * Access control of a local address: all local programs, and in a browser the pages of the agent itself and direct
 * navigation. Pages of other sites are rejected, because they would act as the local agent.
 */
import type { IncomingMessage } from 'node:http';
import { isLoopbackHost } from '../../foundation/address.ts';
import { SvcError } from '../../foundation/errors.ts';
import { hostOf, isSameSite, namesManyHosts } from '../rest/host.ts';

/**
 * True for requests of browsers: a browser always states the origin of a request, and no script can remove it. Node's
 * `fetch` states only the mode.
 */
export function isFromBrowser({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-site'] !== undefined;
}

/** Navigation to a page: a link or a typed address. No other page can read the response. */
function isVisit({ method, headers }: IncomingMessage): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers;
  return (method === 'GET' || method === 'HEAD') && mode === 'navigate' && destination === 'document';
}

/** @throws SvcError `invalid_request`, `forbidden_host`, `forbidden_origin`, `access_denied` */
export function checkRequester(request: IncomingMessage): void {
  const { url = '', headers } = request;
  if (!url.startsWith('/') && !(url === '*' && request.method === 'OPTIONS'))
    throw new SvcError('invalid_request', { message: 'A request target must be a path: this is not a proxy.' });
  if (namesManyHosts(request))
    throw new SvcError('invalid_request', { message: 'A request must have exactly one Host header.' });
  // Another site could make its own host name resolve to this address, which would make its pages same-origin.
  const host = hostOf(headers.host ?? '');
  if (host === null || !isLoopbackHost(host)) throw new SvcError('forbidden_host');
  // A service worker outlives this address in the browser, and would respond for the next agent on its port.
  if (headers['service-worker'] !== undefined)
    throw new SvcError('access_denied', { message: 'Pages at a local address cannot install service workers.' });
  const { origin, 'sec-fetch-site': site = 'none' } = headers;
  const isOwn =
    (site === 'none' || site === 'same-origin') && (origin === undefined || isSameSite(origin, headers.host));
  if (!isOwn && !isVisit(request)) throw new SvcError('forbidden_origin');
}
