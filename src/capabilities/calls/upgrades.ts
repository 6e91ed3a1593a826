/**
 * The protocols to which a request may switch. After a switch, the daemons only forward bytes, so a protocol that
 * carries HTTP requests is not allowed: a caller could set headers in it that only the daemon of the service may set.
 * Such a request is served without the switch, as HTTP allows. See docs/decisions/0055.
 */
import type { IncomingMessage } from 'node:http';
import { BODILESS } from './methods.ts';

const CARRIES_HTTP = /^(?:h2c?|h3|https?|tls)(?:\/|$)/i;
/** A name with an optional version (RFC 9110, section 7.8). */
const PROTOCOL = /^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?$/;
/** Protocols that one request may offer. */
const MAX_PROTOCOLS = 8;
/** Older versions of Node treat the body of an upgrade request as bytes of the new protocol. */
const NODE_WITH_BODIES = 26;
const takesBodies = Number(process.versions.node.split('.', 1)[0]) >= NODE_WITH_BODIES;

/** The protocols of an `Upgrade` header that are allowed. */
export function protocolsIn(upgrade: string | undefined): string[] {
  const named = (upgrade ?? '').split(',', MAX_PROTOCOLS).map((name) => name.trim());
  return named.filter((name) => PROTOCOL.test(name) && !CARRIES_HTTP.test(name));
}

/** True if a response switches to a protocol that its request offered. */
export function isOffered(upgrade: string | undefined, offered: readonly string[]): upgrade is string {
  const chosen = upgrade?.trim().toLowerCase();
  return chosen !== undefined && offered.some((name) => name.toLowerCase() === chosen);
}

/** True if a request is forwarded as an upgrade request. */
export function maySwitch({ method = '', headers }: IncomingMessage): boolean {
  if (protocolsIn(headers.upgrade).length === 0) return false;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  const hasBody = encoding !== undefined || Number(length) !== 0;
  return !hasBody || (takesBodies && !BODILESS.has(method) && method !== 'DELETE');
}
