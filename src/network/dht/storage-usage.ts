interface Share {
  bytes: number;
  records: number;
}

/** Who uses how much of the record store. */
export class StorageUsage {
  readonly #shares = new Map<string, Share>();
  #bytes = 0;
  #records = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get records(): number {
    return this.#records;
  }

  /** Adds to (or, below 0, takes from) a publisher's share. */
  add(publisher: string, bytes: number, records: number): void {
    const share = this.#shares.get(publisher) ?? { bytes: 0, records: 0 };
    share.bytes += bytes;
    share.records += records;
    if (share.records > 0) this.#shares.set(publisher, share);
    else this.#shares.delete(publisher);
    this.#bytes += bytes;
    this.#records += records;
  }

  /** The publisher with the largest share, were `bytes` more added to that of `newcomer`; among equals the newcomer. */
  largest(newcomer: string, bytes: number): string {
    let largest = newcomer;
    let most = (this.#shares.get(newcomer)?.bytes ?? 0) + bytes;
    for (const [publisher, share] of this.#shares) {
      if (publisher !== newcomer && share.bytes > most) {
        most = share.bytes;
        largest = publisher;
      }
    }
    return largest;
  }
}
