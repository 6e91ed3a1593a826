/**
 * Which headers cross between a program at a local address and the agent that it is. Nearly all do, credentials too: the
 * address is the agent's, and nothing else of this machine is behind it. Kept back is what speaks of more than this
 * address: a browser knows 127.0.0.1 as one host, whatever the port. See docs/local-addresses.md.
 */
import { filterHeaders, pairs, type RawHeaders } from '../../capabilities/calls/headers.ts';
import { type AnswerPlace, rewriteLocation } from '../rest/remote-headers.ts';
import { localChallenge } from './oauth.ts';

/** What the daemon beside the service says itself, and what a service would compare with a host that it does not know. */
const NEVER_SENT = /^(?:forwarded|host|origin|proxy|referer|via|(?:proxy|svc|x-forwarded)-.*)$/;

/** Rules for a whole host, reports to third parties, and what only our daemons say. */
const NEVER_TAKEN =
  /^(?:alt-svc|clear-site-data|expect-ct|nel|public-key-pins(?:-report-only)?|report(?:-to|ing-endpoints)|service-worker-allowed|set-cookie2|strict-transport-security|svc-.*)$/;

/**
 * Stands in a browser beside whatever policy the agent has: its pages are of an origin on this machine, which other
 * programs here may trust for that alone, so they reach their own address and sites on https, and no other port here.
 */
export const PAGE_POLICY =
  "default-src 'self' https: wss: data: blob: 'unsafe-inline' 'unsafe-eval'; form-action 'self' https:";

/** Who asks at which address. */
export interface OriginVisitor {
  /** Id of the address. */
  readonly id: string;
  /** A browser, whose cookies belong to all ports of a host. */
  readonly isBrowser: boolean;
}

/** What stands before the name of a cookie in a browser. */
function cookiePrefix(id: string): string {
  return `${id}.`;
}

/** The cookies of a browser that are of this address, under the names that the agent knows. */
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
 * A cookie as the client has to keep it: without the agent's own domain, which is none here; in a browser under a name
 * of this address, and out of the reach of scripts, which see the cookies of all ports.
 * @returns null for one without a name, which could not be told from another address's
 */
function keptCookie(header: string, { id, isBrowser }: OriginVisitor): string | null {
  const [cookie = '', ...attributes] = header.split(';');
  const kept = attributes.filter((attribute) => !/^\s*domain\s*(?:=|$)/i.test(attribute));
  if (!isBrowser) return [cookie, ...kept].join(';');
  const name = cookie.trimStart();
  if (!/^[^=]+=/.test(name)) return null;
  const open = kept.every((attribute) => attribute.trim().toLowerCase() !== 'httponly');
  return [`${cookiePrefix(id)}${name}`, ...kept, ...(open ? [' HttpOnly'] : [])].join(';');
}

/** The headers of a program that the agent receives. */
export function sentToAgent(raw: RawHeaders, visitor: OriginVisitor): string[] {
  const sent = filterHeaders(raw, (name) => !NEVER_SENT.test(name));
  if (!visitor.isBrowser) return sent;
  return [...pairs(sent)].flatMap(([name, value]) => {
    if (name.toLowerCase() !== 'cookie') return [name, value];
    const cookies = ownCookies(value, visitor.id);
    return cookies === '' ? [] : [name, cookies];
  });
}

/** The headers of an agent's answer, or its trailers, that a program receives. */
export function takenFromAgent(raw: RawHeaders, place: AnswerPlace, visitor: OriginVisitor): string[] {
  return [...pairs(raw)].flatMap(([name, value]) => {
    const key = name.toLowerCase();
    if (NEVER_TAKEN.test(key)) return [];
    const kept =
      key === 'location' || key === 'content-location'
        ? rewriteLocation(value, place)
        : key === 'set-cookie'
          ? keptCookie(value, visitor)
          : key === 'www-authenticate'
            ? localChallenge(value, place)
            : value;
    return kept === null ? [] : [name, kept];
  });
}
