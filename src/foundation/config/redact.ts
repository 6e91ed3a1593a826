/** Hides the secrets of a configuration in output, and restores them in input. */

import { isObject } from '../json.ts';
import type { Config, TurnServer } from './schema.ts';

/** Replaces a secret in output. No token contains these characters. */
export const REDACTED = '***';

/** The configuration for display: a secret becomes `***`. */
export function redact(config: Config): Config {
  return { ...config, api_token: redactSecret(config.api_token), turn_servers: config.turn_servers.map(redactServer) };
}

/**
 * Restores the hidden secrets of `turn_servers` in a client's input, from the stored entry with the same URL, user and
 * type. So a secret cannot be moved to another server. An entry without a match is unchanged, and is then rejected.
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

/** True if a client's input still contains a hidden secret. */
export function containsRedacted(server: TurnServer): boolean {
  return server.credential === REDACTED || server.credential_url.includes(REDACTED);
}

function redactSecret(secret: string): string {
  return secret === '' ? '' : REDACTED;
}

function redactServer(server: TurnServer): TurnServer {
  return { ...server, credential: redactSecret(server.credential), credential_url: hideInUrl(server.credential_url) };
}

/** User, password and query of a URL may be credentials. */
function hideInUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.username === '' && url.password === '' && url.search === '' && url.hash === '')) return text;
  return `${url.protocol}//${url.host}${url.pathname}?${REDACTED}`;
}

/** Includes `credential_url`: the hidden query must not move to another server. */
function sameServer(sent: Readonly<Record<string, unknown>>, hidden: TurnServer): boolean {
  const { url, username = '', credential_type = 'static', credential_url = '' } = sent;
  return (
    url === hidden.url &&
    username === hidden.username &&
    credential_type === hidden.credential_type &&
    credential_url === hidden.credential_url
  );
}
