/** Which webhooks svcd stands in for: those that mean something on this machine or in its network alone. */
import { hostOfUrl, isEveryInterface } from '../../foundation/address.ts';
import { MAX_WEBHOOK_CHARS } from '../../foundation/domain/push.ts';
import { SvcError } from '../../foundation/errors.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import { isPublicHost } from '../../foundation/public-host.ts';

/** Services that give machines in a cloud their credentials, at addresses that look like those of neighbours. */
const METADATA: ReadonlySet<string> = new Set(['100.100.100.200', 'fd00:ec2::254']);

function refused(message: string): SvcError {
  return new SvcError('invalid_request', { message: `The webhook ${message}` });
}

/**
 * True for addresses that a webhook of this machine or its network may have: loopback and private ones, no link-local
 * ones, none of metadata services, none that lead nowhere.
 */
export function isOwnIp(text: string): boolean {
  const ip = canonicalIp(text);
  if (ip === null || METADATA.has(ip)) return false;
  const scope = ipScope(ip);
  return scope === IP_SCOPE.loopback || scope === IP_SCOPE.private;
}

/**
 * The webhook that svcd stands in for; null for one that the other side can reach itself, or that is none: it goes on as
 * it is.
 * @throws SvcError `invalid_request` for one that nobody may have called
 */
export function ownWebhook(text: string): URL | null {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || isPublicHost(url)) return null;
  const host = hostOfUrl(url);
  if (canonicalIp(host) !== null && !isOwnIp(host) && !isEveryInterface(host))
    throw refused('leads to a link-local or special address, which is never called.');
  if (url.username !== '' || url.password !== '')
    throw refused('has a name or a password in its address: say them as credentials of the configuration.');
  if (text.length > MAX_WEBHOOK_CHARS) throw refused(`is over ${MAX_WEBHOOK_CHARS} characters.`);
  return url;
}
