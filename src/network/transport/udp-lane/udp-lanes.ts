/**
 * Bulk lanes between two nodes with a QUIC connection. They use the sockets of the record network, which are reachable
 * for strangers or after we have sent something to them. The offer and the answer use the QUIC connection, so the
 * secret is known to both nodes only, and each side sends only to the host of that connection.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { Clock } from '../../../foundation/clock.ts';
import { abortable } from '../../../foundation/deadline.ts';
import { isRelayed } from '../../../foundation/domain/tunnels.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { Component } from '../../../foundation/lifecycle.ts';
import { Quota } from '../../../foundation/quota.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import type { Path } from '../path.ts';
import { type LanePlace, type LaneRole, type LaneRoom, SealedLane } from '../sealed-lane.ts';
import {
  BULK_SECRET_BYTES,
  decodeLaneAnswer,
  decodeLaneOffer,
  encodeLaneAnswer,
  encodeLaneOffer,
  LANE_ANSWER_BYTES,
  LANE_OFFER_BYTES,
  type LaneAnswer,
  laneKeys,
} from '../sealed-records.ts';
import type { BulkOptions, OfferedBulkStream, TakenBulkStream } from '../types.ts';
import { bindAnyPort, type UdpSocket } from '../udp-socket.ts';
import { LaneEntrance } from './lane-entrance.ts';

/** Lanes of this node and of one source at one time. */
export const MAX_BULK_LANES = 128;
export const MAX_BULK_LANES_PER_SOURCE = 32;
/**
 * Lanes that strangers in one IPv4 /24 or IPv6 /48 offered, and lanes reserved for offers of this node.
 */
export const MAX_BULK_LANES_PER_NETWORK = 48;
export const RESERVED_BULK_LANES = 32;
/** Received bytes that were not read, for the lanes of one source. */
export const MAX_LANE_UNREAD_PER_SOURCE_BYTES: number = 16 * 1024 * 1024;
/** The same for the lanes that strangers in one IPv4 /24 or IPv6 /48 offered. */
export const MAX_LANE_UNREAD_PER_NETWORK_BYTES: number = 24 * 1024 * 1024;
/** The same for all lanes. */
export const MAX_LANE_UNREAD_BYTES: number = 64 * 1024 * 1024;
/** Of these, bytes reserved for lanes that this node offers. */
export const RESERVED_LANE_UNREAD_BYTES: number = 32 * 1024 * 1024;
/** Timeout for opening a lane, milliseconds. */
export const LANE_TIMEOUT_MS = 5_000;
/** Lower ports belong to services. */
const MIN_PORT = 1024;
const MAX_ID = 0xffff_ffff;

interface BulkLanesDependencies {
  readonly clock: Clock;
  /** False: no lane is opened. Default: true. */
  readonly isAvailable?: boolean;
  readonly records: {
    readonly openSocket: UdpSocket;
    plainSocket(): UdpSocket;
  };
  /** The external IPv4 port of `openSocket`; 0 if every peer sees another one. */
  readonly outerPort: () => number;
}

/** One end of a lane, before it is connected. */
interface End {
  readonly id: number;
  readonly port: number;
  readonly lane: (secret: Uint8Array, offered: boolean) => SealedLane;
  /** Connects to the other end. */
  readonly connect: (there: LaneAnswer) => void;
  /** Lets the other end connect through our NAT or firewall. */
  readonly expect: (there: LaneAnswer) => void;
  readonly drop: () => void;
}

/** Opens our NAT or firewall. The content is ignored. */
const OPENING: Uint8Array = Uint8Array.of(0);

export class UdpLanes implements Component, LaneRoom {
  readonly offerBytes = LANE_OFFER_BYTES;
  readonly answerBytes = LANE_ANSWER_BYTES;
  readonly #deps: BulkLanesDependencies;
  readonly #entrance: LaneEntrance;
  readonly #lanes = new Set<SealedLane>();
  readonly #ends = new Quota(
    {
      perNode: MAX_BULK_LANES_PER_SOURCE,
      perSource: MAX_BULK_LANES_PER_SOURCE,
      perNetwork: MAX_BULK_LANES_PER_NETWORK,
      total: MAX_BULK_LANES,
      reserved: RESERVED_BULK_LANES,
    },
    { countLoopback: true },
  );
  readonly #unread = new Quota({
    perNode: MAX_LANE_UNREAD_PER_SOURCE_BYTES,
    perSource: MAX_LANE_UNREAD_PER_SOURCE_BYTES,
    perNetwork: MAX_LANE_UNREAD_PER_NETWORK_BYTES,
    total: MAX_LANE_UNREAD_BYTES,
    reserved: RESERVED_LANE_UNREAD_BYTES,
  });
  #ended = { sent: 0, received: 0 };
  #ipv6: UdpSocket | null = null;
  #stopped = false;

  constructor(dependencies: BulkLanesDependencies) {
    this.#deps = dependencies;
    this.#entrance = new LaneEntrance(dependencies);
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stopped = true;
    const closing = [...this.#lanes].map(async (lane) => await new Promise((closed) => lane.once('close', closed)));
    for (const lane of this.#lanes) lane.abort();
    await Promise.all(closing);
    await this.#entrance.stop();
    await this.#ipv6?.close();
  }

  /** Memory of packets that are out of order, bytes. */
  get waitingBytes(): number {
    return this.#entrance.waitingBytes;
  }

  /** Received bytes that were not read. */
  get unreadBytes(): number {
    return this.#unread.used;
  }

  stats(): ReturnType<LaneRoom['stats']> {
    let { sent, received } = this.#ended;
    for (const { traffic } of this.#lanes) {
      sent += traffic.sent;
      received += traffic.received;
    }
    return { lanes: this.#lanes.size, sent, received };
  }

  offer(path: Path, options: BulkOptions = {}): OfferedBulkStream | null {
    // protocol-tunnels.md, step 13
    const end = this.#open(path, 'offered', options);
    if (end === null) return null;
    const secret = new Uint8Array(randomBytes(BULK_SECRET_BYTES));
    return {
      offer: encodeLaneOffer({ id: end.id, port: end.port, secret }),
      answered: async (answer, signal) =>
        await this.#meet(end, end.lane(secret, true), decodeLaneAnswer(answer), 'offered', signal),
      cancel: end.drop,
    };
  }

  take(offer: Uint8Array, path: Path, signal: AbortSignal, options: BulkOptions = {}): TakenBulkStream | null {
    const end = this.#open(path, 'took', options);
    if (end === null) return null;
    const there = decodeLaneOffer(offer);
    const stream = this.#meet(end, end.lane(there.secret, false), there, 'took', signal);
    return { answer: encodeLaneAnswer(end), stream };
  }

  reserve(source: string, role: LaneRole, { hasBackPressure = false }: BulkOptions): LanePlace | null {
    if (this.#stopped) return null;
    // We offer lanes only to peers that we use.
    const holder = { node: source, source, named: role === 'offered' };
    const share = this.#ends.take(holder);
    if (share === null) return null;
    const leave = (): void => share.release();
    const { clock } = this.#deps;
    const unread = this.#unread;
    return {
      lane: (stream, keys) =>
        this.#keep(new SealedLane({ clock, stream, keys, unread, holder, hasBackPressure }), leave),
      leave,
    };
  }

  /**
   * Connects two ends. The side that offered connects to the other one, which opens its NAT and waits. If the port of
   * an end is unknown, that end connects.
   */
  async #meet(end: End, lane: SealedLane, there: LaneAnswer, role: LaneRole, signal: AbortSignal): Promise<SealedLane> {
    // protocol-tunnels.md, steps 14 and 15
    const goes = there.port !== 0 && (role === 'offered' || end.port === 0);
    const isWrong =
      there.id === 0 || (there.port !== 0 && there.port < MIN_PORT) || (there.port === 0 && end.port === 0);
    if (isWrong) lane.destroy();
    else if (goes) end.connect(there);
    else end.expect(there);
    try {
      using limit = awakeTimeout(this.#deps.clock, LANE_TIMEOUT_MS, signal);
      await abortable(lane.met, limit.signal);
      return lane;
    } catch (cause) {
      lane.destroy();
      if (signal.aborted) throw cause;
      throw new SvcError('connect_failed', { message: 'Could not open a lane for bulk data.', cause });
    }
  }

  /** Null if there is no room for a lane, or the system has no port. */
  #open(path: Path, role: LaneRole, options: BulkOptions): End | null {
    const { isAvailable = true } = this.#deps;
    const place = isAvailable && !isRelayed(path.kind) ? this.reserve(path.source, role, options) : null;
    if (place === null) return null;
    try {
      return this.#end(path, place);
    } catch (error) {
      place.leave();
      if (error instanceof SvcError) return null;
      throw error;
    }
  }

  /** @throws SvcError `connect_failed` if the system has no port */
  #end({ kind, remote: { host }, source }: Path, place: LanePlace): End {
    const { outerPort } = this.#deps;
    const socket = this.#socketTo(host);
    const port = kind === 'lan' || isIPv6(host) ? (socket.address()?.port ?? 0) : outerPort();
    const id = randomInt(1, MAX_ID);
    let lane: SealedLane | null = null;
    let expected: number | null = null;
    const connect = (there: LaneAnswer): void => {
      stream.connect(socket, there.id, there.port, host);
      lane?.greet();
    };
    // The other end is known by its host and our id, and proves itself with a record sealed with the key.
    const arrived = (from: number): boolean => {
      if (expected === null) return false;
      connect({ id: expected, port: from });
      return true;
    };
    const stream = this.#entrance.stream(id, { socket, host, source, arrived });
    return {
      id,
      port,
      lane: (secret, offered) => {
        lane = place.lane(stream, laneKeys(secret, offered));
        return lane;
      },
      connect,
      expect: (there) => {
        expected = there.id;
        if (there.port !== 0) socket.trySend(OPENING, there.port, host);
      },
      drop: () => {
        if (lane !== null) return void lane.destroy();
        stream.destroy();
        place.leave();
      },
    };
  }

  #keep(lane: SealedLane, leave: () => void): SealedLane {
    this.#lanes.add(lane);
    return lane.once('close', () => {
      const { sent, received } = lane.traffic;
      this.#ended = { sent: this.#ended.sent + sent, received: this.#ended.received + received };
      this.#lanes.delete(lane);
      leave();
    });
  }

  /**
   * IPv6 ports are not translated, so a separate port is known outside too.
   * @throws SvcError `connect_failed` if the system has no port
   */
  #socketTo(host: string): UdpSocket {
    if (!isIPv6(host)) return systemSocket(this.#deps.records.openSocket);
    if (this.#ipv6 !== null) return this.#ipv6;
    const socket = systemSocket(this.#deps.records.plainSocket());
    bindAnyPort(socket, '::');
    this.#ipv6 = socket;
    return socket;
  }
}

/** Streams crash the process on any other socket than one of `udx-native`. */
function systemSocket(socket: UdpSocket): UdpSocket {
  return socket.system ?? socket;
}
