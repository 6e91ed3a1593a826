/**
 * Local addresses that are remote agents: for each one a port of 127.0.0.1 where any program speaks HTTP with the
 * agent as if it ran here. They stand until they are closed, with the same port after a restart.
 */
import type { Clock } from '../../foundation/clock.ts';
import { MAX_ORIGINS } from '../../foundation/domain/origins.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import { KeyedMutex } from '../../foundation/keyed-mutex.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import type { OriginStore, SavedOrigin } from '../../foundation/store/origins.ts';
import type { OriginInfo, OriginListener, OriginRequest, ServeOrigin } from './types.ts';

export interface OriginsDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: OriginStore;
  readonly serve: ServeOrigin;
  /** Asks whether the remote agent would serve this caller, before an address is promised. @throws SvcError */
  readonly probe: (request: OriginRequest) => Promise<void>;
}

interface Origin {
  saved: SavedOrigin;
  /** Null where its port was not to be had. */
  listener: OriginListener | null;
}

function missing(id: string): SvcError {
  return new SvcError('not_found', {
    thing: 'origin',
    message: `There is no local address "${id}" of a remote agent.`,
    details: { id },
  });
}

function turnOf({ localAid, remoteAid }: Pick<OriginRequest, 'localAid' | 'remoteAid'>): string {
  return `${localAid} ${remoteAid}`;
}

/** Nothing of a standing address is asked to be otherwise. */
function isSame(saved: SavedOrigin, { port, accessToken }: OriginRequest): boolean {
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
  /** One change at a time of what one agent has of another. */
  readonly #turns = new KeyedMutex();

  constructor(dependencies: OriginsDependencies) {
    this.#deps = { ...dependencies, log: dependencies.log.child('origins') };
  }

  /** Serves again at the saved addresses; the agents are dialled when a program asks. */
  async start(): Promise<void> {
    await this.#restore(this.#deps.memory.list());
  }

  /** Serves the saved addresses of an agent that moved here; gives the ports that are taken. */
  async resume(localAid: Aid): Promise<number[]> {
    return this.#restore(this.#deps.memory.list().filter((saved) => saved.localAid === localAid));
  }

  /** The ports of those that cannot be served. */
  async #restore(saved: readonly SavedOrigin[]): Promise<number[]> {
    const taken: number[] = [];
    for (const one of saved) {
      const origin: Origin = { saved: one, listener: null };
      this.#origins.set(one.id, origin);
      try {
        await this.#listen(origin);
      } catch (error) {
        taken.push(one.port);
        this.#deps.log.warn({ origin: one.id, port: one.port, error }, 'a saved local address cannot be served');
      }
    }
    return taken;
  }

  /** Closes every listener; the addresses stay saved. */
  async stop(): Promise<void> {
    await Promise.all([...this.#origins.values()].map(async ({ listener }) => listener?.close()));
  }

  /**
   * Opens the address of an agent, or gives the one that stands: it then presents the access token that is named, and
   * moves to the port that is named.
   * @returns the address and whether it stood already
   * @throws SvcError `port_in_use`, `quota_exceeded`, and what reaching the agent may give
   */
  async open(request: OriginRequest): Promise<{ readonly origin: OriginInfo; readonly reused: boolean }> {
    const { localAid, remoteAid } = request;
    return this.#turns.run(turnOf(request), async () => {
      const standing = this.#of(localAid, remoteAid);
      if (standing?.listener && isSame(standing.saved, request)) return { origin: infoOf(standing), reused: true };
      if (standing === undefined && this.#origins.size >= MAX_ORIGINS)
        throw new SvcError('quota_exceeded', {
          message: `${MAX_ORIGINS} local addresses are open: close some first.`,
          details: { limit: MAX_ORIGINS },
        });
      await this.#deps.probe(request);
      if (standing === undefined) return { origin: await this.#add(request), reused: false };
      return { origin: await this.#change(standing, request), reused: true };
    });
  }

  list(): OriginInfo[] {
    return [...this.#origins.values()].map(infoOf);
  }

  /** @throws SvcError `not_found` */
  async close(id: string): Promise<void> {
    const origin = this.#origins.get(id);
    if (origin === undefined) throw missing(id);
    await this.#end(origin);
  }

  /** Closes the addresses that an agent calls from, which is unregistered. */
  async forget(localAid: Aid): Promise<void> {
    const gone = [...this.#origins.values()].filter(({ saved }) => saved.localAid === localAid);
    await Promise.all(gone.map((origin) => this.#end(origin)));
  }

  #of(localAid: Aid, remoteAid: Aid): Origin | undefined {
    return [...this.#origins.values()].find(
      ({ saved }) => saved.localAid === localAid && saved.remoteAid === remoteAid,
    );
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

  /** The old listener ends when the new one stands: a port that is not to be had costs nothing. */
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

  /** Begins to serve, and notes the port. */
  async #listen(origin: Origin): Promise<void> {
    const { id } = origin.saved;
    const listener = await this.#deps.serve(() => (this.#origins.get(id) ?? origin).saved, origin.saved.port);
    origin.listener = listener;
    origin.saved = { ...origin.saved, port: listener.port };
  }

  /** After a change that is under way: that one would save it again. */
  async #end(origin: Origin): Promise<void> {
    await this.#turns.run(turnOf(origin.saved), async () => {
      if (!this.#origins.delete(origin.saved.id)) return;
      this.#deps.memory.delete(origin.saved.id);
      await origin.listener?.close();
    });
  }
}
