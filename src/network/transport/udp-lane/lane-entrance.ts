/**
 * Checks all datagrams before the streams of bulk lanes receive them. The streams belong to a separate engine that is
 * not reachable from the network: the entrance forwards valid datagrams to it over a local socket. The streams send
 * directly from the outer socket.
 */

import type Udx from 'udx-native';
import type { Stream } from 'udx-native';
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { bindAnyPort, type UdpSocket } from '../udp-socket.ts';
import { createUdx } from '../udx.ts';

/* The fields of a `udx-native` packet header that a lane needs. */

export const UDX_HEADER_BYTES = 20;
const MAGIC = 255;
const VERSION = 1;

/** Bits of the type. */
export const UDX_TYPE = { data: 1, end: 2, sack: 4, message: 8, destroy: 16, heartbeat: 32 } as const;
/** Types that a lane uses. A heartbeat has no other type. */
const USED: number = UDX_TYPE.data | UDX_TYPE.end | UDX_TYPE.sack | UDX_TYPE.destroy;

export interface UdxPacket {
  /** The stream that receives the packet. */
  readonly id: number;
  /** Bits of `UDX_TYPE`. */
  readonly type: number;
  readonly seq: number;
  readonly payloadBytes: number;
}

/**
 * Reads a datagram, or returns null if no lane sends such a packet. Also runs for each datagram of the record network.
 */
export function decodeUdxPacket(datagram: Uint8Array): UdxPacket | null {
  const { length } = datagram;
  if (length < UDX_HEADER_BYTES || datagram[0] !== MAGIC || datagram[1] !== VERSION) return null;
  const view = new DataView(datagram.buffer, datagram.byteOffset, length);
  const type = view.getUint8(2);
  const payloadBytes = length - UDX_HEADER_BYTES - view.getUint8(3);
  const isUsed = type === UDX_TYPE.heartbeat || (type & ~USED) === 0;
  // The stream does not store these packets, so they must not count as delivered. Empty packets would cost more than
  // they count.
  const hasData = (type & UDX_TYPE.data) !== 0;
  if (!isUsed || payloadBytes < 0 || (hasData && payloadBytes === 0)) return null;
  if (!hasData && (type & UDX_TYPE.end) !== 0 && payloadBytes > 0) return null;
  return { id: view.getUint32(4, true), type, seq: view.getUint32(12, true), payloadBytes };
}

/*
 * Decides which packets of one lane reach `udx-native`. It stores every packet that is out of order, in a table that
 * grows with the distance between two packets. So one sender could fill the memory, and two packets could allocate
 * gigabytes. This class tracks the sequence numbers and admits only packets that an honest sender can have in transit.
 */

/** Packets that can be out of order: more than the 4 MiB window of an honest sender. */
export const MAX_PACKETS_AHEAD = 4096;
/**
 * Admitted bytes that were not delivered in order. Only packets that were lost inside this machine can add up to this.
 */
export const MAX_UNDELIVERED_BYTES: number = 8 * 1024 * 1024;
/** Memory of one stored packet in addition to its payload, bytes. */
const PACKET_OVERHEAD_BYTES = 64;

export class PacketWindow {
  /** The next sequence number to deliver. */
  #next = 0;
  /** Sizes of later packets that have arrived, by sequence number. */
  readonly #ahead = new Map<number, number>();
  #waitingBytes = 0;
  #admittedBytes = 0;
  #deliveredBytes = 0;

  /** Memory of packets that are out of order, bytes. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  get isBroken(): boolean {
    return this.#admittedBytes - this.#deliveredBytes > MAX_UNDELIVERED_BYTES;
  }

  /** Counts bytes that the stream has delivered in order. */
  delivered(bytes: number): void {
    this.#deliveredBytes += bytes;
  }

  /** True if the packet is admitted. It is then counted. */
  admit({ type, seq, payloadBytes }: UdxPacket): boolean {
    if ((type & (UDX_TYPE.data | UDX_TYPE.end)) === 0) return true;
    const distance = (seq - this.#next) >>> 0;
    // A retransmission: the stream may have missed the first packet.
    if (distance > 0x7fff_ffff || this.#ahead.has(seq)) return true;
    if (distance >= MAX_PACKETS_AHEAD) return false;
    this.#admittedBytes += payloadBytes;
    if (distance > 0) {
      this.#ahead.set(seq, payloadBytes + PACKET_OVERHEAD_BYTES + UDX_HEADER_BYTES);
      this.#waitingBytes += payloadBytes + PACKET_OVERHEAD_BYTES + UDX_HEADER_BYTES;
      return true;
    }
    this.#advance();
    return true;
  }

  #advance(): void {
    this.#next = (this.#next + 1) >>> 0;
    for (let bytes = this.#ahead.get(this.#next); bytes !== undefined; bytes = this.#ahead.get(this.#next)) {
      this.#ahead.delete(this.#next);
      this.#waitingBytes -= bytes;
      this.#next = (this.#next + 1) >>> 0;
    }
  }
}

/** Memory for packets that are out of order on all lanes together, bytes. */
export const MAX_OUT_OF_ORDER_BYTES: number = 32 * 1024 * 1024;
/** Datagrams in transit inside this machine: fewer than the smallest usual receive buffer can store. */
const MAX_DATAGRAMS_INSIDE = 128;
/** Milliseconds without progress after which datagrams inside this machine were lost. Every lane is lost with them. */
const INSIDE_STALL_MS = 1_000;
const HOST = '127.0.0.1';

interface LaneStreamOptions {
  /** The outer socket that the peer writes to. */
  readonly socket: UdpSocket;
  /** Host of the peer. */
  readonly host: string;
  /** The source for limits. */
  readonly source: string;
  /** Connects the stream when its first packet arrives. False while no packet is expected. */
  readonly arrived: (port: number) => boolean;
}

interface Entry extends LaneStreamOptions {
  readonly stream: Stream;
  readonly window: PacketWindow;
}

/** The two local sockets. */
interface Inside {
  readonly udx: Udx;
  readonly from: UdpSocket;
  readonly to: UdpSocket;
  readonly fromPort: number;
  readonly toPort: number;
}

export class LaneEntrance {
  readonly #clock: Clock;
  readonly #entries = new Map<number, Entry>();
  readonly #watched = new WeakSet<UdpSocket>();
  #inside: Inside | null = null;
  #handed = 0;
  #waitingBytes = 0;
  /** Since when no datagram can be forwarded. Null if one can. */
  #fullSince: number | null = null;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Memory of packets that are out of order, bytes. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Closes the sockets. Call it after all streams have closed. */
  async stop(): Promise<void> {
    await Promise.all([this.#inside?.from.close(), this.#inside?.to.close()]);
  }

  /**
   * Creates a stream, to be connected over `socket`.
   * @param id its number in packets, 32 bits
   * @throws SvcError `connect_failed` if the system has no ports
   */
  stream(id: number, options: LaneStreamOptions): Stream {
    this.#inside ??= openInside();
    const { udx, to, fromPort } = this.#inside;
    const firewall = (at: UdpSocket, port: number, host: string): boolean =>
      at !== to || port !== fromPort || host !== HOST;
    const stream = udx.createStream(id, { firewall });
    const window = new PacketWindow();
    this.#entries.set(id, { ...options, stream, window });
    stream.on('data', (chunk: Uint8Array) => window.delivered(chunk.length));
    stream.on('close', () => {
      this.#entries.delete(id);
      this.#waitingBytes -= window.waitingBytes;
    });
    if (!this.#watched.has(options.socket)) this.#watch(options.socket);
    return stream;
  }

  #watch(socket: UdpSocket): void {
    this.#watched.add(socket);
    socket.on('message', (datagram: Uint8Array, from: Address) => this.#receive(datagram, from, socket));
  }

  #receive(datagram: Uint8Array, from: Address, socket: UdpSocket): void {
    const packet = decodeUdxPacket(datagram);
    const entry = packet === null ? undefined : this.#entries.get(packet.id);
    if (packet === null || entry === undefined || entry.socket !== socket || entry.host !== from.host) return;
    const { stream, window } = entry;
    if (stream.destroyed || (!stream.connected && !entry.arrived(from.port)) || !this.#hasRoom()) return;
    const before = window.waitingBytes;
    if (!window.admit(packet)) return;
    this.#waitingBytes += window.waitingBytes - before;
    if (window.isBroken) return stream.destroy();
    if (this.#waitingBytes > MAX_OUT_OF_ORDER_BYTES) this.#evict();
    if (stream.destroyed || this.#inside === null) return;
    this.#handed++;
    this.#inside.from.trySend(datagram, this.#inside.toPort, HOST);
  }

  /** The peer retransmits dropped datagrams, like lost packets. */
  #hasRoom(): boolean {
    const received = this.#inside?.to.packetsReceived ?? 0;
    if (this.#handed - received < MAX_DATAGRAMS_INSIDE) {
      this.#fullSince = null;
      return true;
    }
    const now = this.#clock.monotonic();
    this.#fullSince ??= now;
    if (now - this.#fullSince < INSIDE_STALL_MS) return false;
    this.#handed = received;
    for (const { stream } of this.#entries.values()) stream.destroy();
    return false;
  }

  /** Drops the biggest lane of the biggest source. */
  #evict(): void {
    const bySource = new Map<string, number>();
    for (const { source, window } of this.#entries.values())
      bySource.set(source, (bySource.get(source) ?? 0) + window.waitingBytes);
    const held = (entry: Entry): number => bySource.get(entry.source) ?? 0;
    const [worst] = [...this.#entries.values()].sort(
      (a, b) => held(b) - held(a) || b.window.waitingBytes - a.window.waitingBytes,
    );
    worst?.stream.destroy();
  }
}

/** @throws SvcError `connect_failed` if the system has no ports */
function openInside(): Inside {
  const udx = createUdx();
  const [from, to] = [udx.createSocket(), udx.createSocket()];
  bindAnyPort(from, HOST);
  try {
    bindAnyPort(to, HOST);
  } catch (error) {
    detach(from.close());
    throw error;
  }
  return { udx, from, to, fromPort: from.address()?.port ?? 0, toPort: to.address()?.port ?? 0 };
}
