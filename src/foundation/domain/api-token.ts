/** The strength of an API token. */

/**
 * Minimum length of a random API token that cannot be guessed, in characters: 22 base64url characters hold 128 bits.
 */
export const UNGUESSABLE_TOKEN_CHARS = 22;

/** True if a token is long enough that guesses need no limit. */
export function isUnguessable(token: string): boolean {
  return token.length >= UNGUESSABLE_TOKEN_CHARS;
}

/** The consequence of a shorter token, and the remedy. */
export const SHORT_TOKEN_WARNING: string = `api_token has fewer than ${UNGUESSABLE_TOKEN_CHARS} characters, so wrong guesses of other programs delay it. Use a random one, such as from "openssl rand -hex 16".`;
