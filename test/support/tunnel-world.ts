/** Two in-memory nodes with an agent each, a TCP service bound to the second agent, and tunnels on the first node. */

import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { TunnelInbound } from '../../src/capabilities/tunnels/inbound.ts';
import { TunnelService } from '../../src/capabilities/tunnels/tunnel-service.ts';
import type { TunnelWish } from '../../src/capabilities/tunnels/types.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import type { SavedTunnel } from '../../src/foundation/store/tunnels.ts';
import { TUNNEL_PURPOSES } from '../../src/network/links/types.ts';
import { NO_LANES } from './bulk.ts';
import { type LinkNode, LinkWorld } from './link-world.ts';
import { TcpServer } from './tcp.ts';

interface Clocks {
  readonly clock: Clock;
  readonly inboundClock: Clock;
}

export class TunnelWorld {
  readonly world: LinkWorld;
  readonly near: LinkNode;
  readonly far: LinkNode;
  readonly service: TcpServer;
  readonly inbound: TunnelInbound;
  readonly saved = new Map<string, SavedTunnel>();
  readonly local: Aid;
  readonly remote: Aid;
  readonly #clock: Clock;
  tunnels: TunnelService;
  /** Largest number of simultaneous connections of the remote node to services. */
  maxConnections = Number.POSITIVE_INFINITY;
  /** True if the remote node accepts tunnel links and never responds. */
  silent = false;
  /** Number of connections that callers began. */
  entered = 0;
  /** Number of links accepted without a response. */
  unanswered = 0;
  /** True if tunnels to it are allowed. */
  takesTunnels = true;
  /** True if the remote agent has a service. */
  bound = true;
  /** Services of further remote agents. */
  readonly others = new Map<Aid, TcpServer>();
  /** Source ports of the next connections to services. */
  readonly sourcePorts: number[] = [];
  /** Connects the remote node to its services. */
  connect: (options: TcpNetConnectOpts) => Socket = connect;
  /** True if the owner of the remote agent allowed the caller by name. */
  named = false;
  /** Saved tunnels cannot change. */
  isDiskFull = false;
  /** True if the remote agent refuses the caller. */
  refused = false;
  /** The access token that the remote agent requires. Undefined for none. */
  secret: string | undefined;

  private constructor(world: LinkWorld, near: LinkNode, far: LinkNode, service: TcpServer, clocks: Clocks) {
    this.world = world;
    this.near = near;
    this.far = far;
    this.service = service;
    this.#clock = clocks.clock;
    this.local = near.host().aid;
    this.remote = far.host().aid;
    const authorize = (): void => {
      if (this.refused) throw new SvcError('access_denied');
    };
    this.inbound = new TunnelInbound({
      bulk: NO_LANES,
      entered: () => {
        this.entered++;
      },
      clock: clocks.inboundClock,
      log: silentLog,
      serviceOf: (aid) =>
        this.bound ? { ...(this.others.get(aid) ?? service).address, takesTunnels: this.takesTunnels } : null,
      authorize,
      enter: async () => {
        authorize();
        return () => () => {};
      },
      isNamed: () => this.named,
      maxConnections: () => this.maxConnections,
      connect: (options) => this.connect({ ...options, localPort: this.sourcePorts.shift() ?? 0 }),
    });
    far.authorize = (request) => {
      authorize();
      if (this.secret !== undefined && request.accessToken !== this.secret) throw new SvcError('access_denied');
    };
    for (const purpose of TUNNEL_PURPOSES)
      far.links.accept(
        purpose,
        (link) => {
          if (this.silent) this.unanswered++;
          else this.inbound.accept(link);
        },
        (request) => this.inbound.check(request),
      );
    this.tunnels = this.newService();
  }

  /**
   * @param clock for the idle timeouts of tunnels
   * @param inboundClock for the remote side of tunnels
   */
  static async start(
    serve: (socket: Socket) => void,
    clock: Clock = systemClock,
    inboundClock: Clock = systemClock,
  ): Promise<TunnelWorld> {
    const [world, service] = [new LinkWorld(), await TcpServer.start(serve)];
    return new TunnelWorld(world, await world.node(), await world.node(), service, { clock, inboundClock });
  }

  /** The tunnels of a restarted daemon with the same memory. */
  newService(): TunnelService {
    const write = (change: () => unknown): void => {
      if (this.isDiskFull) throw new SvcError('not_writable');
      change();
    };
    const memory = {
      save: (tunnel: SavedTunnel) => write(() => this.saved.set(tunnel.id, tunnel)),
      delete: (id: string) => write(() => this.saved.delete(id)),
      list: () => [...this.saved.values()],
    };
    return new TunnelService({
      bulk: NO_LANES,
      clock: this.#clock,
      log: silentLog,
      links: this.near.links,
      memory,
      askOwner: async () => {
        throw new SvcError('access_denied');
      },
    });
  }

  request(more: Partial<TunnelWish> = {}): TunnelWish {
    const standard = { accessToken: undefined, localPort: 0, disableRelay: false };
    return { localAid: this.local, remoteAid: this.remote, ...standard, ...more };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.tunnels.stop();
    this.inbound.stop();
    await this.world[Symbol.asyncDispose]();
    await this.service[Symbol.asyncDispose]();
  }
}
