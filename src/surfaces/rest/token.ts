/** Checks the API token of a request. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { isUnguessable } from '../../foundation/domain/api-token.ts';
import { isPanelToken } from '../../foundation/panel-access.ts';

const COMPARISON_KEY_BYTES = 32;

function bearerOf(header: string): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(header)?.[1];
}

/** Panel sessions. Their tokens have the rights of the API token. */
export interface PanelSessions {
  /** The session ID of a token, or null. */
  holder(token: string): string | null;
  /** Calls `cut` when a session ends. The returned function removes the callback. */
  onEnd(id: string, cut: () => void): () => void;
}

/** Used when the panel is disabled. */
export const NO_SESSIONS: PanelSessions = { holder: () => null, onEnd: () => () => {} };

/** The holder of a token: a panel session, or null for the API token itself. */
export interface TokenHolder {
  readonly session: string | null;
}

/** Compares tokens in constant time. */
export class TokenCheck {
  readonly #token: () => string;
  readonly #sessions: PanelSessions;
  /** Both sides are hashed with a random key, which gives equal lengths and reveals nothing through timing. */
  readonly #key = randomBytes(COMPARISON_KEY_BYTES);

  /** @param token returns the current token; empty if none is set */
  constructor(token: () => string, sessions: PanelSessions = NO_SESSIONS) {
    this.#token = token;
    this.#sessions = sessions;
  }

  /** True if a token is set. */
  get set(): boolean {
    return this.#token() !== '';
  }

  /** True if the API token is long enough to need no limit on guesses. */
  get isUnguessable(): boolean {
    return isUnguessable(this.#token());
  }

  /** The holder of the token in an `Authorization` header; null if there is no valid token. */
  holderOf(header = ''): TokenHolder | null {
    const given = bearerOf(header);
    if (given === undefined) return null;
    const session = this.#sessions.holder(given);
    if (session !== null) return { session };
    return !isPanelToken(given) && this.isToken(given) ? { session: null } : null;
  }

  /**
   * True if the token has the form of a panel session token. The session may be closed already. Such tokens cannot be guessed.
   */
  isOfSession(header: string): boolean {
    return isPanelToken(bearerOf(header) ?? '');
  }

  /** True for the API token; always false if none is set. */
  isToken(text: string): boolean {
    const token = this.#token();
    return token !== '' && timingSafeEqual(this.#hash(text), this.#hash(token));
  }

  #hash(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}
