/** Secrets of a configuration: hidden on the way out, and put back where the hidden form comes in again. */

import { isObject } from '../json.ts';
import type { Config, TurnServer } from './schema.ts';

/** Stands for a secret that is set. No token may look like it: it has characters that no token has. */
export const REDACTED = '***';

/** The configuration as it may be shown: a secret that is set becomes `***`. */
export function redact(config: Config): Config {
  return { ...config, api_token: hide(config.api_token), turn_servers: config.turn_servers.map(redactServer) };
}

/**
 * `turn_servers` as sent by a client, with each hidden secret put back from the present entry of
 * the same URL, user and type: so a secret cannot be sent on to another server. What finds no such
 * entry stays as it is, and is then refused.
 */
export function restoreServers(sent: unknown, present: readonly TurnServer[]): unknown {
  if (!Array.isArray(sent)) return sent;
  return sent.map((entry: unknown) => {
    if (!isObject(entry)) return entry;
    const match = present.find((server) => sameServer(entry, redactServer(server)));
    if (match === undefined) return entry;
    const hidden = redactServer(match);
    const restored: Record<string, unknown> = { ...entry };
    for (const secret of ['credential', 'credential_url'] as const) {
      if (hidden[secret] !== match[secret] && restored[secret] === hidden[secret]) restored[secret] = match[secret];
    }
    return restored;
  });
}

/** True where a hidden secret is left over in what a client sent. */
export function holdsRedacted(server: TurnServer): boolean {
  return server.credential === REDACTED || server.credential_url.includes(REDACTED);
}

function hide(secret: string): string {
  return secret === '' ? '' : REDACTED;
}

function redactServer(server: TurnServer): TurnServer {
  return { ...server, credential: hide(server.credential), credential_url: hideInUrl(server.credential_url) };
}

/** User, password and query of a URL may be keys of the service behind it. */
function hideInUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.username === '' && url.password === '' && url.search === '' && url.hash === '')) return text;
  return `${url.protocol}//${url.host}${url.pathname}?${REDACTED}`;
}

/** `credential_url` counts too: the query hidden in it must not go to another place. */
function sameServer(sent: Readonly<Record<string, unknown>>, hidden: TurnServer): boolean {
  const { url, username = '', credential_type = 'static', credential_url = '' } = sent;
  return (
    url === hidden.url &&
    username === hidden.username &&
    credential_type === hidden.credential_type &&
    credential_url === hidden.credential_url
  );
}
