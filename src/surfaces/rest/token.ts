/** The management token of a request. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export type TokenState = 'absent' | 'right' | 'wrong';

const COMPARISON_KEY_BYTES = 32;

/** Compares tokens in a time that depends on neither of them. */
export class TokenCheck {
  readonly #token: () => string;
  /** Both sides are hashed under a key that nobody knows: equal lengths, nothing to learn from a time. */
  readonly #key = randomBytes(COMPARISON_KEY_BYTES);

  /** @param token gives the token of this moment; empty means that there is none */
  constructor(token: () => string) {
    this.#token = token;
  }

  /** True where there is a token at all. */
  get set(): boolean {
    return this.#token() !== '';
  }

  /** What an `Authorization` header says. Without a token of ours every header is as good as none. */
  check(header: string | undefined): TokenState {
    const token = this.#token();
    if (token === '' || header === undefined) return 'absent';
    const given = /^Bearer +(\S+) *$/i.exec(header)?.[1];
    if (given === undefined) return 'wrong';
    return timingSafeEqual(this.#hash(given), this.#hash(token)) ? 'right' : 'wrong';
  }

  #hash(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}
