/**
 * Local addresses of remote agents: each is a port on 127.0.0.1 through which any program speaks HTTP with one remote
 * agent. They stay open until you close them, and keep their port after a restart.
 */
import { KeyedMutex } from '../../foundation/concurrency.ts';
import { MAX_ORIGINS } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import type { OriginStore, SavedOrigin } from '../../foundation/store/origins.ts';

export interface OriginsDependencies extends NodeParts {
  readonly memory: OriginStore;
  readonly serve: ServeOrigin;
  /** Checks that the remote agent accepts this caller, before the address is opened. @throws SvcError */
  readonly probe: (request: OriginRequest) => Promise<void>;
}

interface Origin {
  saved: SavedOrigin;
  /** Null if its port is not available. */
  listener: OriginListener | null;
}

function noSuchOrigin(id: string): SvcError {
  return new SvcError('not_found', {
    thing: 'origin',
    message: `There is no local address with ID "${id}".`,
    details: { id },
  });
}

function pairKey({ localAid, remoteAid }: Pick<OriginRequest, 'localAid' | 'remoteAid'>): string {
  return `${localAid} ${remoteAid}`;
}

/** True if the request matches the existing address. */
function isUnchanged(saved: SavedOrigin, { port, accessToken }: OriginRequest): boolean {
  return (port === 0 || port === saved.port) && (accessToken === undefined || accessToken === saved.accessToken);
}

function infoOf({ saved, listener }: Origin): OriginInfo {
  return {
    id: saved.id,
    localAid: saved.localAid,
    remoteAid: saved.remoteAid,
    url: `http://127.0.0.1:${saved.port}`,
    isServed: listener !== null,
    openedAt: saved.openedAt,
    connections: listener?.connections ?? 0,
    served: listener?.served ?? 0,
    lastError: listener?.lastError ?? null,
  };
}

export class Origins implements Component {
  readonly #deps: OriginsDependencies;
  readonly #origins = new Map<string, Origin>();
  /** Places of addresses that are being opened. */
  #reserved = 0;
  /** One change at a time per caller and remote agent. */
  readonly #turns = new KeyedMutex();

  constructor(dependencies: OriginsDependencies) {
    this.#deps = { ...dependencies, log: dependencies.log.child('origins') };
  }

  /** Opens the saved addresses. The agents are dialed on the first request. */
  async start(): Promise<void> {
    await this.#restore(this.#deps.memory.list());
  }

  /** Opens the saved addresses of an agent that moved here. Returns the ports that are in use. */
  async resume(localAid: Aid): Promise<number[]> {
    return this.#restore(this.#deps.memory.list().filter((saved) => saved.localAid === localAid));
  }

  /** Returns the ports that could not be opened. */
  async #restore(saved: readonly SavedOrigin[]): Promise<number[]> {
    const taken: number[] = [];
    for (const one of saved) {
      const origin: Origin = { saved: one, listener: null };
      this.#origins.set(one.id, origin);
      try {
        await this.#listen(origin);
      } catch (error) {
        taken.push(one.port);
        this.#deps.log.warn({ origin: one.id, port: one.port, error }, 'failed to open a saved local address');
      }
    }
    return taken;
  }

  /** Closes every listener; the addresses stay saved. */
  async stop(): Promise<void> {
    await Promise.all([...this.#origins.values()].map(async ({ listener }) => listener?.close()));
  }

  /**
   * Opens a local address of an agent. An existing address is reused: it changes to the given access token and port.
   * @returns the address and whether it existed before
   * @throws SvcError `port_in_use`, `quota_exceeded`, and errors of reaching the agent
   */
  async open(request: OriginRequest): Promise<{ readonly origin: OriginInfo; readonly reused: boolean }> {
    const { localAid, remoteAid } = request;
    return this.#turns.run(pairKey(request), async () => {
      const existing = this.#of(localAid, remoteAid);
      if (existing?.listener && isUnchanged(existing.saved, request)) return { origin: infoOf(existing), reused: true };
      if (existing === undefined) return { origin: await this.#addInPlace(request), reused: false };
      await this.#deps.probe(request);
      return { origin: await this.#change(existing, request), reused: true };
    });
  }

  list(): OriginInfo[] {
    return [...this.#origins.values()].map(infoOf);
  }

  /** @throws SvcError `not_found` */
  async close(id: string): Promise<void> {
    const origin = this.#origins.get(id);
    if (origin === undefined) throw noSuchOrigin(id);
    await this.#end(origin);
  }

  /** Closes the addresses of a deleted agent. */
  async closeAllOf(localAid: Aid): Promise<void> {
    const closing = [...this.#origins.values()].filter(({ saved }) => saved.localAid === localAid);
    await Promise.all(closing.map((origin) => this.#end(origin)));
  }

  #of(localAid: Aid, remoteAid: Aid): Origin | undefined {
    return [...this.#origins.values()].find(
      ({ saved }) => saved.localAid === localAid && saved.remoteAid === remoteAid,
    );
  }

  /** Adds an address in a place that is reserved meanwhile. @throws SvcError `quota_exceeded` if there is none */
  async #addInPlace(request: OriginRequest): Promise<OriginInfo> {
    if (this.#origins.size + this.#reserved >= MAX_ORIGINS)
      throw new SvcError('quota_exceeded', {
        message: `${MAX_ORIGINS} local addresses are open, which is the limit. Close some first.`,
        details: { limit: MAX_ORIGINS },
      });
    this.#reserved++;
    try {
      await this.#deps.probe(request);
      return await this.#add(request);
    } finally {
      this.#reserved--;
    }
  }

  async #add(request: OriginRequest): Promise<OriginInfo> {
    const origin: Origin = {
      saved: { ...request, accessToken: request.accessToken, id: newId(), openedAt: this.#deps.clock.now() },
      listener: null,
    };
    await this.#listen(origin);
    this.#origins.set(origin.saved.id, origin);
    this.#deps.memory.save(origin.saved);
    return infoOf(origin);
  }

  /** The old listener is closed only after the new one listens, so an unavailable port changes nothing. */
  async #change(origin: Origin, { port, accessToken }: OriginRequest): Promise<OriginInfo> {
    const { saved, listener } = origin;
    const moves = listener === null || (port !== 0 && port !== saved.port);
    if (moves) {
      const next: Origin = { saved: { ...saved, port: port === 0 ? saved.port : port }, listener: null };
      await this.#listen(next);
      Object.assign(origin, next);
      await listener?.close();
    }
    origin.saved = { ...origin.saved, accessToken: accessToken ?? saved.accessToken };
    this.#deps.memory.save(origin.saved);
    return infoOf(origin);
  }

  /** Starts listening and stores the port. */
  async #listen(origin: Origin): Promise<void> {
    const { id } = origin.saved;
    const listener = await this.#deps.serve(() => (this.#origins.get(id) ?? origin).saved, origin.saved.port);
    origin.listener = listener;
    origin.saved = { ...origin.saved, port: listener.port };
  }

  /** Waits for a running change, which would otherwise save the address again. */
  async #end(origin: Origin): Promise<void> {
    await this.#turns.run(pairKey(origin.saved), async () => {
      if (!this.#origins.delete(origin.saved.id)) return;
      this.#deps.memory.delete(origin.saved.id);
      await origin.listener?.close();
    });
  }
}

// Types of the local addresses of remote agents.

/** The remote agent, and the local agent that calls it. */
export interface OriginRequest {
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  readonly accessToken?: string | undefined;
  /** 0: the system chooses a port, which the address keeps. */
  readonly port: number;
}

/** The reason why a request or a connection failed. */
export interface OriginFailure {
  /** An error code. */
  readonly code: string;
  readonly message: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Accepts requests of programs at an address. */
export interface OriginListener {
  readonly port: number;
  readonly connections: number;
  /** Requests, and connections of other protocols, since the start. */
  readonly served: number;
  readonly lastError: OriginFailure | null;
  /** Closes all connections. The port is free when this resolves. */
  close(): Promise<void>;
}

/** The remote agent and the caller of a listener, read at each request. */
export type OriginTarget = () => Omit<OriginRequest, 'port'> & { readonly id: string };

/** Starts listening on a port of 127.0.0.1. @throws SvcError `port_in_use` */
export type ServeOrigin = (target: OriginTarget, port: number) => Promise<OriginListener>;

export interface OriginInfo {
  readonly id: string;
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** False if its port was in use when the daemon started. */
  readonly isServed: boolean;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly connections: number;
  readonly served: number;
  readonly lastError: OriginFailure | null;
}
