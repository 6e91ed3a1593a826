/** Tunnels to remote agents: opened, reused, listed, reset, closed, and restored after a restart. */
import type { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { SingleFlight } from '../../foundation/concurrency.ts';
import { abortable } from '../../foundation/deadline.ts';
import { CLIENT_WAIT_MS, DEFAULT_IDLE_TIMEOUT_S, MAX_TUNNELS } from '../../foundation/domain/tunnels.ts';
import { ERRORS, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { serviceFailure } from '../../foundation/service-failure.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { SavedTunnel, TunnelStore } from '../../foundation/store/tunnels.ts';
import type { AskOptions, AskOwner, LinkPath, LinkPaths, LinkStream, Links } from '../../network/links/types.ts';
import type { BulkStreams } from '../../network/transport/types.ts';
import { ClosedTunnels } from './closed-tunnels.ts';
import { readStatus } from './frames.ts';
import { OutboundConnections } from './outbound.ts';
import { TUNNEL_ASK, Tunnel } from './tunnel.ts';
import type { ClosedTunnel, TunnelInfo, TunnelRequest, TunnelWish } from './types.ts';

/** How long the first contact with the remote agent may take, milliseconds. */
export const PROBE_TIMEOUT_MS = 30_000;

/** The path to an agent before the first contact. */
const NO_PATH: LinkPath = { kind: 'direct', remote: null, source: null, rttMs: 0 };

const NO_WAIT: AskOptions = { note: '', waitS: 0 };

/** The two agents of a connection. */
type Whom = Pick<TunnelRequest, 'localAid' | 'remoteAid'> & { readonly accessToken?: string | undefined };

/** Stores the tunnels with a fixed port. */
export type TunnelMemory = Pick<TunnelStore, 'save' | 'delete' | 'list'>;

export interface TunnelServiceDependencies extends NodeParts {
  readonly links: Links & LinkPaths;
  readonly bulk: BulkStreams;
  readonly memory: TunnelMemory;
  /** Asks the owner of an agent that refused a tunnel. */
  readonly askOwner: AskOwner;
}

export class TunnelService {
  readonly #deps: TunnelServiceDependencies & { readonly connections: OutboundConnections };
  readonly #tunnels = new Map<string, Tunnel>();
  /** Listeners for one TCP connection. Each waits for its client and closes with it. */
  readonly #oneShots = new Set<Tunnel>();
  /** Places of tunnels that are being opened. */
  #reserved = 0;
  readonly #closedLast = new ClosedTunnels();
  /** Tunnels that are being opened. A second request for the same tunnel waits for the first. */
  readonly #opening = new SingleFlight<Tunnel>();
  #stopping = false;

  constructor(dependencies: TunnelServiceDependencies) {
    const { clock, links, bulk } = dependencies;
    this.#deps = { ...dependencies, connections: new OutboundConnections(clock, links, bulk) };
  }

  /** Listens again on the ports of the saved tunnels. Their agents are dialed when a client connects. */
  async start(): Promise<void> {
    await this.#restore(this.#deps.memory.list());
  }

  /** Listens on the ports of the saved tunnels of an agent that moved here. Returns the ports that are in use. */
  async resume(localAid: Aid): Promise<number[]> {
    return this.#restore(this.#deps.memory.list().filter((saved) => saved.localAid === localAid));
  }

  /** Closes every listener. Saved tunnels stay saved. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#deps.connections.stop();
    await Promise.all([...this.#tunnels.values(), ...this.#oneShots].map((t) => t.close('asked')));
  }

  /**
   * Opens a tunnel, or changes the open tunnel between the same agents on the same port: it presents a new access token
   * if the remote agent accepts it, stops using relays if the request forbids them, and gets the requested idle
   * timeout.
   * @returns the tunnel, and whether it was open already
   * @throws SvcError `port_in_use`, `relay_required`, `quota_exceeded`, and the errors of reaching the agent
   */
  async open(request: TunnelWish, access: AskOptions = NO_WAIT): Promise<{ tunnel: TunnelInfo; reused: boolean }> {
    const existing = this.#find(request);
    if (existing !== undefined) return this.#reuse(existing, request, access);
    const wanted = { ...request, idleTimeoutSec: request.idleTimeoutSec || DEFAULT_IDLE_TIMEOUT_S };
    const key = `${wanted.localAid} ${wanted.remoteAid} ${wanted.localPort}`;
    const reused = this.#opening.has(key);
    const tunnel = await this.#opening.run(key, () => this.#open(wanted, access));
    return reused ? this.#reuse(tunnel, request, access) : { tunnel: tunnel.info(), reused };
  }

  async #reuse(
    existing: Tunnel,
    request: TunnelWish,
    access: AskOptions,
  ): Promise<{ tunnel: TunnelInfo; reused: boolean }> {
    return (await this.#present(existing, request))
      ? { tunnel: existing.info(), reused: true }
      : this.open(request, access);
  }

  /**
   * Opens a listener for one TCP connection.
   * @returns its `host:port`
   * @throws SvcError `relay_required`, `quota_exceeded`, and the errors of reaching the agent
   */
  async connect(
    request: Omit<TunnelWish, 'localPort' | 'idleTimeoutSec'>,
    access: AskOptions = NO_WAIT,
  ): Promise<string> {
    return this.#inPlace(async () => {
      const whole = { ...request, localPort: 0, idleTimeoutSec: CLIENT_WAIT_MS / 1000 };
      const path = await this.#probeOrAsk(whole, access);
      const oneShot = new Tunnel('', whole, path, this.#deps, () => this.#oneShots.delete(oneShot));
      oneShot.serveOnlyOne();
      await oneShot.listen();
      this.#oneShots.add(oneShot);
      return oneShot.info().listen;
    });
  }

  /**
   * Connects an accepted TCP connection to the service of an agent, like the connection of a tunnel.
   * @param refused receives the failure if the called side does not connect, or its service gives no answer
   * @throws SvcError as `Links.open`
   */
  async carry(socket: Socket, request: Whom, refused: (failure: SvcError) => void): Promise<void> {
    const { localAid, remoteAid, accessToken } = request;
    const gone = new AbortController();
    const onGone = (): void => gone.abort();
    socket.once('close', onGone);
    const options = { timeoutMs: PROBE_TIMEOUT_MS, signal: gone.signal, accessToken };
    const connection = await this.#deps.connections.open(localAid, remoteAid, options);
    if (socket.destroyed) return connection.destroy();
    socket.off('close', onGone);
    connection.join(socket, { refused, unanswered: () => refused(serviceFailure('closed')) }, true);
  }

  /** Checks that the service of an agent accepts a connection. @throws SvcError if it does not */
  async probe(request: Whom): Promise<void> {
    await this.#probe({ ...request, disableRelay: false });
  }

  list(): TunnelInfo[] {
    return [...this.#tunnels.values()].map((t) => t.info());
  }

  /** The tunnels that closed last, newest first. */
  closed(): ClosedTunnel[] {
    return this.#closedLast.list();
  }

  /** @throws SvcError `not_found` */
  get(id: string): TunnelInfo {
    return this.#byId(id).info();
  }

  /** @throws SvcError `not_found`; `not_writable`: it is still open */
  async close(id: string): Promise<void> {
    const tunnel = this.#byId(id);
    if (tunnel.request.localPort !== 0) this.#deps.memory.delete(id);
    await tunnel.close('asked');
  }

  /**
   * Drops the tunnel's connections and the path to its agent. The next client dials again.
   * @throws SvcError `not_found`
   */
  reset(id: string): void {
    const tunnel = this.#byId(id);
    tunnel.reset();
    this.#deps.links.reset(tunnel.request.remoteAid);
  }

  /** Connections, and the bytes kept for them. */
  get connections(): OutboundConnections['counts'] {
    return this.#deps.connections.counts;
  }

  /** Open tunnels and listeners for one connection. */
  get active(): number {
    return this.#tunnels.size + this.#oneShots.size;
  }

  /** Closes the tunnels of an agent that is unregistered. */
  async forget(localAid: Aid): Promise<void> {
    await Promise.all(
      [...this.#tunnels.values()].filter((t) => t.request.localAid === localAid).map((t) => t.close('agent_gone')),
    );
  }

  async #restore(all: readonly SavedTunnel[]): Promise<number[]> {
    const taken: number[] = [];
    for (const saved of all) {
      try {
        await this.#inPlace(() => this.#listen(saved.id, saved, NO_PATH));
      } catch (error) {
        taken.push(saved.localPort);
        this.#closedLast.add(this.#notRestored(saved, NO_PATH, error));
        this.#deps.log.warn({ tunnel: saved.id, port: saved.localPort }, 'a saved tunnel cannot listen on its port');
      }
    }
    return taken;
  }

  #byId(id: string): Tunnel {
    const tunnel = this.#tunnels.get(id);
    if (tunnel === undefined) throw this.#closedLast.missing(id);
    return tunnel;
  }

  #find({ localAid, remoteAid, localPort }: TunnelWish): Tunnel | undefined {
    return [...this.#tunnels.values()].find(
      (t) =>
        t.request.localAid === localAid &&
        t.request.remoteAid === remoteAid &&
        (t.request.localPort === localPort || t.port === localPort),
    );
  }

  /**
   * Changes an open tunnel as requested: its access token, its idle timeout, and whether it may use relays. False if it
   * has closed meanwhile.
   */
  async #present(tunnel: Tunnel, request: TunnelWish): Promise<boolean> {
    const { accessToken = tunnel.request.accessToken, idleTimeoutSec = tunnel.request.idleTimeoutSec } = request;
    const disableRelay = request.disableRelay || tunnel.request.disableRelay;
    const changed = {
      ...tunnel.request,
      accessToken,
      disableRelay,
      idleTimeoutSec: idleTimeoutSec || DEFAULT_IDLE_TIMEOUT_S,
    };
    if (accessToken !== tunnel.request.accessToken || disableRelay !== tunnel.request.disableRelay)
      await this.#probe(changed);
    if (this.#tunnels.get(tunnel.id) !== tunnel) return false;
    const isSame = isDeepStrictEqual(changed, tunnel.request);
    tunnel.change(changed);
    if (!isSame && tunnel.request.localPort !== 0) this.#deps.memory.save({ ...tunnel.request, id: tunnel.id });
    return true;
  }

  /** Opens a tunnel in a place that is reserved meanwhile. @throws SvcError `quota_exceeded` if there is none */
  async #inPlace<T>(open: () => Promise<T>): Promise<T> {
    if (this.active + this.#reserved >= MAX_TUNNELS)
      throw new SvcError('quota_exceeded', {
        message: `${MAX_TUNNELS} tunnels are open: close some first.`,
        details: { limit: MAX_TUNNELS },
      });
    this.#reserved++;
    try {
      return await open();
    } finally {
      this.#reserved--;
    }
  }

  async #open(request: TunnelRequest, access: AskOptions): Promise<Tunnel> {
    const tunnel = await this.#inPlace(async () => {
      const path = await this.#probeOrAsk(request, access);
      return this.#listen(newId(), request, path);
    });
    try {
      if (request.localPort !== 0) this.#deps.memory.save({ ...request, id: tunnel.id });
    } catch (error) {
      await tunnel.close('asked');
      throw error;
    }
    return tunnel;
  }

  async #listen(id: string, request: TunnelRequest, path: LinkPath): Promise<Tunnel> {
    const tunnel = new Tunnel(id, request, path, this.#deps, (end) => this.#closed(end));
    await tunnel.listen();
    this.#tunnels.set(id, tunnel);
    return tunnel;
  }

  #closed(end: ClosedTunnel): void {
    this.#tunnels.delete(end.id);
    this.#closedLast.add(end);
    if (this.#stopping) return;
    try {
      this.#deps.memory.delete(end.id);
    } catch (error) {
      this.#deps.log.warn({ tunnel: end.id, error }, 'a closed tunnel cannot be removed from the database');
    }
  }

  /** A saved tunnel whose port is in use. The next start tries again. */
  #notRestored(saved: SavedTunnel, path: LinkPath, error: unknown): ClosedTunnel {
    const at = this.#deps.clock.now();
    const code = error instanceof SvcError ? error.code : 'internal';
    const message = error instanceof SvcError ? error.message : ERRORS.internal.message;
    return {
      ...new Tunnel(saved.id, saved, path, this.#deps, () => {}).info(),
      closedAt: at,
      reason: 'port_in_use',
      lastError: { code, message, at },
    };
  }

  /** As `#probe`. If the agent refuses, this asks its owner. @throws SvcError also `access_pending` */
  async #probeOrAsk(request: TunnelRequest, access: AskOptions): Promise<LinkPath> {
    try {
      return await this.#probe(request);
    } catch (error) {
      const isRefused = error instanceof SvcError && error.code === 'access_denied';
      if (!isRefused || request.accessToken !== undefined) throw error;
      await this.#deps.askOwner(request.localAid, request.remoteAid, { ...TUNNEL_ASK, ...access });
      return await this.#probe(request);
    }
  }

  /** Checks that the service of the remote agent accepts a connection, before a port is opened. */
  async #probe(request: Whom & Pick<TunnelRequest, 'disableRelay'>): Promise<LinkPath> {
    const { localAid, remoteAid, accessToken, disableRelay } = request;
    using limit = awakeTimeout(this.#deps.clock, PROBE_TIMEOUT_MS);
    const link: LinkStream = await this.#deps.links.open(localAid, remoteAid, 'tcp-probe', {
      timeoutMs: PROBE_TIMEOUT_MS,
      signal: limit.signal,
      accessToken,
      disableRelay,
    });
    link.on('error', () => {});
    try {
      await abortable(readStatus(link), limit.signal);
      return link.path();
    } finally {
      link.destroy();
    }
  }
}
