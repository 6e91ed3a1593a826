/**
 * Which headers pass between a local program and the remote agent behind a local address. Nearly all do, credentials
 * included, because nothing else on this machine is behind the address. Headers with an effect beyond this address are
 * removed: for a browser all ports of 127.0.0.1 are one host. See docs/local-addresses.md.
 */

import type { IncomingMessage } from 'node:http';
import { filterHeaders, pairs, type RawHeaders } from '../../capabilities/calls/headers.ts';
import type { ReadResponse } from '../../capabilities/calls/http-caller.ts';
import { readBytes } from '../rest/json-body.ts';
import type { ReshapedResponse } from '../rest/remote-call.ts';
import { type ResponsePlace, rewriteLocation } from '../rest/remote-headers.ts';
import { withBody } from './cards.ts';
import { isMetadataPath, MAX_METADATA_BYTES, withOwnAddresses, withOwnChallenge } from './oauth-addresses.ts';

// OAuth at a local address. In metadata and challenges (RFC 9728, RFC 8414) a server uses the address on its own
// machine. A client compares it with the address that it calls, and would connect to another program at that address
// on this machine.

/** True if a request is for OAuth metadata. */
export function isMetadataRequest({ method, url = '' }: Pick<IncomingMessage, 'method' | 'url'>): boolean {
  const [path = ''] = url.split('?', 1);
  return method === 'GET' && isMetadataPath(path);
}

/** Translates a URL of the server to one below the local address. */
function leads({ host, scheme }: ResponsePlace): (url: URL) => string {
  return ({ pathname, search }) => `${scheme ?? 'http'}://${host ?? ''}${pathname}${search}`;
}

/** Translates a challenge for the client. */
function localChallenge(header: string, place: ResponsePlace): string {
  return withOwnChallenge(header, leads(place));
}

/**
 * Translated metadata. Null for responses without metadata.
 * @throws SvcError `too_large`
 */
export async function withLocalMetadata(
  { status, headers, body }: ReadResponse,
  place: ResponsePlace,
): Promise<ReshapedResponse | null> {
  if (status !== 200) return null;
  const text = (await readBytes(body, MAX_METADATA_BYTES)).toString();
  return withBody(headers, withOwnAddresses(text, leads(place)));
}

/** Headers that the remote daemon sets itself, and headers that a service would compare with its own host name. */
const NEVER_SENT = /^(?:forwarded|host|origin|proxy|referer|via|(?:proxy|svc|x-forwarded)-.*)$/;

/** Rules for a whole host, reports to third parties, and headers that only svcd sets. */
const NEVER_TAKEN =
  /^(?:alt-svc|clear-site-data|expect-ct|nel|public-key-pins(?:-report-only)?|report(?:-to|ing-endpoints)|service-worker-allowed|set-cookie2|strict-transport-security|svc-.*)$/;

/**
 * Restricts pages in a browser in addition to the agent's own policy. The pages have an origin on this machine, which
 * other local programs may trust, so they can reach only their own address and https sites.
 */
export const PAGE_POLICY =
  "default-src 'self' https: wss: data: blob: 'unsafe-inline' 'unsafe-eval'; form-action 'self' https:";

/** The client of a local address. */
export interface OriginClient {
  /** ID of the local address. */
  readonly id: string;
  readonly isBrowser: boolean;
  /** The cookies of a browser that uses the address at a host that other programs share; null for all other clients. */
  readonly shared: SharedCookies | null;
}

/** Longest cookie with its name, and cookies of one local address, at a shared host. */
const MAX_SHARED_COOKIE_CHARS = 512;
const MAX_SHARED_COOKIES = 8;
/** Cookies of all programs at a shared host. Many servers accept heads of 8 KiB. */
const MAX_COOKIES_OF_HOST_CHARS = 4096;

/**
 * The names of the cookies that a local address gives to browsers at a shared host. A browser sends cookies to all ports of
 * a host, so many cookies would lock out other programs and the panel.
 */
export class SharedCookies {
  readonly #names = new Set<string>();

  /** True if a browser may store a cookie. @param sent the cookies in its request */
  admit(name: string, length: number, sent: string): boolean {
    if (length > MAX_SHARED_COOKIE_CHARS || sent.length + length > MAX_COOKIES_OF_HOST_CHARS) return false;
    if (this.#names.size >= MAX_SHARED_COOKIES && !this.#names.has(name)) return false;
    this.#names.add(name);
    return true;
  }
}

/** Prefix of cookie names in a browser. */
function cookiePrefix(id: string): string {
  return `${id}.`;
}

/** The cookies of this address in a browser request, with the names that the agent knows. */
function ownCookies(header: string, id: string): string {
  const prefix = cookiePrefix(id);
  return header
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(prefix))
    .map((cookie) => cookie.slice(prefix.length))
    .join('; ');
}

/**
 * Converts a cookie for the client: without the agent's domain. At a shared host it gets a name of this address, is sent for
 * all paths, so that it is counted, and is hidden from scripts, which see the cookies of all ports.
 * @param sent the cookies in the request
 * @returns null for a cookie beyond the limits, and without a name, which could not be assigned to an address
 */
function keptCookie(header: string, { id, shared }: OriginClient, sent: string): string | null {
  const [cookie = '', ...attributes] = header.split(';');
  const isDropped = shared === null ? /^\s*domain\s*(?:=|$)/i : /^\s*(?:domain|path)\s*(?:=|$)|^\s*httponly\s*$/i;
  const kept = attributes.filter((attribute) => !isDropped.test(attribute));
  if (shared === null) return [cookie, ...kept].join(';');
  const named = `${cookiePrefix(id)}${cookie.trim()}`;
  const [name = '', value] = named.split('=', 2);
  if (name === cookiePrefix(id) || value === undefined || !shared.admit(name, named.length, sent)) return null;
  return [named, ...kept, ' Path=/', ' HttpOnly'].join(';');
}

/** The headers of a program for the agent. */
export function headersForAgent(raw: RawHeaders, visitor: OriginClient): string[] {
  const sent = filterHeaders(raw, (name) => !NEVER_SENT.test(name));
  if (visitor.shared === null) return sent;
  return [...pairs(sent)].flatMap(([name, value]) => {
    if (name.toLowerCase() !== 'cookie') return [name, value];
    const cookies = ownCookies(value, visitor.id);
    return cookies === '' ? [] : [name, cookies];
  });
}

/**
 * The headers or trailers of an agent's response for the program.
 * @param sent the cookies in its request
 */
export function headersForProgram(
  raw: RawHeaders,
  place: ResponsePlace,
  visitor: OriginClient,
  sent: string,
): string[] {
  return [...pairs(raw)].flatMap(([name, value]) => {
    const key = name.toLowerCase();
    if (NEVER_TAKEN.test(key)) return [];
    const kept =
      key === 'location' || key === 'content-location'
        ? rewriteLocation(value, place)
        : key === 'set-cookie'
          ? keptCookie(value, visitor, sent)
          : key === 'www-authenticate'
            ? localChallenge(value, place)
            : value;
    return kept === null ? [] : [name, kept];
  });
}
