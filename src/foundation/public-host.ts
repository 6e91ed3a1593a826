/** Recognizes addresses that are valid for strangers. */
import { hostOfUrl } from './address.ts';
import { canonicalIp, IP_SCOPE, ipScope } from './ip.ts';

/** True if strangers can use the host of a URL: it is neither this machine nor on the LAN. */
export function isPublicHost(url: URL): boolean {
  const host = hostOfUrl(url).replace(/\.$/, '');
  if (canonicalIp(host) !== null) return ipScope(host) === IP_SCOPE.public;
  return host.includes('.') && !/\.(?:localhost|local|lan|internal|home|test|invalid|arpa)$/i.test(host);
}
