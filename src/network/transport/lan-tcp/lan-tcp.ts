/**
 * TCP connections next to the QUIC connection of two LAN peers, on one machine or in one private network. There a
 * stream of the QUIC engine spends more time between threads than in the network. Each side requests them when it opens streams. Until then, and if they fail, streams use the QUIC connection.
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

/**
 * Delay after the first stream before a node requests TCP connections, so that the request does not slow down that
 * stream, milliseconds.
 */
export const BEFORE_ASKING_MS = 20;
/** No further request goes to a peer without LAN TCP for this time, milliseconds … */
const ASK_ANEW_MS = 10 * 60_000;
/** … and a peer that could not be connected to, for this time. */
export const DIAL_ANEW_MS = 60_000;
/** Longest round trip to a peer on another machine, milliseconds. */
const MAX_RTT_MS = 25;
/** Connections to all LAN peers at one time, and as many from them. Fewer if this process can open few descriptors … */
export const MAX_CHANNELS_OF_ALL = 1_024;
/** … and then this part of the number. */
const DESCRIPTOR_PART = 1 / 8;

/** The state of one LAN peer. */
interface Way {
  dialer: LanTcpDialer | null;
  /** Dialers with connections, including failed dialers. */
  readonly dialers: Set<LanTcpDialer>;
  askAt: number;
  isAsking: boolean;
}

/**
 * True if packets take long between the ends of a connection, as in a private network across a country. With packet
 * loss the kernel's TCP can slow down to half a megabyte a second there; bulk lanes do not.
 */
function isLong(connection: Connection): boolean {
  const isHere = ipScope(connection.path.remote.host) === IP_SCOPE.loopback;
  return !isHere && connection.rtt() > MAX_RTT_MS;
}

/** True if TCP is allowed between the ends of a connection at a local address. No port is opened to the Internet. */
function isNear({ path }: Connection, host: string): boolean {
  const scope = ipScope(host);
  // A listener on loopback is only for peers on this machine.
  const isHere = (ipScope(path.remote.host) === IP_SCOPE.loopback) === (scope === IP_SCOPE.loopback);
  return path.kind === 'lan' && isHere && scope > IP_SCOPE.none && scope < IP_SCOPE.public;
}

export class LanTcp implements StreamUpgrade {
  readonly maxRequestBytes: number = MAX_AGREEMENT_REQUEST_BYTES;
  readonly responseBytes: number = AGREEMENT_ANSWER_BYTES;
  readonly #clock: Clock;
  readonly #listener: LanTcpListener;
  readonly #ways = new Map<Connection, Way>();
  /** Connections with agreements of their peers. */
  readonly #admitted = new Set<Connection>();
  /** End the agreements of peers, and the dialers of this node. */
  readonly #ends = new Set<() => void>();
  readonly #made: Made;
  #isStopped = false;

  /** @param dependencies with the number of files and sockets that this process can open */
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

  /** Open connections from LAN peers. */
  get accepted(): number {
    return this.#listener.channels;
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const end of this.#ends) end();
  }

  /** A new stream to a LAN peer, or null if the QUIC connection must carry it. */
  open(to: UpgradePeer): Stream | null {
    const { connection } = to;
    if (!isNear(connection, connection.path.remote.host) || this.#isStopped) return null;
    const way = this.#wayOf(connection);
    if (way.dialer !== null) return way.dialer.take();
    if (way.isAsking || this.#clock.monotonic() < way.askAt || isLong(connection)) return null;
    way.isAsking = true;
    this.#clock.after(BEFORE_ASKING_MS, () => detach(this.#ask(way, to)));
    return null;
  }

  /**
   * Answers the request of a LAN peer.
   * @returns null if the peer must use the QUIC connection
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
      way.askAt = this.#clock.monotonic() + ms;
    };
    later(ASK_ANEW_MS);
    if (answer === null || this.#isStopped || this.#ways.get(connection) !== way) return;
    const clock = this.#clock;
    const made = this.#made;
    // Any answer shows that the process is running.
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

  /** Ends something with a connection, or when this node stops. */
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
