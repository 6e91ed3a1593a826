/** The API for the rest of the daemon: available before it is created, and started and stopped as a whole. */
import type { Duplex } from 'node:stream';
import type { RequestObserver } from '../capabilities/remote-admin/admin-session.ts';
import type { Address } from '../foundation/address.ts';
import type { Component } from '../foundation/lifecycle.ts';
import type { RestServer } from '../surfaces/rest/server.ts';

/** A reference to the API for components that are created before it. It is empty until the API is attached. */
export class ApiReference {
  readonly #listens: boolean;
  #rest: Pick<RestServer, 'address' | 'serveRemoteAdmin'> | null = null;

  /** @param listens false if it only serves remote administration */
  constructor(listens: boolean) {
    this.#listens = listens;
  }

  attach(rest: Pick<RestServer, 'address' | 'serveRemoteAdmin'>): void {
    this.#rest = rest;
  }

  /** The listen address; null if it does not listen. */
  get address(): Address | null {
    return this.#listens ? (this.#rest?.address ?? null) : null;
  }

  /** Serves the API on a link of an administrator, never as local. */
  serveRemoteAdmin(stream: Duplex, observer: RequestObserver): void {
    if (this.#rest === null) stream.destroy();
    else this.#rest.serveRemoteAdmin(stream, observer);
  }
}

/**
 * The listener and its endless streams. The streams are closed first, because the listener waits for requests in
 * progress.
 */
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
