/** Messages of STUN (RFC 8489) and TURN (RFC 8656), limited to relayed UDP over IPv4. Pure. */
import { createHmac } from 'node:crypto';
import type { Address } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';

/** Bytes before the attributes. */
const HEADER_BYTES = 20;
/** The fifth to eighth byte of every message (RFC 8489, 5). */
const MAGIC_COOKIE = 0x2112_a442;
/** Size of the transaction ID, bytes. */
export const TRANSACTION_BYTES = 12;
/** Size of an HMAC-SHA1, bytes. */
const INTEGRITY_BYTES = 20;
/** Largest message to read, bytes: a datagram with its header and attributes. */
export const MAX_STUN_BYTES = 2048;
/** Maximum number of attributes to read from one message. */
const MAX_ATTRIBUTES = 32;

/** Message types: method and class (RFC 8656, 17). */
export const STUN = {
  allocate: 0x0003,
  refresh: 0x0004,
  createPermission: 0x0008,
  send: 0x0016,
  data: 0x0017,
} as const;
/** Class bits of a success response and of an error response. */
export const SUCCESS = 0x0100;
export const FAILURE = 0x0110;

/** Attributes (RFC 8489, 18.3; RFC 8656, 18). */
export const ATTRIBUTE = {
  username: 0x0006,
  messageIntegrity: 0x0008,
  errorCode: 0x0009,
  lifetime: 0x000d,
  xorPeerAddress: 0x0012,
  data: 0x0013,
  realm: 0x0014,
  nonce: 0x0015,
  xorRelayedAddress: 0x0016,
  requestedTransport: 0x0019,
} as const;

export interface StunMessage {
  readonly type: number;
  readonly transaction: Uint8Array;
  /** In the order of the message. If a type occurs more than once, the first attribute counts. */
  readonly attributes: readonly (readonly [type: number, value: Uint8Array])[];
}

function padded(length: number): number {
  return (length + 3) & ~3;
}

/** @param key of the long-term credentials (RFC 8489, 9.2.2); null for a message without MESSAGE-INTEGRITY */
export function encodeStun({ type, transaction, attributes }: StunMessage, key: Uint8Array | null = null): Uint8Array {
  const body = attributes.reduce((bytes, [, value]) => bytes + 4 + padded(value.length), 0);
  const proof = key === null ? 0 : 4 + INTEGRITY_BYTES;
  const message = Buffer.alloc(HEADER_BYTES + body + proof);
  message.writeUInt16BE(type, 0);
  message.writeUInt16BE(body + proof, 2);
  message.writeUInt32BE(MAGIC_COOKIE, 4);
  message.set(transaction, 8);
  let at = HEADER_BYTES;
  const put = (kind: number, value: Uint8Array): void => {
    message.writeUInt16BE(kind, at);
    message.writeUInt16BE(value.length, at + 2);
    message.set(value, at + 4);
    at += 4 + padded(value.length);
  };
  for (const [kind, value] of attributes) put(kind, value);
  if (key !== null) put(ATTRIBUTE.messageIntegrity, createHmac('sha1', key).update(message.subarray(0, at)).digest());
  return new Uint8Array(message.buffer, message.byteOffset, message.length);
}

/** Null if it is not a STUN message, or truncated. */
export function decodeStun(bytes: Uint8Array): StunMessage | null {
  if (bytes.length < HEADER_BYTES || bytes.length > MAX_STUN_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint16(2);
  if (view.getUint16(0) > 0x3fff || view.getUint32(4) !== MAGIC_COOKIE) return null;
  if (length % 4 !== 0 || HEADER_BYTES + length !== bytes.length) return null;
  const attributes: [number, Uint8Array][] = [];
  for (let at = HEADER_BYTES; at < bytes.length; ) {
    const size = view.getUint16(at + 2);
    const end = at + 4 + size;
    if (end > bytes.length || attributes.length >= MAX_ATTRIBUTES) return null;
    attributes.push([view.getUint16(at), bytes.slice(at + 4, end)]);
    at += 4 + padded(size);
  }
  return { type: view.getUint16(0), transaction: bytes.slice(8, HEADER_BYTES), attributes };
}

/** The first attribute of a type. */
export function attributeOf({ attributes }: StunMessage, kind: number): Uint8Array | undefined {
  return attributes.find(([one]) => one === kind)?.[1];
}

/** Verifies MESSAGE-INTEGRITY. Attributes after it are not covered. */
export function hasValidIntegrity(bytes: Uint8Array, key: Uint8Array): boolean {
  const message = decodeStun(bytes);
  if (message === null) return false;
  let at = HEADER_BYTES;
  for (const [kind, value] of message.attributes) {
    if (kind === ATTRIBUTE.messageIntegrity) {
      const covered = Buffer.from(bytes.subarray(0, at));
      covered.writeUInt16BE(at - HEADER_BYTES + 4 + INTEGRITY_BYTES, 2);
      return equalBytes(createHmac('sha1', key).update(covered).digest(), value);
    }
    at += 4 + padded(value.length);
  }
  return false;
}

const COOKIE = Uint8Array.of(0x21, 0x12, 0xa4, 0x42);

/** Encodes an IPv4 address in the XOR-MAPPED-ADDRESS format (RFC 8489, 14.2). */
export function encodeXorAddress({ host, port }: Address): Uint8Array {
  const parts = host.split('.').map(Number);
  return Uint8Array.of(
    0,
    1,
    (port >> 8) ^ 0x21,
    (port & 0xff) ^ 0x12,
    ...parts.map((part, i) => part ^ (COOKIE[i] ?? 0)),
  );
}

/** Null if it is not an IPv4 address. */
export function decodeXorAddress(value: Uint8Array): Address | null {
  if (value.length !== 8 || value[0] !== 0 || value[1] !== 1) return null;
  const [, , high = 0, low = 0, ...parts] = value;
  return { host: parts.map((part, i) => part ^ (COOKIE[i] ?? 0)).join('.'), port: ((high ^ 0x21) << 8) | (low ^ 0x12) };
}

/** Decodes an error code (RFC 8489, 14.8); null if it is invalid. */
export function decodeErrorCode(value: Uint8Array | undefined): number | null {
  const [, , hundreds, rest] = value ?? [];
  if (hundreds === undefined || rest === undefined) return null;
  const code = (hundreds & 7) * 100 + rest;
  return code >= 300 && code < 700 && rest < 100 ? code : null;
}

export function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return new Uint8Array(bytes);
}
