/** The addresses of this machine's interfaces. The kernel takes a tenth of a millisecond to list them, and every dial and publication asks. */
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../foundation/clock.ts';
import type { InterfaceAddress } from './path-kind.ts';

/** For how long what was read is believed, milliseconds: as long as it takes until a change is noticed at all. */
export const BELIEVED_MS = 1000;

export class InterfaceAddresses {
  readonly #clock: Clock;
  readonly #read: typeof networkInterfaces;
  #addresses: readonly InterfaceAddress[] = [];
  #readAt = Number.NEGATIVE_INFINITY;

  constructor({
    clock,
    read = networkInterfaces,
  }: { readonly clock: Clock; readonly read?: typeof networkInterfaces }) {
    this.#clock = clock;
    this.#read = read;
  }

  /** Those of this moment. */
  look(): readonly InterfaceAddress[] {
    this.#readAt = this.#clock.now();
    this.#addresses = Object.values(this.#read()).flatMap((all) => all ?? []);
    return this.#addresses;
  }

  /** Those of a second ago at most. */
  recent(): readonly InterfaceAddress[] {
    const age = this.#clock.now() - this.#readAt;
    return age >= 0 && age < BELIEVED_MS ? this.#addresses : this.look();
  }
}
