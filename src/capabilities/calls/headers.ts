/**
 * What of a message's headers crosses a hop. Headers are flat lists of names and values in the
 * order and spelling in which they came, as `IncomingMessage.rawHeaders` holds them.
 */
import type { ServerResponse } from 'node:http';
import type { Aid } from '../../foundation/identity/aid.ts';

export type RawHeaders = readonly string[];

/** Largest head of a request or an answer. */
export const MAX_HTTP_HEADER_BYTES = 32 * 1024;
/** Headers of a request or a response. */
export const MAX_HEADERS = 128;
/** Headers that daemons add to a message for the hop between them. */
export const MAX_LINK_HEADERS: number = MAX_HEADERS + 16;

/** Say something about one connection only (RFC 9110, section 7.6.1). */
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

/** What is made anew at each step of a call: no step hands it on. */
export const REMADE: ReadonlySet<string> = new Set(['host', 'content-length', 'expect']);

/** Rule how a message is read: no `Connection` header can name them away. */
const PROTECTED: ReadonlySet<string> = new Set(['content-length', 'host']);

const LENGTH = 'content-length';
/** Statuses of responses that have no body. */
const BODILESS_STATUSES: ReadonlySet<number> = new Set([204, 304]);

/** Names and values one by one. */
export function* pairs(raw: RawHeaders): Generator<[name: string, value: string]> {
  for (let i = 0; i + 1 < raw.length; i += 2) yield [raw[i] ?? '', raw[i + 1] ?? ''];
}

/** The first value of a header, whose name is in lower case; empty where there is none. */
export function headerOf(raw: RawHeaders, wanted: string): string {
  return pairs(raw).find(([name]) => name.toLowerCase() === wanted)?.[1] ?? '';
}

/** True if a message has a header; the name is in lower case. */
export function hasHeader(raw: RawHeaders, wanted: string): boolean {
  return pairs(raw).some(([name]) => name.toLowerCase() === wanted);
}

/** The headers that are kept; the names in `keep` are in lower case. */
export function filterHeaders(raw: RawHeaders, keep: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    if (keep(name.toLowerCase())) kept.push(name, raw[i + 1] ?? '');
  }
  return kept;
}

/**
 * Headers without those that speak of the connection, listed in `Connection` or known as such. `Content-Length` comes
 * last: behind it, Node decodes a `Content-Disposition` as UTF-8 and writes other bytes than it was given.
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
 * Headers as a response with this status can carry them. `Trailer` announces fields behind the last chunk of a body:
 * Node refuses to write it on a response without chunks.
 */
export function withoutIdleTrailer(raw: RawHeaders, { req }: ServerResponse, status: number): RawHeaders {
  const isChunked =
    req.method !== 'HEAD' && req.httpVersion === '1.1' && !BODILESS_STATUSES.has(status) && !hasHeader(raw, LENGTH);
  return isChunked ? raw : filterHeaders(raw, (name) => name !== 'trailer');
}

/** A name as CGI-like servers see it: they do not tell `-`, `_` and `.` apart. */
function canonical(name: string): string {
  return name.replace(/[^a-z0-9]/g, '-');
}

/** True for the names that only the daemon beside the service may set, and for `Proxy`: CGI makes `HTTP_PROXY` of it. */
function isOurs(name: string): boolean {
  const text = canonical(name);
  return (
    text === 'proxy' ||
    text.startsWith('svc-') ||
    text === 'forwarded' ||
    text.startsWith('x-forwarded-') ||
    text === 'x-real-ip'
  );
}

/** Headers of a caller that may reach a service, in a request and in its trailers. */
export function withoutForgeries(raw: RawHeaders): string[] {
  // protocol-calls.md, step 6
  return filterHeaders(endToEnd(raw), (name) => !isOurs(name));
}

/** Headers of a service that may reach a caller: `Svc-Error` says that the daemon answered, not the service. */
export function withoutOurMarks(raw: RawHeaders): string[] {
  return filterHeaders(endToEnd(raw), (name) => !canonical(name).startsWith('svc-'));
}

/**
 * The reason phrase of an answer as it may be sent on (RFC 9112, section 4): Node's parser takes bytes in it that
 * its writer refuses. Empty where it holds any such.
 */
export function reasonPhrase({ statusMessage = '' }: { readonly statusMessage?: string | undefined }): string {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(statusMessage) ? statusMessage : '';
}

/** True for the `Content-Type` of a stream of events, which come when there are any. */
export function isEventStream(type: string | undefined): boolean {
  return /^text\/event-stream\s*(?:;|$)/i.test(type ?? '');
}

/** True for the `Content-Type` of JSON, in any of its dialects. */
export function isJsonType(type: string | undefined): boolean {
  return /\bjson\b/i.test(type ?? '');
}

/** What tells a service who calls. */
export function identityHeaders(caller: Aid, called: Aid): string[] {
  // A node that is not an address starts with "_" (RFC 7239, section 6.3).
  const forwarded = `by=_${called};for=_${caller};proto=http`;
  return ['Svc-Caller-Aid', caller, 'Svc-Local-Aid', called, 'Forwarded', forwarded];
}
