/** The management token of a request. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

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

  /** True where an `Authorization` header holds the token; without a token of ours none does. */
  isRight(header = ''): boolean {
    const token = this.#token();
    const given = /^Bearer +(\S+) *$/i.exec(header)?.[1];
    return token !== '' && given !== undefined && timingSafeEqual(this.#hash(given), this.#hash(token));
  }

  #hash(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}
