/** The called side of tunnels: connects links to the bound service of the called agent. */
import type { Socket, TcpNetConnectOpts } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import { faultOf, serviceFailure } from '../../foundation/service-failure.ts';
import { resetSocket } from '../../foundation/sockets.ts';
import { pairHolder } from '../../network/links/holder.ts';
import { type AccessRequest, accessRequestOf, type LinkStream, type Permissions } from '../../network/links/types.ts';
import { RefusedStreams } from '../../network/peers/stream-dispatcher.ts';
import { lingerThenDestroy } from '../../network/peers/wire.ts';
import type { BulkStreams } from '../../network/transport/types.ts';
import type { TunnelConnection } from './connection.ts';
import { statusByte } from './frames.ts';
import { InboundConnections } from './inbound-connections.ts';
import { InboundPlaces } from './inbound-places.ts';
import type { TunnelSession } from './types.ts';

/** Time for the bound service to accept a connection, milliseconds. */
const CONNECT_TIMEOUT_MS = 5000;
/** Attempts to find a local port that no other connection to a service has. */
const MAX_PORT_ATTEMPTS = 16;

/** The address of a service, and whether it accepts tunnels. */
interface Endpoint extends Address {
  readonly takesTunnels: boolean;
}

/** A connection that is joined to the bound service. */
interface Joined {
  readonly socket: Socket;
  readonly connection: TunnelConnection;
}

/** A connection to the service. Each byte of it marks its place as used. */
interface Reached {
  readonly socket: Socket;
  readonly used: () => void;
}

export interface TunnelInboundDependencies extends NodeParts, Permissions {
  readonly bulk: BulkStreams;
  /** The service of a local agent. Null if none is bound. */
  serviceOf(aid: Aid): Endpoint | null;
  /**
   * Checks that a caller may begin a connection. Returns a function that begins it and returns another one for its end.
   * @throws SvcError as `authorize`
   */
  enter(link: LinkStream): Promise<() => () => void>;
  /** A caller begins a connection. */
  entered(link: LinkStream): void;
  /** Connections of all callers to services. */
  maxConnections(): number;
  /** Connects to services only. A socket that is destroyed as it connects never reached one. */
  readonly connect: (options: TcpNetConnectOpts) => Socket;
}

export class TunnelInbound {
  readonly #deps: TunnelInboundDependencies;
  readonly #sessions = new Map<number, TunnelSession>();
  readonly #links = new Map<LinkStream, Joined>();
  readonly #connections: InboundConnections;
  readonly #places: InboundPlaces;
  readonly #lingering = new RefusedStreams();

  constructor(dependencies: TunnelInboundDependencies) {
    this.#deps = dependencies;
    const { clock, bulk } = dependencies;
    this.#connections = new InboundConnections(clock, bulk, (link) => dependencies.isNamed(link));
    this.#places = new InboundPlaces(clock, () => dependencies.maxConnections());
  }

  /**
   * Refuses a link that leads to no service, before it costs anything.
   * @throws SvcError `no_inbound`, `calls_only`
   */
  check(request: AccessRequest): void {
    // protocol-tunnels.md, step 1
    const code = this.#unserved(request.called);
    if (code !== null && !this.#connections.hasAny(request)) throw new SvcError(code);
  }

  /** Connections, and the bytes kept for them. */
  get connections(): InboundConnections['counts'] {
    return this.#connections.counts;
  }

  /** Refused connections whose caller has not read the outcome. */
  get lingering(): number {
    return this.#lingering.size;
  }

  /** Takes a link of one of the `TUNNEL_PURPOSES`. */
  accept(link: LinkStream): void {
    link.on('error', () => {});
    this.#take(link).catch((error: unknown) => {
      this.#deps.log.debug({ error: error instanceof Error ? error.message : 'unknown' }, 'tunnel link failed');
      link.destroy();
    });
  }

  /** The agents of a connection from a local port to a bound service. Null if it is not a connection of the daemon. */
  session(port: number): TunnelSession | null {
    return this.#sessions.get(port) ?? null;
  }

  /** Ends the connections to an agent that its access list no longer allows. */
  async recheck(called: Aid): Promise<void> {
    for (const [link, joined] of this.#links) {
      if (link.called !== called) continue;
      try {
        await this.#deps.authorize(accessRequestOf(link));
      } catch {
        cut(joined);
      }
    }
  }

  /** Ends the connections to an agent that is no longer here. */
  drop(called: Aid): void {
    for (const [link, joined] of this.#links) if (link.called === called) cut(joined);
  }

  /** Ends all connections. */
  stop(): void {
    for (const joined of this.#links.values()) cut(joined);
  }

  async #take(link: LinkStream): Promise<void> {
    if (link.purpose === 'tcp-probe') return await this.#probe(link);
    const connection = await this.#connections.take(link);
    if (connection === null) return;
    try {
      const begin = await this.#deps.enter(link);
      if (connection.destroyed) return;
      this.#connections.whenOver(connection, begin());
    } catch (error) {
      return this.#refuse(link, connection, failureOf(error));
    }
    this.#deps.entered(link);
    await this.#serve(link, connection);
  }

  /** Reports if the service accepts connections. */
  async #probe(link: LinkStream): Promise<void> {
    const reached = await this.#mayProbe(link);
    const isReached = !(reached instanceof SvcError);
    if (isReached) reached.socket.destroy();
    if (link.destroyed) return;
    link.end(Uint8Array.of(statusByte(isReached ? null : reached)));
    link.resume();
    this.#linger(link);
  }

  /** A connection to the service, or why there is none. The caller may not begin one just because it has another. */
  async #mayProbe(link: LinkStream): Promise<SvcError | Reached> {
    try {
      await this.#deps.enter(link);
    } catch (error) {
      return failureOf(error);
    }
    return this.#reach(link, () => link.destroy());
  }

  async #serve(link: LinkStream, connection: TunnelConnection): Promise<void> {
    const reached = await this.#reach(link, () => connection.destroy());
    if (reached instanceof SvcError) return this.#refuse(link, connection, reached);
    const { socket, used } = reached;
    // The rules may have changed since the link was opened, and the agent may be deleted.
    const refusal = connection.destroyed ? null : await this.#refusal(link);
    if (refusal !== null || connection.destroyed) {
      socket.destroy();
      if (refusal !== null) this.#refuse(link, connection, refusal);
      return;
    }
    connection.write(Uint8Array.of(statusByte(null)));
    this.#join(link, { socket, connection }, used);
  }

  /** A connection to the service that counts for the link, or why there is none. */
  async #reach(link: LinkStream, cut: () => void): Promise<SvcError | Reached> {
    // protocol-tunnels.md, steps 1 and 2
    const service = this.#deps.serviceOf(link.called);
    if (service === null) return new SvcError('no_inbound');
    if (!service.takesTunnels) return new SvcError('calls_only');
    const place = this.#places.take(this.#holder(link), cut);
    if (place === null) return new SvcError('rate_limited');
    try {
      const socket = await this.#connectApart(link, service);
      socket.once('close', place.leave);
      return { socket, used: place.used };
    } catch (error) {
      place.leave();
      return serviceFailure(faultOf(error), error);
    }
  }

  /** Sends the outcome and nothing else. The caller has a moment to read it. */
  #refuse(link: LinkStream, connection: TunnelConnection, failure: SvcError): void {
    if (connection.destroyed) return;
    connection.end(Uint8Array.of(statusByte(failure)));
    connection.resume();
    this.#linger(link);
  }

  #linger(link: LinkStream): void {
    lingerThenDestroy(link, this.#deps.clock);
    if (!link.destroyed) this.#lingering.count(link, this.#holder(link));
  }

  #holder(link: LinkStream): QuotaHolder {
    return pairHolder(link, this.#deps.isNamed(link));
  }

  async #refusal(link: LinkStream): Promise<SvcError | null> {
    try {
      await this.#deps.authorize(accessRequestOf(link));
    } catch (error) {
      return failureOf(error);
    }
    const code = this.#unserved(link.called);
    return code === null ? null : new SvcError(code);
  }

  /** Why no tunnel leads to an agent. Null if one does. */
  #unserved(called: Aid): ErrorCode | null {
    const service = this.#deps.serviceOf(called);
    if (service === null) return 'no_inbound';
    return service.takesTunnels ? null : 'calls_only';
  }

  /** Connects from a port that identifies the caller: the system may use one port for connections to several services. */
  async #connectApart(link: LinkStream, service: Address): Promise<Socket> {
    const held: Socket[] = [];
    try {
      while (held.length < MAX_PORT_ATTEMPTS) {
        const socket = await this.#connect(service);
        if (this.#enter(socket, link)) return socket;
        // It keeps its port until another one is found.
        held.push(socket);
      }
      throw Object.assign(new Error('no port is free'), { code: 'EADDRNOTAVAIL' });
    } finally {
      for (const socket of held) socket.destroy();
    }
  }

  /** Notes who uses a connection until it closes. False if another connection has the same port. */
  #enter(socket: Socket, { caller, called }: LinkStream): boolean {
    const port = socket.localPort;
    if (port === undefined) throw new Error('the connection has closed');
    if (this.#sessions.has(port)) return false;
    this.#sessions.set(port, { callerAid: caller, localAid: called, since: this.#deps.clock.now() });
    socket.once('close', () => this.#sessions.delete(port));
    return true;
  }

  #connect({ host, port }: Address): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = this.#deps.connect({ host, port, allowHalfOpen: true, noDelay: true });
      const timer = this.#deps.clock.after(CONNECT_TIMEOUT_MS, () =>
        socket.destroy(Object.assign(new Error('connect timed out'), { code: 'ETIMEDOUT' })),
      );
      socket.once('connect', () => {
        timer.cancel();
        // If it was destroyed, its error follows.
        if (!socket.destroyed) resolve(socket);
      });
      // Stays: the user of the connection handles later errors.
      socket.on('error', (error) => {
        timer.cancel();
        reject(error);
      });
    });
  }

  #join(link: LinkStream, joined: Joined, used: () => void): void {
    this.#links.set(link, joined);
    joined.connection.join(joined.socket, {
      sent: used,
      received: used,
      closed: () => {
        this.#links.delete(link);
      },
    });
  }
}

function failureOf(error: unknown): SvcError {
  return error instanceof SvcError ? error : new SvcError('protocol_error');
}

function cut({ socket, connection }: Joined): void {
  resetSocket(socket);
  connection.destroy();
}
