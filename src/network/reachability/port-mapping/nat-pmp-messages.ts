/** Messages of the NAT Port Mapping Protocol (RFC 6886). Pure. */
import { ipv4Text } from '../../../foundation/ip.ts';

const VERSION = 0;
const OPCODE_ADDRESS = 0;
const OPCODE_MAP_UDP = 1;
const REPLY_OPCODES = 128;
const ADDRESS_REPLY_BYTES = 12;
const MAP_REPLY_BYTES = 16;

export interface NatPmpAddressReply {
  /** 0 for success (RFC 6886, 3.5). */
  readonly result: number;
  readonly externalHost: string;
}

export interface NatPmpMapReply {
  readonly result: number;
  readonly internalPort: number;
  readonly externalPort: number;
  readonly lifetimeS: number;
}

/** Asks for the outer address (RFC 6886, 3.2). */
export function encodeNatPmpAddress(): Uint8Array {
  return Uint8Array.of(VERSION, OPCODE_ADDRESS);
}

/** Asks for a UDP port (RFC 6886, 3.3). @param lifetimeS 0 releases */
export function encodeNatPmpMap(internalPort: number, suggestedPort: number, lifetimeS: number): Uint8Array {
  const bytes = new Uint8Array(12);
  const view = new DataView(bytes.buffer);
  bytes[1] = OPCODE_MAP_UDP;
  view.setUint16(4, internalPort);
  view.setUint16(6, suggestedPort);
  view.setUint32(8, lifetimeS);
  return bytes;
}

/** Null unless it is the answer of that form and length. */
function replyView(bytes: Uint8Array, opcode: number, length: number): DataView | null {
  if (bytes[0] !== VERSION || bytes[1] !== REPLY_OPCODES + opcode) return null;
  if (bytes.length !== length) return null;
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function decodeNatPmpAddress(bytes: Uint8Array): NatPmpAddressReply | null {
  const view = replyView(bytes, OPCODE_ADDRESS, ADDRESS_REPLY_BYTES);
  return view === null ? null : { result: view.getUint16(2), externalHost: ipv4Text(view.getUint32(8)) };
}

export function decodeNatPmpMap(bytes: Uint8Array): NatPmpMapReply | null {
  const view = replyView(bytes, OPCODE_MAP_UDP, MAP_REPLY_BYTES);
  if (view === null) return null;
  return {
    result: view.getUint16(2),
    internalPort: view.getUint16(8),
    externalPort: view.getUint16(10),
    lifetimeS: view.getUint32(12),
  };
}
