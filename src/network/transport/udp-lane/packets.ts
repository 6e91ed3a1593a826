/** The header of the packets of `udx-native`, as far as a lane looks at it. */

export const UDX_HEADER_BYTES = 20;
const MAGIC = 255;
const VERSION = 1;

/** Bits of the type. */
export const UDX_TYPE = { data: 1, end: 2, sack: 4, message: 8, destroy: 16, heartbeat: 32 } as const;
/** Types that a lane uses; a heartbeat carries nothing else. */
const USED: number = UDX_TYPE.data | UDX_TYPE.end | UDX_TYPE.sack | UDX_TYPE.destroy;

export interface UdxPacket {
  /** Of the stream that receives it. */
  readonly id: number;
  /** Bits of `UDX_TYPE`. */
  readonly type: number;
  readonly seq: number;
  readonly payloadBytes: number;
}

/** Reads a datagram; null for what no lane of ours sends. Runs for each datagram of the record network too. */
export function decodeUdxPacket(datagram: Uint8Array): UdxPacket | null {
  const { length } = datagram;
  if (length < UDX_HEADER_BYTES || datagram[0] !== MAGIC || datagram[1] !== VERSION) return null;
  const view = new DataView(datagram.buffer, datagram.byteOffset, length);
  const type = view.getUint8(2);
  const payloadBytes = length - UDX_HEADER_BYTES - view.getUint8(3);
  const isUsed = type === UDX_TYPE.heartbeat || (type & ~USED) === 0;
  // Packets that the stream would not store must not count as delivered, and empty ones cost more than they count.
  const hasData = (type & UDX_TYPE.data) !== 0;
  if (!isUsed || payloadBytes < 0 || (hasData && payloadBytes === 0)) return null;
  if (!hasData && (type & UDX_TYPE.end) !== 0 && payloadBytes > 0) return null;
  return { id: view.getUint32(4, true), type, seq: view.getUint32(12, true), payloadBytes };
}
