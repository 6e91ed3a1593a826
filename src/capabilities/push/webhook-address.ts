/** Webhooks that svcd replaces, because they are only reachable on this machine or in its network. */
import { hostOfUrl, isEveryInterface, isPublicHost } from '../../foundation/address.ts';
import { MAX_WEBHOOK_CHARS } from '../../foundation/domain/push.ts';
import { SvcError } from '../../foundation/errors.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';

/** Cloud metadata services that hand out credentials, at addresses that look private. */
const METADATA: ReadonlySet<string> = new Set(['100.100.100.200', 'fd00:ec2::254']);

function refused(message: string): SvcError {
  return new SvcError('invalid_request', { message: `The webhook ${message}` });
}

/**
 * True for the addresses that a webhook may have: loopback and private. Link-local addresses, metadata services and
 * unusable addresses are excluded.
 */
export function isLocalIp(text: string): boolean {
  const ip = canonicalIp(text);
  if (ip === null || METADATA.has(ip)) return false;
  const scope = ipScope(ip);
  return scope === IP_SCOPE.loopback || scope === IP_SCOPE.private;
}

/**
 * The webhook that svcd replaces; null if the remote server can reach the URL itself, or if it is not a URL. Then it
 * stays unchanged.
 * @throws SvcError `invalid_request` for a forbidden address
 */
export function localWebhook(text: string): URL | null {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || isPublicHost(url)) return null;
  const host = hostOfUrl(url);
  if (canonicalIp(host) !== null && !isLocalIp(host) && !isEveryInterface(host))
    throw refused('leads to a link-local or special address, which svcd never calls.');
  if (url.username !== '' || url.password !== '')
    throw refused('has a user name or a password in its URL. Put them into the credentials of the push configuration.');
  if (text.length > MAX_WEBHOOK_CHARS) throw refused(`is longer than ${MAX_WEBHOOK_CHARS} characters.`);
  return url;
}
