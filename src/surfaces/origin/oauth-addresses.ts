/**
 * Translates OAuth URLs (RFC 9728) of a server that is known by another address. A client compares the metadata with
 * the address that it uses, and follows the URL in the challenge.
 */
import { isLoopbackHost } from '../../foundation/address.ts';
import { isObject, readJson } from '../../foundation/json.ts';

/** Metadata path of a protected resource. The path of the resource follows it. */
export const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';
/** Other metadata about token issuers: RFC 8414 and OpenID Connect Discovery. */
const ISSUER_METADATA = /^\/\.well-known\/(?:oauth-authorization-server|openid-configuration)(?:\/|$)/;

/** Largest metadata that is read, bytes. */
export const MAX_METADATA_BYTES: number = 256 * 1024;

/** True for a path of OAuth metadata. Paths with dot segments lead elsewhere. */
export function isMetadataPath(pathname: string): boolean {
  if (URL.parse(pathname, 'http://localhost')?.pathname !== pathname) return false;
  return (
    pathname === RESOURCE_METADATA || pathname.startsWith(`${RESOURCE_METADATA}/`) || ISSUER_METADATA.test(pathname)
  );
}

function urlOf(value: unknown): URL | null {
  return typeof value === 'string' && /^https?:\/\//i.test(value) ? URL.parse(value) : null;
}

/** Replaces every string in a value. */
function mapped(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((one) => mapped(one, change));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, mapped(one, change)]));
}

/**
 * Metadata in which the server has the address that the client uses.
 * @param change translates a URL of the server
 * @returns the unchanged text if it contains no URL of the server's machine
 */
export function withOwnAddresses(text: string, change: (url: URL) => string): string {
  const metadata = readJson(text);
  if (!isObject(metadata)) return text;
  const own = urlOf(metadata['resource'] ?? metadata['issuer']);
  if (own === null || !isLoopbackHost(own.hostname)) return text;
  const after = mapped(metadata, (one) => {
    const url = urlOf(one);
    return url !== null && url.origin === own.origin ? change(url) : one;
  });
  return JSON.stringify(after);
}

/** A `WWW-Authenticate` header whose metadata URL uses the address of the client. Other URLs do not change. */
export function withOwnChallenge(header: string, change: (url: URL) => string): string {
  return header.replace(/(\bresource_metadata=")([^"]*)"/i, (all, name: string, value: string) => {
    const url = urlOf(value);
    return url === null || !isLoopbackHost(url.hostname) || !isMetadataPath(url.pathname)
      ? all
      : `${name}${change(url)}"`;
  });
}
