/** Both ends of an in-memory tunnel connection, each with a TCP connection, over links that the test cuts. */
import type { Socket } from 'node:net';
import { AckTurns, type ConnectionSide, TunnelConnection } from '../../src/capabilities/tunnels/connection.ts';
import { keptQuota } from '../../src/capabilities/tunnels/kept-bytes.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import type { Quota } from '../../src/foundation/quota.ts';
import { lossyNodes } from '../../src/network/links/loss-watch.ts';
import type { LinkStream } from '../../src/network/links/types.ts';
import { StreamError } from '../../src/network/transport/stream.ts';
import { linkEnds } from './link-ends.ts';
import { dial, TcpServer } from './tcp.ts';

/** A TCP connection: the user's end, and the tunnel's end. */
export async function tcpPair(): Promise<readonly [Socket, Socket, TcpServer]> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const server = await TcpServer.start(resolve);
  const user = await dial(`127.0.0.1:${server.port}`);
  user.on('error', () => {});
  return [user, await promise, server];
}

/** A side whose connections end with their links. */
export function testSide(clock: Clock): ConnectionSide {
  return {
    clock,
    kept: keptQuota(),
    acks: new AckTurns(clock),
    lossy: lossyNodes(clock),
    lost: () => false,
    resumed: () => {},
    slowed: () => {},
    over: () => {},
  };
}

export class TunnelPair implements AsyncDisposable {
  readonly near: TunnelConnection;
  readonly far: TunnelConnection;
  /** The user's ends of both TCP connections. */
  readonly client: Socket;
  readonly service: Socket;
  readonly kept: Quota;
  /** Number of new links for both ends. */
  resumptions = 0;
  #servers: readonly TcpServer[];
  #link: readonly [LinkStream, LinkStream];
  #cutAt: readonly number[];
  readonly #farIsLong: boolean;
  #arrivals = 0;

  private constructor(
    clock: Clock,
    cutAt: readonly number[],
    farIsLong: boolean,
    [client, near, one]: Awaited<ReturnType<typeof tcpPair>>,
    [service, far, other]: Awaited<ReturnType<typeof tcpPair>>,
  ) {
    this.client = client;
    this.service = service;
    this.kept = keptQuota();
    this.#servers = [one, other];
    this.#cutAt = cutAt;
    this.#farIsLong = farIsLong;
    const side: ConnectionSide = { ...testSide(clock), kept: this.kept, lost: () => true };
    this.#link = this.#newLink();
    this.near = new TunnelConnection(this.#link[0], { node: 'near', source: null, named: true }, side);
    this.far = new TunnelConnection(this.#link[1], { node: 'far', source: '192.0.2.1', named: false }, side);
    this.near.join(near, {});
    this.far.join(far, {});
  }

  /**
   * @param cutAt numbers of the chunks that break the link
   * @param farIsLong true if the far end measures a long path, and so begins with a small window
   */
  static async open(cutAt: readonly number[] = [], clock: Clock = systemClock, farIsLong = false): Promise<TunnelPair> {
    return new TunnelPair(clock, cutAt, farIsLong, await tcpPair(), await tcpPair());
  }

  /** Number of chunks received over links. */
  get arrivals(): number {
    return this.#arrivals;
  }

  /** The present link of both ends. */
  get link(): readonly [LinkStream, LinkStream] {
    return this.#link;
  }

  /** Breaks the QUIC connection under the link. */
  lose(): void {
    for (const end of this.#link) end.destroy(new StreamError('connection_lost'));
  }

  /** Gives both ends a new link, as the calling side does. */
  resume(): void {
    if (this.near.destroyed || this.far.destroyed) {
      // An ended side no longer knows the connection, and reports that.
      this.near.destroy();
      this.far.destroy();
      return;
    }
    this.resumptions++;
    this.#link = this.#newLink();
    this.far.attach(this.#link[1]);
    this.near.attach(this.#link[0]);
  }

  #newLink(): readonly [LinkStream, LinkStream] {
    const link = linkEnds();
    const longPath = { packets: () => ({ sent: 0, lost: 0 }), path: () => ({ ...link[0].path(), rttMs: 40 }) };
    if (this.#farIsLong) Object.assign(link[1], longPath);
    for (const end of link) {
      const push = end.push.bind(end);
      end.push = (chunk: unknown) => {
        this.#arrivals++;
        if (!this.#cutAt.includes(this.#arrivals)) return push(chunk);
        this.lose();
        setImmediate(() => this.resume());
        return true;
      };
    }
    return link;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.near.destroy();
    this.far.destroy();
    for (const socket of [this.client, this.service]) socket.destroy();
    for (const server of this.#servers) await server[Symbol.asyncDispose]();
  }
}
