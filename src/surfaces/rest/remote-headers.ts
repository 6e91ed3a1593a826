/**
 * Which headers cross between a client of this API and a remote node that it calls through it: what
 * the client holds for this API stays here, and what the remote says of itself is not taken as said
 * by this API's own origin. See docs/gateway.md.
 */
import { filterHeaders, pairs, type RawHeaders } from '../../capabilities/calls/headers.ts';
import { mayBeThisMachine } from '../../foundation/address.ts';

/** Credentials for this API, and what tells of this machine and of the page that asks. */
const NEVER_SENT =
  /^(?:authorization|cookie2?|forwarded|host|origin|referer|proxy|service-worker.*|via|(?:proxy|sec-ch|sec-fetch|svc|x-forwarded)-.*)$/;

/**
 * Headers of an answer that speak of that answer alone, and those of protocols that only programs speak. No others
 * are taken: what rules an origin, or asks a browser to act beyond the answer at hand, is not known to the last one.
 */
const TAKEN = new RegExp(
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
    // MCP and others that assistants speak; gRPC, WebDAV, tus, registries of containers, OData.
    '(?:a2a|anthropic|mcp|openai)-.*',
    '(?:docker|grpc|odata|tus|upload)-.*',
    'dav',
    'lock-token',
    'x-.*',
  ].join('|')})$`,
);

/** Of `X-…`, which is nobody's to standardise any more, what browsers, or proxies in front of this API, have acted on. */
const ACTED_ON =
  /^x-(?:(?:accel-(?!buffering$)|chrome|forwarded-|lighttpd-|reproxy-|sendfile|svc-|webkit-).*|auto-login|content-(?:security-policy.*|type-options)|dns-prefetch-control|download-options|frame-options|permitted-cross-domain-policies|sourcemap|ua-compatible|xss-protection)$/;

const PLAIN_HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:]+\])$/;

/** Where a relative reference of the remote service starts from: a host that is nobody's. */
const SERVICE_BASE = 'http://service.invalid';

/** The headers of a client that a remote node receives; those of the connection go when the call is made. */
export function sentHeaders(raw: RawHeaders): string[] {
  return filterHeaders(raw, (name) => !NEVER_SENT.test(name));
}

/** Where an answer was asked for. */
export interface AnswerPlace {
  /** Path of this API below which the remote service stands, such as `/aid/aid1…`. */
  readonly prefix: string;
  /** Path and query that the remote service was asked for. */
  readonly path: string;
  /** `Host` of the request, without which no absolute URL is taken for this API. */
  readonly host: string | undefined;
}

/** A header value with its bytes above 0x7F escaped: each character is one byte, and `URL` would encode it as two. */
function escapedBytes(value: string): string {
  return value.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** A host without the brackets of IPv6 and the dots behind a name. A pattern would try each of ten thousand dots anew. */
function bareHost(host: string): string {
  if (host.startsWith('[')) return host.slice(1, -1);
  let end = host.length;
  while (host.charAt(end - 1) === '.') end--;
  return host.slice(0, end);
}

/**
 * A `Location` as the client has to see it. Whatever leads into the remote service leads below its
 * prefix, and nothing leads to another path of this API: a client that follows redirects never ends
 * up in the management API. An address of this machine means the machine of the service that says it.
 * @returns null where it must not be followed
 */
export function rewriteLocation(location: string, { prefix, path, host }: AnswerPlace): string | null {
  const target = URL.parse(escapedBytes(location), SERVICE_BASE + path);
  if (target === null || (target.protocol !== 'http:' && target.protocol !== 'https:')) return null;
  const own = URL.parse(`${target.protocol}//${host ?? ''}`);
  const name = bareHost(target.hostname);
  const within = target.origin === SERVICE_BASE || target.host === own?.host || mayBeThisMachine(name);
  if (within) return `${prefix}${target.pathname}${target.search}${target.hash}`;
  // What parsers could read in two ways leads nowhere.
  const plain = target.username === '' && target.password === '' && PLAIN_HOST.test(target.hostname);
  return plain ? target.href : null;
}

/** The headers of a remote answer, or its trailers, that the client receives. */
export function takenHeaders(raw: RawHeaders, place: AnswerPlace): string[] {
  return [...pairs(raw)].flatMap(([name, value]) => {
    const key = name.toLowerCase();
    if (!TAKEN.test(key) || ACTED_ON.test(key)) return [];
    if (key !== 'location') return [name, value];
    const location = rewriteLocation(value, place);
    return location === null ? [] : [name, location];
  });
}
