import { Tally } from '../../foundation/tally.ts';

/** Who uses how much of the record store. */
export class StorageUsage {
  readonly #bytes = new Tally();
  #records = 0;

  get bytes(): number {
    return this.#bytes.total;
  }

  get records(): number {
    return this.#records;
  }

  /** Adds to (or, below 0, takes from) a publisher's share. */
  add(publisher: string, bytes: number, records: number): void {
    this.#bytes.add(publisher, bytes);
    this.#records += records;
  }

  /** The publisher with the largest share, were `bytes` more added to that of `newcomer`; among equals the newcomer. */
  largest(newcomer: string, bytes: number): string {
    let largest = newcomer;
    let most = this.#bytes.of(newcomer) + bytes;
    for (const [publisher, share] of this.#bytes)
      if (publisher !== newcomer && share > most) [largest, most] = [publisher, share];
    return largest;
  }
}
