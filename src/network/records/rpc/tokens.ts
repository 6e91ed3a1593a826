/**
 * Tokens that prove an address: a node can return the token only if it receives datagrams at its address. A previous
 * owner of an address can use its token until it expires: use up the limits of the address, and direct answers to it.
 */
import { createHmac } from 'node:crypto';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';

export const TOKEN_SECRET_BYTES = 32;
/** A token is valid for one to two of these periods, milliseconds. */
const TOKEN_PERIOD_MS = 300_000;

export class AddressTokens {
  readonly #clock: Clock;
  readonly #secret: Uint8Array;

  constructor(secret: Uint8Array, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
  }

  for(host: string): Uint8Array {
    return this.#of(host, this.#period());
  }

  isValid(token: Uint8Array, host: string): boolean {
    const period = this.#period();
    return equalBytes(token, this.#of(host, period)) || equalBytes(token, this.#of(host, period - 1));
  }

  #period(): number {
    return Math.floor(this.#clock.monotonic() / TOKEN_PERIOD_MS);
  }

  #of(host: string, period: number): Uint8Array {
    return createHmac('sha256', this.#secret).update(`${period} ${host}`).digest();
  }
}
