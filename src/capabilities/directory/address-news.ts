/**
 * Whether the records that are out say where this node is now. It is remembered over a restart: a node that comes back to
 * where it was need not bring out the records of a thousand agents anew.
 */
import { createHash } from 'node:crypto';
import type { MetaStore } from '../../foundation/store/meta.ts';
import type { NodeAddresses } from '../../network/reach/own-addresses.ts';

/** Under it stands the hash of what all records that are out say; null where one of them may say something else. */
const KEY = 'directory.said_addresses';

function hashOf(addresses: NodeAddresses): string {
  return createHash('sha256').update(JSON.stringify(addresses)).digest('base64');
}

export class AddressNews {
  readonly #memory: Pick<MetaStore, 'get' | 'set'>;
  readonly #addresses: () => NodeAddresses;
  #said: unknown;

  constructor(memory: Pick<MetaStore, 'get' | 'set'>, addresses: () => NodeAddresses) {
    this.#memory = memory;
    this.#addresses = addresses;
    this.#said = memory.get(KEY);
  }

  /** A record goes out that says this. */
  goesOut(addresses: NodeAddresses): void {
    if (this.#said === null || hashOf(addresses) === this.#said) return;
    this.#memory.set(KEY, null);
    this.#said = null;
  }

  /**
   * Has all records marked to go out anew, where they say something else than what is so now.
   * @param mark does so, and calls what it is given in the same transaction
   */
  tell(mark: (remember: () => void) => void): void {
    const now = hashOf(this.#addresses());
    if (now === this.#said) return;
    mark(() => this.#memory.set(KEY, now));
    this.#said = now;
  }
}
