/** The called side of tunnels: connects links to the bound service of the called agent. */
import type { Socket, TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Address } from '../../foundation/address.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { resetSocket } from '../../foundation/sockets.ts';
import { type HolderRequest, pairHolder } from '../../network/links/holder.ts';
import { RefusedStreams } from '../../network/links/lingering.ts';
import { Refusal, STATUS } from '../../network/links/status.ts';
import type { AccessRequest, LinkStream } from '../../network/links/types.ts';
import { lingerThenDestroy } from '../../network/links/wire.ts';
import { type Carrier, join } from './carrier.ts';
import { InboundPlaces, type InboundPlacesDependencies } from './inbound-places.ts';
import { LastingCalled } from './lasting/called.ts';
import { LastingConnection } from './lasting/lasting-connection.ts';
import { statusByte } from './preamble.ts';
import type { TunnelSession } from './types.ts';
import { WideCalled, type WideCalledDependencies } from './wide/called.ts';

/** How long the bound service may take to accept a connection, milliseconds. */
const CONNECT_TIMEOUT_MS = 5000;
/** Attempts to get a source port of this machine that no other connection to a service has. */
const MAX_PORT_ATTEMPTS = 16;

/** Where a service listens, and whether tunnels may lead there. */
interface Endpoint extends Address {
  readonly takesTunnels: boolean;
}

/** A connection that is joined to the bound service. */
interface Joined {
  readonly socket: Socket;
  readonly stream: Carrier;
}

export interface TunnelInboundDependencies extends InboundPlacesDependencies, WideCalledDependencies {
  readonly log: Log;
  /** Where the service of a local agent listens; null where none is bound. */
  serviceOf(aid: Aid): Endpoint | null;
  /**
   * Asks again whether a caller may speak to an agent, after a change of its access list.
   * @throws SvcError `access_denied`, `rate_limited`
   */
  authorize(link: LinkStream): void | Promise<void>;
  /** Connects to a service, and to nothing else: what it destroys in the moment that it connects is none. */
  readonly connect: (options: TcpNetConnectOpts) => Socket;
}

export class TunnelInbound {
  readonly #deps: TunnelInboundDependencies;
  readonly #sessions = new Map<number, TunnelSession>();
  readonly #links = new Map<LinkStream, Joined>();
  readonly #lasting: LastingCalled;
  readonly #wide: WideCalled;
  readonly #places: InboundPlaces;
  readonly #lingering = new RefusedStreams();

  constructor(dependencies: TunnelInboundDependencies) {
    this.#deps = dependencies;
    this.#lasting = new LastingCalled(dependencies);
    this.#wide = new WideCalled(this.#lasting, dependencies);
    this.#places = new InboundPlaces(dependencies);
  }

  /**
   * Checks a link before it is let in, so that a link that leads nowhere costs nothing.
   * @throws SvcError `no_inbound`, `calls_only`; Refusal of wide connections where no more are kept: the caller then
   *   opens a plain one
   */
  check(request: HolderRequest & Pick<AccessRequest, 'purpose'>): void {
    const { purpose, called } = request;
    // protocol-tunnels.md, step 1
    // A connection that was joined before the service was unbound may still change its path.
    const code = purpose === 'tcp-resume' ? null : this.#unserved(called);
    if (code !== null) throw new SvcError(code);
    if (purpose === 'tcp-wide' && !this.#wide.hasRoom(request)) throw new Refusal(STATUS.unknownPurpose);
  }

  /** Counts of connections that outlive their links. */
  get lasting(): LastingCalled['counts'] {
    return this.#lasting.counts;
  }

  /** Connections that end with an outcome that the caller has not read. */
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

  /** Who speaks through a connection from `port` of this machine to a bound service; null where the daemon has none. */
  session(port: number): TunnelSession | null {
    return this.#sessions.get(port) ?? null;
  }

  /** Cuts the live connections to an agent that its access list no longer allows. */
  async recheck(called: Aid): Promise<void> {
    for (const [link, joined] of this.#links) {
      if (link.called !== called) continue;
      try {
        await this.#deps.authorize(link);
      } catch {
        cut(joined);
      }
    }
  }

  /** Cuts the live connections to an agent that is no longer here. */
  drop(called: Aid): void {
    for (const [link, joined] of this.#links) if (link.called === called) cut(joined);
  }

  /** Cuts every live connection. */
  stop(): void {
    for (const joined of this.#links.values()) cut(joined);
  }

  async #take(link: LinkStream): Promise<void> {
    if (link.purpose === 'tcp-lane') {
      await this.#wide.join(link);
      this.#countLingering(link, link);
    } else if (link.purpose === 'tcp-resume') await this.#lasting.resume(link);
    else await this.#serve(link, await this.#carrier(link));
  }

  async #carrier(link: LinkStream): Promise<Carrier> {
    if (link.purpose === 'tcp-lasting') return await this.#lasting.accept(link);
    return link.purpose === 'tcp-wide' ? await this.#wide.accept(link) : link;
  }

  async #serve(link: LinkStream, stream: Carrier): Promise<void> {
    // protocol-tunnels.md, steps 1 and 2
    const service = this.#deps.serviceOf(link.called);
    if (service === null) return this.#refuse(link, stream, 'no_inbound');
    if (!service.takesTunnels) return this.#refuse(link, stream, 'calls_only');
    const place = this.#places.take(link, () => stream.destroy());
    if (place === null) return this.#refuse(link, stream, 'rate_limited');
    let socket: Socket;
    try {
      socket = await this.#connectApart(link, service);
    } catch {
      place.leave();
      return this.#refuse(link, stream, 'inbound_unreachable');
    }
    socket.once('close', place.leave);
    if (link.purpose === 'tcp-probe' || stream.destroyed) {
      socket.destroy();
      if (!stream.destroyed) this.#endWith(link, stream, null);
      return;
    }
    // The rules may have changed since the link was opened, and the agent may have gone.
    const refusal = await this.#refusal(link);
    if (refusal !== null || stream.destroyed) {
      socket.destroy();
      if (refusal !== null && !stream.destroyed) this.#refuse(link, stream, refusal);
      return;
    }
    stream.write(Uint8Array.of(statusByte(null)));
    this.#join(link, { socket, stream }, place.used);
  }

  #refuse(link: LinkStream, stream: Carrier, code: ErrorCode): void {
    this.#endWith(link, stream, code);
    stream.resume();
  }

  /** Says the outcome and nothing else; the caller has a moment to read it. */
  #endWith(link: LinkStream, stream: Carrier, code: ErrorCode | null): void {
    stream.end(Uint8Array.of(statusByte(code)));
    if (stream.destroyed) return;
    const carrier = stream instanceof LastingConnection ? link : stream;
    lingerThenDestroy(carrier, this.#deps.clock);
    this.#countLingering(link, carrier);
  }

  #countLingering(link: LinkStream, carrier: Duplex): void {
    if (!carrier.destroyed) this.#lingering.count(carrier, pairHolder(link, this.#deps.isNamed(link)));
  }

  async #refusal(link: LinkStream): Promise<ErrorCode | null> {
    try {
      await this.#deps.authorize(link);
    } catch (error) {
      return error instanceof SvcError ? error.code : 'protocol_error';
    }
    return this.#unserved(link.called);
  }

  /** Why no tunnel leads to an agent; null if one does. */
  #unserved(called: Aid): ErrorCode | null {
    const service = this.#deps.serviceOf(called);
    if (service === null) return 'no_inbound';
    return service.takesTunnels ? null : 'calls_only';
  }

  /**
   * Connects from a port that says who speaks: the system gives one port to connections to several
   * services at a time.
   */
  async #connectApart(link: LinkStream, service: Address): Promise<Socket> {
    const held: Socket[] = [];
    try {
      while (held.length < MAX_PORT_ATTEMPTS) {
        const socket = await this.#connect(service);
        if (this.#enter(socket, link)) return socket;
        // Keeps its port until another one is found.
        held.push(socket);
      }
      throw new Error('no port is free');
    } finally {
      for (const socket of held) socket.destroy();
    }
  }

  /** Notes who speaks through a connection, until it closes; false where its port is another's too. */
  #enter(socket: Socket, { caller, called }: LinkStream): boolean {
    const port = socket.localPort;
    if (port === undefined) throw new Error('the connection is gone');
    if (this.#sessions.has(port)) return false;
    this.#sessions.set(port, { callerAid: caller, localAid: called, since: this.#deps.clock.now() });
    socket.once('close', () => this.#sessions.delete(port));
    return true;
  }

  #connect({ host, port }: Address): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = this.#deps.connect({ host, port, allowHalfOpen: true, noDelay: true });
      const timer = this.#deps.clock.after(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('connect timed out')));
      socket.once('connect', () => {
        timer.cancel();
        // Where it was destroyed, its error comes next.
        if (!socket.destroyed) resolve(socket);
      });
      // Stays on: what fails later is heard by who uses the connection.
      socket.on('error', (error) => {
        timer.cancel();
        reject(error);
      });
    });
  }

  #join(link: LinkStream, joined: Joined, used: () => void): void {
    this.#links.set(link, joined);
    join(joined.socket, joined.stream, {
      sent: used,
      received: used,
      closed: () => {
        this.#links.delete(link);
      },
    });
  }
}

function cut({ socket, stream }: Joined): void {
  resetSocket(socket);
  stream.destroy();
}
