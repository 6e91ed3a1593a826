/**
 * Datagrams of the simulated QUIC engine. They carry what decides the behavior of connections: handshakes, acknowledged
 * packets with frames of streams, and the end. Nothing is encrypted, and keys are stated, not proven.
 */

export const ID_BYTES = 8;
const KEY_BYTES = 32;

export const PACKET = { initial: 1, accept: 2, data: 3, ack: 4, close: 5 } as const;
export const FRAME = { ping: 0, data: 1, end: 2, reset: 3, stop: 4, read: 5 } as const;
export type FrameKind = (typeof FRAME)[keyof typeof FRAME];

export interface Frame {
  readonly kind: FrameKind;
  /** Even numbers belong to the side that dialed. */
  readonly stream: number;
  /** Bytes of a `data` frame. */
  readonly bytes: Uint8Array;
  /** Bytes that the reader has read since the last frame, of a `read` frame. */
  readonly count: number;
}

export type Packet =
  | { readonly type: 'initial' | 'accept'; readonly id: string; readonly key: Uint8Array; readonly streams: number }
  /** Everything before `acknowledged` has arrived. */
  | {
      readonly type: 'data';
      readonly id: string;
      readonly acknowledged: number;
      readonly nth: number;
      readonly frame: Frame;
    }
  | { readonly type: 'ack'; readonly id: string; readonly acknowledged: number }
  | { readonly type: 'close'; readonly id: string };

const HEAD_BYTES = 1 + ID_BYTES;
const FRAME_AT = HEAD_BYTES + 8;
const FRAME_HEAD_BYTES = 9;
const NO_BYTES = new Uint8Array();

function head(type: number, id: string, length: number): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES + length);
  bytes[0] = type;
  bytes.write(id, 1, 'latin1');
  return bytes;
}

export function encodePacket(packet: Packet): Uint8Array {
  switch (packet.type) {
    case 'initial':
    case 'accept': {
      const bytes = head(PACKET[packet.type], packet.id, KEY_BYTES + 4);
      bytes.set(packet.key, HEAD_BYTES);
      bytes.writeUInt32BE(packet.streams, HEAD_BYTES + KEY_BYTES);
      return bytes;
    }
    case 'data': {
      const { kind, stream, bytes: content, count } = packet.frame;
      const bytes = head(PACKET.data, packet.id, 8 + FRAME_HEAD_BYTES + content.length);
      bytes.writeUInt32BE(packet.acknowledged, HEAD_BYTES);
      bytes.writeUInt32BE(packet.nth, HEAD_BYTES + 4);
      bytes[FRAME_AT] = kind;
      bytes.writeUInt32BE(stream, FRAME_AT + 1);
      bytes.writeUInt32BE(count, FRAME_AT + 5);
      bytes.set(content, FRAME_AT + FRAME_HEAD_BYTES);
      return bytes;
    }
    case 'ack': {
      const bytes = head(PACKET.ack, packet.id, 4);
      bytes.writeUInt32BE(packet.acknowledged, HEAD_BYTES);
      return bytes;
    }
    default:
      return head(PACKET.close, packet.id, 0);
  }
}

/** Null for other datagrams, such as packets that open a NAT. */
export function decodePacket(datagram: Uint8Array): Packet | null {
  if (datagram.length < HEAD_BYTES) return null;
  const bytes = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.length);
  const id = bytes.toString('latin1', 1, HEAD_BYTES);
  const [type] = bytes;
  switch (type) {
    case PACKET.initial:
    case PACKET.accept:
      if (bytes.length !== HEAD_BYTES + KEY_BYTES + 4) return null;
      return {
        type: type === PACKET.initial ? 'initial' : 'accept',
        id,
        key: Uint8Array.from(bytes.subarray(HEAD_BYTES, HEAD_BYTES + KEY_BYTES)),
        streams: bytes.readUInt32BE(HEAD_BYTES + KEY_BYTES),
      };
    case PACKET.data: {
      if (bytes.length < FRAME_AT + FRAME_HEAD_BYTES) return null;
      const frame: Frame = {
        kind: bytes[FRAME_AT] as FrameKind,
        stream: bytes.readUInt32BE(FRAME_AT + 1),
        count: bytes.readUInt32BE(FRAME_AT + 5),
        bytes: bytes.length > FRAME_AT + FRAME_HEAD_BYTES ? bytes.subarray(FRAME_AT + FRAME_HEAD_BYTES) : NO_BYTES,
      };
      return {
        type: 'data',
        id,
        acknowledged: bytes.readUInt32BE(HEAD_BYTES),
        nth: bytes.readUInt32BE(HEAD_BYTES + 4),
        frame,
      };
    }
    case PACKET.ack:
      return bytes.length === HEAD_BYTES + 4 ? { type: 'ack', id, acknowledged: bytes.readUInt32BE(HEAD_BYTES) } : null;
    case PACKET.close:
      return bytes.length === HEAD_BYTES ? { type: 'close', id } : null;
    default:
      return null;
  }
}
