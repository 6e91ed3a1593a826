/** The API as the rest of the daemon has it: known to what is made before it, and started and stopped as one. */
import type { Duplex } from 'node:stream';
import type { RequestObserver } from '../capabilities/remote-admin/admin-session.ts';
import type { Address } from '../foundation/address.ts';
import type { Component } from '../foundation/lifecycle.ts';
import type { RestServer } from '../surfaces/rest/server.ts';

/** The API for the parts that are made before it: nothing until it is attached. */
export class ApiReference {
  readonly #listens: boolean;
  #rest: Pick<RestServer, 'address' | 'serveRemoteAdmin'> | null = null;

  /** @param listens false where it serves administrators only */
  constructor(listens: boolean) {
    this.#listens = listens;
  }

  attach(rest: Pick<RestServer, 'address' | 'serveRemoteAdmin'>): void {
    this.#rest = rest;
  }

  /** Where it listens; null where it does not. */
  get address(): Address | null {
    return this.#listens ? (this.#rest?.address ?? null) : null;
  }

  /** Serves it on a link of an administrator, never as local. */
  serveRemoteAdmin(stream: Duplex, observer: RequestObserver): void {
    if (this.#rest === null) stream.destroy();
    else this.#rest.serveRemoteAdmin(stream, observer);
  }
}

/** The listener and the streams without end that it serves: those end first, as it waits for what is under way. */
export class Api implements Component {
  readonly #parts: { readonly streams: readonly Component[]; readonly rest: Component };

  constructor(parts: { readonly streams: readonly Component[]; readonly rest: Component }) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    for (const stream of this.#parts.streams) await stream.start();
    await this.#parts.rest.start();
  }

  async stop(): Promise<void> {
    try {
      await Promise.all(this.#parts.streams.map((stream) => stream.stop()));
    } finally {
      await this.#parts.rest.stop();
    }
  }
}
