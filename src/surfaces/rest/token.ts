/** The management token of a request. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { isUnguessable } from '../../foundation/daemon-proof.ts';
import { isPanelToken } from '../../foundation/panel-token.ts';

const COMPARISON_KEY_BYTES = 32;

function bearerOf(header: string): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(header)?.[1];
}

/** The sessions of the panel, whose tokens are as good as the API token. */
export interface PanelSessions {
  /** The id of the session that a token is of; null where there is none. */
  holder(token: string): string | null;
  /** Has `cut` called when a session ends; what it returns takes that back. */
  whenEnds(id: string, cut: () => void): () => void;
}

/** Where nobody can log in to a panel. */
export const NO_SESSIONS: PanelSessions = { holder: () => null, whenEnds: () => () => {} };

/** Who holds a token: a session of the panel, or null for whoever has the API token itself. */
export interface TokenHolder {
  readonly session: string | null;
}

/** Compares tokens in a time that depends on neither of them. */
export class TokenCheck {
  readonly #token: () => string;
  readonly #sessions: Pick<PanelSessions, 'holder'>;
  /** Both sides are hashed under a key that nobody knows: equal lengths, nothing to learn from a time. */
  readonly #key = randomBytes(COMPARISON_KEY_BYTES);

  /** @param token gives the token of this moment; empty means that there is none */
  constructor(token: () => string, sessions: Pick<PanelSessions, 'holder'> = NO_SESSIONS) {
    this.#token = token;
    this.#sessions = sessions;
  }

  /** True where there is a token at all. */
  get set(): boolean {
    return this.#token() !== '';
  }

  /** True if the API token is long enough that guesses need no limit. */
  get isUnguessable(): boolean {
    return isUnguessable(this.#token());
  }

  /** Who an `Authorization` header is of; null where it holds no token that is right. */
  holderOf(header = ''): TokenHolder | null {
    const given = bearerOf(header);
    if (given === undefined) return null;
    const session = this.#sessions.holder(given);
    if (session !== null) return { session };
    return !isPanelToken(given) && this.isToken(given) ? { session: null } : null;
  }

  /** True where a header says that it is of a session of the panel, which may have ended: nobody guesses those. */
  isOfSession(header: string): boolean {
    return isPanelToken(bearerOf(header) ?? '');
  }

  /** True for the API token; without a token of ours nothing is. */
  isToken(text: string): boolean {
    const token = this.#token();
    return token !== '' && timingSafeEqual(this.#hash(text), this.#hash(token));
  }

  #hash(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}
