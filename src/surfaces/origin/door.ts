/**
 * Who may ask at a local address of a remote agent: every program of this machine, and in a browser the pages of the
 * agent itself and a person who goes there. Not the pages of others, which would act as the agent here.
 */
import type { IncomingMessage } from 'node:http';
import { isLoopbackHost } from '../../foundation/address.ts';
import { SvcError } from '../../foundation/errors.ts';
import { hostOf, isSameSite, namesManyHosts } from '../rest/host.ts';

/** True for what a browser sends: each says where a request comes from, and no script can take that away. Node's `fetch` says only how. */
export function isFromBrowser({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-site'] !== undefined;
}

/** A person goes to a page: a link or an address, which shows itself and tells nobody what it says. */
function isVisit({ method, headers }: IncomingMessage): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers;
  return (method === 'GET' || method === 'HEAD') && mode === 'navigate' && destination === 'document';
}

/** @throws SvcError `invalid_request`, `forbidden_host`, `forbidden_origin`, `access_denied` */
export function checkVisitor(request: IncomingMessage): void {
  const { url = '', headers } = request;
  if (!url.startsWith('/') && !(url === '*' && request.method === 'OPTIONS'))
    throw new SvcError('invalid_request', { message: 'The target of a request is a path: this is no proxy.' });
  if (namesManyHosts(request)) throw new SvcError('invalid_request', { message: 'A request has one Host header.' });
  // A name that another site's owner lets point here would make its pages those of this address.
  const host = hostOf(headers.host ?? '');
  if (host === null || !isLoopbackHost(host)) throw new SvcError('forbidden_host');
  // A service worker outlives this address in the browser, and would answer for the next agent at its port.
  if (headers['service-worker'] !== undefined)
    throw new SvcError('access_denied', { message: 'Pages at a local address cannot install service workers.' });
  const { origin, 'sec-fetch-site': site = 'none' } = headers;
  const isOwn =
    (site === 'none' || site === 'same-origin') && (origin === undefined || isSameSite(origin, headers.host));
  if (!isOwn && !isVisit(request)) throw new SvcError('forbidden_origin');
}
