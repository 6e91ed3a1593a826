/** What a client says before its connection is joined, as far as it may be taken off it by then. */
import type { Readable } from 'node:stream';

/** The most of it, bytes: the beginning of a request or a handshake. */
export const MAX_EARLY_BYTES: number = 16 * 1024;

export class EarlyBytes {
  readonly #client: Readable;
  readonly #taken: (bytes: number) => void;
  #left = MAX_EARLY_BYTES;
  /** Called when there is more to take. */
  onMore: (() => void) | null = null;

  /** @param taken told how many bytes were taken */
  constructor(client: Readable, taken: (bytes: number) => void) {
    this.#client = client;
    this.#taken = taken;
    client.on('readable', this.#readable);
  }

  readonly #readable = (): void => this.onMore?.();

  /** What it has said by now; null where that is nothing, or enough was taken. */
  take(): Buffer | null {
    const length = Math.min(this.#client.readableLength, this.#left);
    const said: unknown = length > 0 ? this.#client.read(length) : null;
    if (!(said instanceof Buffer)) return null;
    this.#left -= said.length;
    this.#taken(said.length);
    return said;
  }

  /** Leaves the client to who is joined with it. */
  stop(): void {
    this.onMore = null;
    this.#client.off('readable', this.#readable);
  }
}
