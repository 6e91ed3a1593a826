/**
 * The headers that cross a hop. Headers are flat lists of names and values in their original order and spelling, like
 * `IncomingMessage.rawHeaders`.
 */
import type { ServerResponse } from 'node:http';
import type { Aid } from '../../foundation/identity/aid.ts';

export type RawHeaders = readonly string[];

/** Largest head of a request or a response, in bytes. */
export const MAX_HTTP_HEADER_BYTES = 32 * 1024;
/** Headers of a request or a response. */
export const MAX_HEADERS = 128;
/** The same with the headers that daemons add for the hop between them. */
export const MAX_LINK_HEADERS: number = MAX_HEADERS + 16;

/** Valid for one connection only (RFC 9110, section 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

/** Each hop sets these headers itself and never passes them on. */
export const SET_PER_HOP: ReadonlySet<string> = new Set(['host', 'content-length', 'expect']);

/** Define how a message is parsed, so `Connection` cannot remove them. */
const PROTECTED: ReadonlySet<string> = new Set(['content-length', 'host']);

const LENGTH = 'content-length';
/** Status codes of responses without a body. */
const BODILESS_STATUSES: ReadonlySet<number> = new Set([204, 304]);

/** Iterates over names and values. */
export function* pairs(raw: RawHeaders): Generator<[name: string, value: string]> {
  for (let i = 0; i + 1 < raw.length; i += 2) yield [raw[i] ?? '', raw[i + 1] ?? ''];
}

/** The first value of a header, or an empty string. `wanted` is in lower case. */
export function headerOf(raw: RawHeaders, wanted: string): string {
  return pairs(raw).find(([name]) => name.toLowerCase() === wanted)?.[1] ?? '';
}

/** True if a message has a header. The name is in lower case. */
export function hasHeader(raw: RawHeaders, wanted: string): boolean {
  return pairs(raw).some(([name]) => name.toLowerCase() === wanted);
}

/** The headers for which `keep` returns true. `keep` receives lower-case names. */
export function filterHeaders(raw: RawHeaders, keep: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    if (keep(name.toLowerCase())) kept.push(name, raw[i + 1] ?? '');
  }
  return kept;
}

/**
 * Headers without hop-by-hop headers, which `Connection` lists or RFC 9110 defines. `Content-Length` is moved to the
 * end: if it precedes `Content-Disposition`, Node decodes that header as UTF-8 and writes different bytes.
 */
export function endToEnd(raw: RawHeaders): string[] {
  const named = new Set<string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]?.toLowerCase() !== 'connection') continue;
    for (const name of raw[i + 1]?.split(',') ?? []) named.add(name.trim().toLowerCase());
  }
  const kept = filterHeaders(
    raw,
    (name) => !HOP_BY_HOP.has(name) && name !== LENGTH && (PROTECTED.has(name) || !named.has(name)),
  );
  return [...kept, ...filterHeaders(raw, (name) => name === LENGTH)];
}

/**
 * Headers that a response with this status can carry. Node rejects `Trailer` on a response without chunked encoding.
 */
export function withoutUnusedTrailer(raw: RawHeaders, { req }: ServerResponse, status: number): RawHeaders {
  const isChunked =
    req.method !== 'HEAD' && req.httpVersion === '1.1' && !BODILESS_STATUSES.has(status) && !hasHeader(raw, LENGTH);
  return isChunked ? raw : filterHeaders(raw, (name) => name !== 'trailer');
}

/** A name as CGI-like servers see it: `-`, `_` and `.` are equivalent. */
function canonical(name: string): string {
  return name.replace(/[^a-z0-9]/g, '-');
}

/** True for names that only the daemon of the service may set, and for `Proxy`, which CGI turns into `HTTP_PROXY`. */
function isReserved(name: string): boolean {
  const text = canonical(name);
  return (
    text === 'proxy' ||
    text.startsWith('svc-') ||
    text === 'forwarded' ||
    text.startsWith('x-forwarded-') ||
    text === 'x-real-ip'
  );
}

/** Headers and trailers of a caller that may reach a service. */
export function withoutReservedHeaders(raw: RawHeaders): string[] {
  // protocol-calls.md, step 6
  return filterHeaders(endToEnd(raw), (name) => !isReserved(name));
}

/** Headers of a service that may reach a caller. `Svc-Error` is removed, because it marks responses of the daemon. */
export function withoutDaemonHeaders(raw: RawHeaders): string[] {
  return filterHeaders(endToEnd(raw), (name) => !canonical(name).startsWith('svc-'));
}

/**
 * The reason phrase of a response, if it can be sent on (RFC 9112, section 4). Node's parser accepts bytes that its
 * writer rejects; in that case the phrase is empty.
 */
export function reasonPhrase({ statusMessage = '' }: { readonly statusMessage?: string | undefined }): string {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(statusMessage) ? statusMessage : '';
}

/** True for the `Content-Type` of an event stream. */
export function isEventStream(type: string | undefined): boolean {
  return /^text\/event-stream\s*(?:;|$)/i.test(type ?? '');
}

/** True for the `Content-Type` of JSON and its variants. */
export function isJsonType(type: string | undefined): boolean {
  return /\bjson\b/i.test(type ?? '');
}

/** Headers and parameters of a query from which a service may take another method or path. Without other characters. */
const STEERING_HEADER = /^x(?:http)?method(?:override)?$|^x?(?:original|rewrite)ur[il]$/;
const STEERING_PARAMETER = /method/i;

/** True if a service could serve a request as one with another method or path. */
export function isSteered(raw: RawHeaders, target: string): boolean {
  const query = target.slice(`${target.split('?', 1)[0]}?`.length);
  const parameters = new URLSearchParams(query.replaceAll(/[;?]/g, '&'));
  return (
    pairs(raw).some(([name]) => STEERING_HEADER.test(name.toLowerCase().replaceAll(/[^a-z]/g, ''))) ||
    parameters.keys().some((name) => STEERING_PARAMETER.test(name))
  );
}

/** Headers that tell a service the caller's identity. */
export function identityHeaders(caller: Aid, called: Aid): string[] {
  // A node identifier that is not an IP address starts with "_" (RFC 7239, section 6.3).
  const forwarded = `by=_${called};for=_${caller};proto=http`;
  return ['Svc-Caller-Aid', caller, 'Svc-Local-Aid', called, 'Forwarded', forwarded];
}
