/**
 * Addresses of OAuth (RFC 9728) that a server names itself by, where it is known by another address: a client asks
 * whether the metadata is of the server that it talks to, and goes where the challenge says.
 */
import { isLoopbackHost } from '../../foundation/address.ts';
import { isObject, readJson } from '../../foundation/json.ts';

/** Metadata of a protected resource, and what stands behind it in a path: the path of the resource. */
export const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';
/** What else says where tokens come from; RFC 8414 and OpenID Connect Discovery. */
const ISSUER_METADATA = /^\/\.well-known\/(?:oauth-authorization-server|openid-configuration)(?:\/|$)/;

/** Largest metadata that is read, bytes. */
export const MAX_METADATA_BYTES: number = 256 * 1024;

/** True for a path where metadata of OAuth is. */
export function isMetadataPath(pathname: string): boolean {
  return (
    pathname === RESOURCE_METADATA || pathname.startsWith(`${RESOURCE_METADATA}/`) || ISSUER_METADATA.test(pathname)
  );
}

function urlOf(value: unknown): URL | null {
  return typeof value === 'string' && /^https?:\/\//i.test(value) ? URL.parse(value) : null;
}

/** Gives each text in a value anew. */
function mapped(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((one) => mapped(one, change));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, mapped(one, change)]));
}

/**
 * Metadata in which the server's own address is the one that the client knows.
 * @param change gives an own address anew
 * @returns the text as it is where it names no address of the server's machine
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

/** A `WWW-Authenticate` whose metadata is at the address that the client knows. Others' addresses stay. */
export function withOwnChallenge(header: string, change: (url: URL) => string): string {
  return header.replace(/(\bresource_metadata=")([^"]*)"/i, (all, name: string, value: string) => {
    const url = urlOf(value);
    return url === null || !isLoopbackHost(url.hostname) || !isMetadataPath(url.pathname)
      ? all
      : `${name}${change(url)}"`;
  });
}
