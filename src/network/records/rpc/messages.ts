/** The datagrams of requests and answers. Format: docs/protocol-dht.md, "Datagrams". */
import type { Address } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import { ANSWER_BYTE, NETWORK_TAG_BYTES, REQUEST_BYTE } from '../../transport/udp-socket.ts';
import { addressBytes } from '../node-address.ts';

/** Length of a routing id, a token and a target. */
const WORD_BYTES = 32;

/** Parts after the header. Bits 4 and 8 have one meaning in requests and another one in answers. */
const ID_FLAG = 1;
const TOKEN_FLAG = 2;
const INTERNAL_FLAG = 4;
const NODES_FLAG = 4;
const TARGET_FLAG = 8;
const ERROR_FLAG = 8;
const VALUE_FLAG = 16;
/** Higher first bytes would start a longer number. */
const FLAGS_END = 32;

/** First bytes of numbers in a longer form. A higher one precedes eight bytes. */
const UINT16_MARK = 0xfd;
const UINT32_MARK = 0xfe;

interface Header {
  readonly requestId: number;
  /** The receiver's address as the sender sees it. */
  readonly to: Address;
  /** The routing id that the sender states. */
  readonly id: Uint8Array | null;
  readonly token: Uint8Array | null;
}

export interface RequestDatagram extends Header {
  readonly kind: 'request';
  /** A command of the routing itself. */
  readonly internal: boolean;
  readonly command: number;
  readonly target: Uint8Array | null;
  readonly value: Uint8Array | null;
}

export interface AnswerDatagram extends Header {
  readonly kind: 'answer';
  /** Closer nodes, in answers to FIND_NODE. */
  readonly nodes: readonly Address[];
  /** 0 for none. */
  readonly error: number;
  readonly value: Uint8Array | null;
}

export type Datagram = RequestDatagram | AnswerDatagram;

class Reader {
  readonly #bytes: Buffer;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = at;
  }

  #advance(length: number): number {
    const at = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new RangeError('The datagram is too short.');
    return at;
  }

  byte(): number {
    return this.#bytes.readUInt8(this.#advance(1));
  }

  uint16(): number {
    return this.#bytes.readUInt16LE(this.#advance(2));
  }

  number(): number {
    const first = this.byte();
    if (first < UINT16_MARK) return first;
    if (first === UINT16_MARK) return this.uint16();
    if (first === UINT32_MARK) return this.#bytes.readUInt32LE(this.#advance(4));
    return Number(this.#bytes.readBigUInt64LE(this.#advance(8)));
  }

  take(length: number): Uint8Array {
    const at = this.#advance(length);
    return this.#bytes.subarray(at, at + length);
  }

  optional(isPresent: boolean): Uint8Array | null {
    return isPresent ? this.take(WORD_BYTES) : null;
  }

  address(): Address {
    const host = [...this.take(4)].join('.');
    return { host, port: this.uint16() };
  }

  value(): Uint8Array {
    return this.take(this.number());
  }

  addresses(): Address[] {
    const addresses: Address[] = [];
    for (let left = this.number(); left > 0; left--) addresses.push(this.address());
    return addresses;
  }
}

/** Decodes a datagram of a network; null if it belongs to another network or is malformed. */
export function decodeDatagram(bytes: Uint8Array, tag: Uint8Array): Datagram | null {
  if (!equalBytes(bytes.subarray(0, NETWORK_TAG_BYTES), tag)) return null;
  try {
    return read(new Reader(bytes, NETWORK_TAG_BYTES));
  } catch {
    return null;
  }
}

function read(reader: Reader): Datagram | null {
  const type = reader.byte();
  const flags = reader.byte();
  if ((type !== REQUEST_BYTE && type !== ANSWER_BYTE) || flags >= FLAGS_END) return null;
  const has = (flag: number): boolean => (flags & flag) !== 0;
  const header = {
    requestId: reader.uint16(),
    to: reader.address(),
    id: reader.optional(has(ID_FLAG)),
    token: reader.optional(has(TOKEN_FLAG)),
  };
  if (type === ANSWER_BYTE) {
    const nodes = has(NODES_FLAG) ? reader.addresses() : [];
    const error = has(ERROR_FLAG) ? reader.number() : 0;
    return { kind: 'answer', ...header, nodes, error, value: has(VALUE_FLAG) ? reader.value() : null };
  }
  const command = reader.number();
  const target = reader.optional(has(TARGET_FLAG));
  const value = has(VALUE_FLAG) ? reader.value() : null;
  return { kind: 'request', ...header, internal: has(INTERNAL_FLAG), command, target, value };
}

function numberBytes(value: number): Uint8Array {
  if (value < UINT16_MARK) return Uint8Array.of(value);
  const isShort = value <= 0xffff;
  const bytes = Buffer.alloc(isShort ? 3 : 5);
  if (isShort) bytes.writeUInt16LE(value, 1);
  else bytes.writeUInt32LE(value, 1);
  bytes[0] = isShort ? UINT16_MARK : UINT32_MARK;
  return bytes;
}

/** @param tag of the network */
export function encodeDatagram(datagram: Datagram, tag: Uint8Array): Uint8Array {
  const { requestId, to, id, token, value } = datagram;
  const isRequest = datagram.kind === 'request';
  const nodes = isRequest ? [] : datagram.nodes;
  const target = isRequest ? datagram.target : null;
  const error = isRequest ? 0 : datagram.error;
  const flags =
    (id === null ? 0 : ID_FLAG) |
    (token === null ? 0 : TOKEN_FLAG) |
    (isRequest && datagram.internal ? INTERNAL_FLAG : 0) |
    (nodes.length === 0 ? 0 : NODES_FLAG) |
    (target === null ? 0 : TARGET_FLAG) |
    (error === 0 ? 0 : ERROR_FLAG) |
    (value === null ? 0 : VALUE_FLAG);
  const none = new Uint8Array();
  return Buffer.concat([
    tag,
    Uint8Array.of(isRequest ? REQUEST_BYTE : ANSWER_BYTE, flags, requestId & 0xff, requestId >> 8),
    addressBytes(to),
    id ?? none,
    token ?? none,
    isRequest ? numberBytes(datagram.command) : none,
    target ?? none,
    nodes.length === 0 ? none : numberBytes(nodes.length),
    ...nodes.map(addressBytes),
    error === 0 ? none : numberBytes(error),
    value === null ? none : numberBytes(value.length),
    value ?? none,
  ]);
}
