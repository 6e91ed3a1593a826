/**
 * TCP connections beside the QUIC connection of two nodes that are neighbours: on one machine, or in one private network.
 * There a stream over the engine spends more time between threads than on its way. Either side asks for them when it
 * opens streams to the other; until then, and wherever they do not come about, the QUIC connection has them all.
 */
import type { Clock } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { IP_SCOPE, ipScope } from '../../../foundation/ip.ts';
import { lazy } from '../../../foundation/lazy.ts';
import type { Connection, Stream, StreamUpgrade, UpgradeCaller, UpgradePeer } from '../types.ts';
import {
  AGREEMENT_ANSWER_BYTES,
  decodeAnswer,
  decodeRequest,
  encodeAnswer,
  encodeRequest,
  MAX_AGREEMENT_REQUEST_BYTES,
  newRequest,
} from './greeting.ts';
import { LanTcpDialer, type Made } from './lan-tcp-dialer.ts';
import { LanTcpListener } from './lan-tcp-listener.ts';

/** How long a node waits behind its first stream before it asks for another way, so that this is not in its way: milliseconds. */
export const BEFORE_ASKING_MS = 20;
/** How long a neighbour that knows no other way is not asked again, milliseconds … */
const ASK_ANEW_MS = 10 * 60_000;
/** … and one that could not be connected to. */
export const DIAL_ANEW_MS = 60_000;
/** Where a round trip to a neighbour on another machine takes longer, it is not asked: milliseconds. */
const MAX_RTT_MS = 25;
/** Channels to all neighbours at one time, and as many from them; fewer where this process may have few descriptors … */
export const MAX_CHANNELS_OF_ALL = 1_024;
/** … of which they get this part. */
const DESCRIPTOR_PART = 1 / 8;

/** What is known of the way to one neighbour. */
interface Way {
  dialer: LanTcpDialer | null;
  /** Those that have channels, with those that get no new ones. */
  readonly dialers: Set<LanTcpDialer>;
  askAt: number;
  isAsking: boolean;
}

/**
 * Whether packets take long between the ends of a connection, as through a private network that spans the country: where some
 * are lost on such a way the kernel's TCP may come down to half a megabyte a second, and our own lanes do not.
 */
function isLong(connection: Connection): boolean {
  const isHere = ipScope(connection.path.remote.host) === IP_SCOPE.loopback;
  return !isHere && connection.rtt() > MAX_RTT_MS;
}

/** Whether TCP may be spoken between the ends of a connection, at an address of one of them: no port is opened to the Internet. */
function isNear({ path }: Connection, host: string): boolean {
  const scope = ipScope(host);
  // What is open on loopback is only for who came from there.
  const isHere = (ipScope(path.remote.host) === IP_SCOPE.loopback) === (scope === IP_SCOPE.loopback);
  return path.kind === 'lan' && isHere && scope > IP_SCOPE.none && scope < IP_SCOPE.public;
}

export class LanTcp implements StreamUpgrade {
  readonly maxRequestBytes: number = MAX_AGREEMENT_REQUEST_BYTES;
  readonly responseBytes: number = AGREEMENT_ANSWER_BYTES;
  readonly #clock: Clock;
  readonly #listener: LanTcpListener;
  readonly #ways = new Map<Connection, Way>();
  /** Those over which others were let in. */
  readonly #admitted = new Set<Connection>();
  /** What ends the ways of others to this node, and of this node to others. */
  readonly #ends = new Set<() => void>();
  readonly #made: Made;
  #isStopped = false;

  /** @param dependencies with how many files and sockets this process may have open */
  constructor(dependencies: { readonly clock: Clock; readonly descriptors: () => number }) {
    const { clock, descriptors } = dependencies;
    const most = lazy(() => Math.min(MAX_CHANNELS_OF_ALL, Math.floor(descriptors() * DESCRIPTOR_PART)));
    this.#clock = clock;
    this.#listener = new LanTcpListener(most, { clock });
    this.#made = {
      channels: 0,
      get most() {
        return most();
      },
    };
  }

  /** Channels that neighbours have made to this node. */
  get accepted(): number {
    return this.#listener.channels;
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const end of this.#ends) end();
  }

  /** A new stream to a neighbour; null where it has to go over the QUIC connection. */
  open(to: UpgradePeer): Stream | null {
    const { connection } = to;
    if (!isNear(connection, connection.path.remote.host) || this.#isStopped) return null;
    const way = this.#wayOf(connection);
    if (way.dialer !== null) return way.dialer.take();
    if (way.isAsking || this.#clock.now() < way.askAt || isLong(connection)) return null;
    way.isAsking = true;
    this.#clock.after(BEFORE_ASKING_MS, () => detach(this.#ask(way, to)));
    return null;
  }

  /**
   * Answers a neighbour that asks.
   * @returns null where it is to go on over the QUIC connection
   */
  async answer(body: Uint8Array, caller: UpgradeCaller): Promise<Uint8Array | null> {
    // protocol-lan.md, step 3
    const request = decodeRequest(body);
    if (request === null)
      throw new SvcError('protocol_error', { message: 'Malformed request for LAN TCP connections.' });
    if (this.#isStopped || !isNear(caller.connection, request.host)) return null;
    const { connection } = caller;
    const agreement = await this.#listener.admit(request, caller);
    if (agreement === null) return null;
    const answer = encodeAnswer(agreement);
    if (this.#admitted.has(connection)) return answer;
    this.#admitted.add(connection);
    this.#endWith(connection, () => {
      this.#admitted.delete(connection);
      this.#listener.dismiss(connection);
    });
    return answer;
  }

  #wayOf(connection: Connection): Way {
    const known = this.#ways.get(connection);
    if (known !== undefined) return known;
    const way: Way = { dialer: null, dialers: new Set(), askAt: Number.NEGATIVE_INFINITY, isAsking: false };
    this.#ways.set(connection, way);
    this.#endWith(connection, () => {
      this.#ways.delete(connection);
      for (const dialer of way.dialers) dialer.stop();
    });
    return way;
  }

  async #ask(way: Way, { connection, state, request: send, onReady }: UpgradePeer): Promise<void> {
    // protocol-lan.md, steps 1 and 2
    const { remote } = connection.path;
    const request = newRequest(remote.host);
    if (this.#isStopped || this.#ways.get(connection) !== way) return;
    const body = await send(encodeRequest(request)).catch(() => null);
    const answer = body === null ? null : decodeAnswer(body);
    way.isAsking = false;
    const later = (ms: number): void => {
      way.dialer = null;
      way.askAt = this.#clock.now() + ms;
    };
    later(ASK_ANEW_MS);
    if (answer === null || this.#isStopped || this.#ways.get(connection) !== way) return;
    const clock = this.#clock;
    const made = this.#made;
    // What it is asked is of no account.
    const isThere = (): Promise<boolean> =>
      send(encodeRequest(newRequest(remote.host))).then(
        () => true,
        () => false,
      );
    const dialer: LanTcpDialer = new LanTcpDialer({
      clock,
      connection,
      state,
      made,
      request,
      answer,
      isThere,
      onReady,
      onFailed: () => later(DIAL_ANEW_MS),
      onOver: () => void way.dialers.delete(dialer),
    });
    way.dialer = dialer;
    way.dialers.add(dialer);
  }

  /** Ends something with a connection, or with this node. */
  #endWith(connection: Connection, stop: () => void): void {
    const end = (): void => {
      this.#ends.delete(end);
      stop();
    };
    this.#ends.add(end);
    detach(connection.closed.then(end));
    if (this.#isStopped) end();
  }
}
