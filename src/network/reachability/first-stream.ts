/** A connection of the engine whose first stream has been taken already, and is given out once more. */
import type { EngineConnection, EngineConnectionStats, EngineStream } from '../transport/quic/engine.ts';

export class WithFirstStream implements EngineConnection {
  readonly #inner: EngineConnection;
  #first: EngineStream | null;

  constructor(inner: EngineConnection, first: EngineStream) {
    this.#inner = inner;
    this.#first = first;
  }

  async inboundStream(): Promise<EngineStream> {
    const first = this.#first;
    this.#first = null;
    return first ?? (await this.#inner.inboundStream());
  }

  outboundStream(): Promise<EngineStream> {
    return this.#inner.outboundStream();
  }

  remoteMultiaddr(): string {
    return this.#inner.remoteMultiaddr();
  }

  rtt(): number {
    return this.#inner.rtt();
  }

  stats(): EngineConnectionStats {
    return this.#inner.stats();
  }

  closed(): Promise<void> {
    return this.#inner.closed();
  }

  abort(): void {
    this.#inner.abort();
  }
}
