/** Whose account a TURN server is asked by. */
import { createHash, createHmac } from 'node:crypto';
import type { Clock } from '../../../foundation/clock.ts';
import type { TurnServer } from '../../../foundation/config/schema.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { memberOf } from '../../../foundation/json.ts';

/** For how long a name that is derived from a shared secret is good, seconds. */
const DERIVED_TTL_S = 24 * 3600;
/** Longest answer of a service that gives out credentials, characters, and how long it is waited for, milliseconds. */
const MAX_ANSWER_CHARS = 16_384;
const ANSWER_TIMEOUT_MS = 5_000;

export interface TurnCredentials {
  readonly username: string;
  readonly password: string;
}

async function asked(url: string): Promise<TurnCredentials> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
  const text = await response.text();
  const answer: unknown = response.ok && text.length <= MAX_ANSWER_CHARS ? JSON.parse(text) : null;
  const [username, password] = [memberOf(answer, 'username'), memberOf(answer, 'password')];
  if (typeof username === 'string' && typeof password === 'string') return { username, password };
  throw new SvcError('connect_failed', { message: 'The service of credential_url gave no username and password.' });
}

/**
 * The name and password to use now: as configured; derived from a shared secret as draft-uberti-behave-turn-rest has it;
 * or asked for.
 * @throws SvcError `connect_failed`
 */
export async function credentialsOf(server: TurnServer, clock: Clock): Promise<TurnCredentials> {
  const { credential_type: type, username, credential } = server;
  if (type === 'static') return { username, password: credential };
  if (type === 'hmac') {
    const until = Math.floor(clock.now() / 1000) + DERIVED_TTL_S;
    const name = username === '' ? String(until) : `${until}:${username}`;
    return { username: name, password: createHmac('sha1', credential).update(name).digest('base64') };
  }
  try {
    return await asked(server.credential_url);
  } catch (cause) {
    throw cause instanceof SvcError ? cause : new SvcError('connect_failed', { cause });
  }
}

/** The key of long-term credentials (RFC 8489, 9.2.2). */
export function longTermKey({ username, password }: TurnCredentials, realm: string): Uint8Array {
  return new Uint8Array(createHash('md5').update(`${username}:${realm}:${password}`).digest());
}
