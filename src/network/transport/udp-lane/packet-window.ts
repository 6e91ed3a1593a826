/**
 * Which packets of one lane may reach `udx-native`. It stores every packet that is out of order, in a table that grows
 * with the distance between two of them, so one sender could fill the memory, and two packets could ask for gigabytes.
 * This class follows the sequence numbers and lets in only what an honest sender can have under way.
 */
import { UDX_HEADER_BYTES, UDX_TYPE, type UdxPacket } from './packets.ts';

/** Packets that may be out of order: more than an honest sender's window of 4 MiB holds. */
export const MAX_PACKETS_AHEAD = 4096;
/** Bytes that were let in and not delivered in order. Only packets that were lost inside this machine add up to so many. */
export const MAX_UNDELIVERED_BYTES: number = 8 * 1024 * 1024;
/** Memory of one stored packet beside its payload, bytes. */
const PACKET_OVERHEAD_BYTES = 64;

export class PacketWindow {
  /** The sequence number that is delivered next. */
  #next = 0;
  /** Bytes of the packets behind it that have arrived, by sequence number. */
  readonly #ahead = new Map<number, number>();
  #waitingBytes = 0;
  #admittedBytes = 0;
  #deliveredBytes = 0;

  /** Memory that packets out of order take, bytes. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  get isBroken(): boolean {
    return this.#admittedBytes - this.#deliveredBytes > MAX_UNDELIVERED_BYTES;
  }

  /** Notes bytes that the stream has delivered in order. */
  delivered(bytes: number): void {
    this.#deliveredBytes += bytes;
  }

  /** Decides about a packet; one that is let in is counted. */
  admit({ type, seq, payloadBytes }: UdxPacket): boolean {
    if ((type & (UDX_TYPE.data | UDX_TYPE.end)) === 0) return true;
    const distance = (seq - this.#next) >>> 0;
    // A repetition: the stream may have missed the first one.
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
