/**
 * Filters the headers between a client of this API and a remote node. The client's credentials for this API stay here,
 * and remote headers must not affect this API's origin. See docs/gateway.md.
 */
import { filterHeaders, pairs, type RawHeaders } from '../../capabilities/calls/headers.ts';
import { mayBeThisMachine } from '../../foundation/address.ts';

/** Credentials for this API, and headers that reveal this machine or the requesting page. */
const NEVER_SENT =
  /^(?:authorization|cookie2?|forwarded|host|origin|referer|proxy|service-worker.*|via|(?:proxy|sec-ch|sec-fetch|svc|x-forwarded)-.*)$/;

/**
 * Allowed response headers: headers about the response itself, and headers of protocols that only programs use. Others
 * are dropped, because the full set of headers that affect an origin or trigger browser actions is unknown.
 */
const ALLOWED = new RegExp(
  `^(?:${[
    'accept-(?:patch|post|ranges)',
    'age',
    'allow',
    'api-.*',
    'cache-control',
    'content-(?:digest|disposition|encoding|language|length|md5|range|type)',
    '(?:correlation|request)-id',
    'deprecation',
    'digest',
    'etag',
    'expires',
    'idempotency-.*',
    'last-modified',
    'location',
    'operation-location',
    'pragma',
    'preference-applied',
    'rate-?limit.*',
    'repr-digest',
    'retry-after',
    'sec-websocket-.*',
    'server',
    'server-timing',
    'signature(?:-input)?',
    'sunset',
    'trace(?:parent|state)',
    'trailer',
    'vary',
    'warning',
    // MCP and other assistant protocols; gRPC, WebDAV, tus, container registries, OData.
    '(?:a2a|anthropic|mcp|openai)-.*',
    '(?:docker|grpc|odata|tus|upload)-.*',
    'dav',
    'lock-token',
    'x-.*',
  ].join('|')})$`,
);

/** `X-…` headers that browsers or proxies act on. */
const EFFECTIVE_X_HEADERS =
  /^x-(?:(?:accel-(?!buffering$)|chrome|forwarded-|lighttpd-|reproxy-|sendfile|svc-|webkit-).*|auto-login|content-(?:security-policy.*|type-options)|dns-prefetch-control|download-options|frame-options|permitted-cross-domain-policies|sourcemap|ua-compatible|xss-protection)$/;

const PLAIN_HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:]+\])$/;

/** Base for relative references of the remote service: a reserved host name. */
const SERVICE_BASE = 'http://service.invalid';

/** The client headers that a remote node receives. Hop-by-hop headers are removed when the call is sent. */
export function sentHeaders(raw: RawHeaders): string[] {
  return filterHeaders(raw, (name) => !NEVER_SENT.test(name));
}

/** The URL parts of the request for a response. */
export interface ResponsePlace {
  /** Path of this API that represents the remote service, such as `/aid/aid1…`. */
  readonly prefix: string;
  /** Path and query of the remote request. */
  readonly path: string;
  /** `Host` of the request. If it is missing, no absolute URL is recognized as this API. */
  readonly host: string | undefined;
  /** Default: http. */
  readonly scheme?: 'https';
}

/**
 * A header value with bytes above 0x7F percent-encoded. Each character is one byte, and `URL` would encode it as two.
 */
function escapedBytes(value: string): string {
  return value.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
}

/**
 * A host without IPv6 brackets and trailing dots. The loop is linear; a regular expression would backtrack over many
 * dots.
 */
function bareHost(host: string): string {
  if (host.startsWith('[')) return host.slice(1, -1);
  let end = host.length;
  while (host.charAt(end - 1) === '.') end--;
  return host.slice(0, end);
}

/**
 * Rewrites a `Location` for the client. URLs inside the remote service are moved below its prefix. URLs to other paths
 * of this API are rejected, so that no redirect leads into the management API. A loopback address means the machine of
 * the remote service.
 * @returns null if the client must not follow it
 */
export function rewriteLocation(location: string, { prefix, path, host }: ResponsePlace): string | null {
  const target = URL.parse(escapedBytes(location), SERVICE_BASE + path);
  if (target === null || (target.protocol !== 'http:' && target.protocol !== 'https:')) return null;
  const own = URL.parse(`${target.protocol}//${host ?? ''}`);
  const name = bareHost(target.hostname);
  const within = target.origin === SERVICE_BASE || target.host === own?.host || mayBeThisMachine(name);
  if (within) return `${prefix}${target.pathname}${target.search}${target.hash}`;
  // Parsers read such URLs differently, so they are rejected.
  const plain = target.username === '' && target.password === '' && PLAIN_HOST.test(target.hostname);
  return plain ? target.href : null;
}

/** The headers or trailers of a remote response that the client receives. */
export function acceptedHeaders(raw: RawHeaders, place: ResponsePlace): string[] {
  return [...pairs(raw)].flatMap(([name, value]) => {
    const key = name.toLowerCase();
    if (!ALLOWED.test(key) || EFFECTIVE_X_HEADERS.test(key)) return [];
    if (key !== 'location') return [name, value];
    const location = rewriteLocation(value, place);
    return location === null ? [] : [name, location];
  });
}
