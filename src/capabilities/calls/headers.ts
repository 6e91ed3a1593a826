/**
 * The headers that cross a hop. Headers are flat lists of names and values in their original order and spelling, like
 * `IncomingMessage.rawHeaders`.
 */
import type { IncomingMessage } from 'node:http';
import type { Aid } from '../../foundation/identity/aid.ts';

export type RawHeaders = readonly string[];

/** Largest head of a request or a response, in bytes. */
export const MAX_HTTP_HEADER_BYTES = 32 * 1024;
/** Headers of a request or a response. */
export const MAX_HEADERS = 128;
/** The same with the headers that daemons add for the hop between them. */
export const MAX_LINK_HEADERS: number = MAX_HEADERS + 16;

/** What a header is for, as bits. */
const HOP_BY_HOP = 1;
/** Each hop sets these headers itself and never passes them on. */
export const SET_PER_HOP = 2;
/** Only the daemon of the service may set it, or CGI turns it into `HTTP_PROXY`. */
const RESERVED = 4;
/** Marks responses of the daemon. */
const DAEMON = 8;
/** A line of evidence, see `evidence/call-evidence.ts`. */
export const EVIDENCE = 16;
/** May be evidence, which its value tells. */
const SIGNATURE = 32;
/** Defines how a message is parsed, so `Connection` cannot remove it. */
const PROTECTED = 64;

const CONNECTION = 'connection';
const LENGTH = 'content-length';
/** Status codes of responses without a body. */
const BODILESS_STATUSES: ReadonlySet<number> = new Set([204, 304]);

const ROLES: ReadonlyMap<string, number> = new Map([
  // Valid for one connection only (RFC 9110, section 7.6.1).
  [CONNECTION, HOP_BY_HOP],
  ['keep-alive', HOP_BY_HOP],
  ['proxy-authenticate', HOP_BY_HOP],
  ['proxy-authorization', HOP_BY_HOP],
  ['proxy-connection', HOP_BY_HOP],
  ['te', HOP_BY_HOP],
  ['transfer-encoding', HOP_BY_HOP],
  ['upgrade', HOP_BY_HOP],
  ['host', SET_PER_HOP | PROTECTED],
  [LENGTH, SET_PER_HOP | PROTECTED],
  ['expect', SET_PER_HOP],
]);

/** The same for names as CGI-like servers see them: `-`, `_` and `.` are equivalent. */
const CANONICAL_ROLES: ReadonlyMap<string, number> = new Map([
  ['svc-caller-delegation', RESERVED | DAEMON | EVIDENCE],
  ['signature', SIGNATURE],
  ['signature-input', SIGNATURE],
  ['proxy', RESERVED],
  ['forwarded', RESERVED],
  ['x-real-ip', RESERVED],
]);

/** A line of `Signature` or `Signature-Input` with our label at any depth. No program has a legitimate use for it. */
const OUR_SIGNATURE = /(?:^|[^a-z0-9_.*-])svcd\s*=/;

/** @param name in lower case */
function rolesOf(name: string, value: string): number {
  const known = ROLES.get(name);
  if (known !== undefined) return known;
  const text = /[^a-z0-9-]/.test(name) ? name.replaceAll(/[^a-z0-9]/g, '-') : name;
  const roles = CANONICAL_ROLES.get(text);
  if (roles === SIGNATURE) return OUR_SIGNATURE.test(value) ? EVIDENCE : 0;
  if (roles !== undefined) return roles;
  if (text.startsWith('svc-')) return RESERVED | DAEMON;
  return text.startsWith('x-forwarded-') ? RESERVED : 0;
}

/** The lines of evidence in a request, real or forged. */
export function evidenceLines(raw: RawHeaders): (readonly [name: string, value: string])[] {
  const lines: (readonly [string, string])[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i]?.toLowerCase(), raw[i + 1]];
    if ((rolesOf(name, value) & EVIDENCE) !== 0) lines.push([name, value]);
  }
  return lines;
}

/** Iterates over names and values. */
export function* pairs(raw: RawHeaders): Generator<[name: string, value: string]> {
  for (let i = 0; i + 1 < raw.length; i += 2) yield [raw[i] ?? '', raw[i + 1] ?? ''];
}

/** The first value of a header. `wanted` is in lower case. */
export function headerOf(raw: RawHeaders, wanted: string): string | undefined {
  for (let i = 0; i + 1 < raw.length; i += 2)
    if (raw[i]?.length === wanted.length && raw[i]?.toLowerCase() === wanted) return raw[i + 1];
  return undefined;
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
 * @param without other roles of headers to remove
 */
export function endToEnd(raw: RawHeaders, without = 0): string[] {
  const dropped = without | HOP_BY_HOP;
  const connection: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2)
    if (raw[i]?.length === CONNECTION.length && raw[i]?.toLowerCase() === CONNECTION)
      connection.push(...(raw[i + 1] ?? '').split(','));
  const named = connection.length === 0 ? null : new Set(connection.map((name) => name.trim().toLowerCase()));
  const kept: string[] = [];
  const lengths: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [spelled = '', value = ''] = [raw[i], raw[i + 1]];
    const name = spelled.toLowerCase();
    const roles = rolesOf(name, value);
    if ((roles & dropped) !== 0 || ((roles & PROTECTED) === 0 && named?.has(name) === true)) continue;
    (name === LENGTH ? lengths : kept).push(spelled, value);
  }
  kept.push(...lengths);
  return kept;
}

/**
 * Headers that a response with this status can carry. Node rejects `Trailer` on a response without chunked encoding.
 */
export function withoutUnusedTrailer(
  raw: RawHeaders,
  { req }: { readonly req: Pick<IncomingMessage, 'method' | 'httpVersion'> },
  status: number,
): RawHeaders {
  if (headerOf(raw, 'trailer') === undefined) return raw;
  const isChunked =
    req.method !== 'HEAD' &&
    req.httpVersion === '1.1' &&
    !BODILESS_STATUSES.has(status) &&
    headerOf(raw, LENGTH) === undefined;
  return isChunked ? raw : filterHeaders(raw, (name) => name !== 'trailer');
}

/**
 * Headers and trailers of a caller that may reach a service.
 * @param without other roles of headers to remove
 */
export function withoutReservedHeaders(raw: RawHeaders, without = 0): string[] {
  // protocol-calls.md, step 6
  return endToEnd(raw, RESERVED | without);
}

/** Headers of a service that may reach a caller. `Svc-Error` is removed, because it marks responses of the daemon. */
export function withoutDaemonHeaders(raw: RawHeaders): string[] {
  return endToEnd(raw, DAEMON);
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
