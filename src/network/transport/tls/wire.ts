/**
 * Messages of UDP over TLS (docs/protocol-tls.md). A helper lends UDP ports to a client over one WebSocket. Decoders
 * process untrusted input and return null for invalid messages.
 */
import type { ConnectionOptions } from 'node:tls';
import type { Address } from '../../../foundation/address.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES, type Signer } from '../../../foundation/identity/ed25519.ts';
import { canonicalIp, IPV4_BYTES, IPV6_BYTES, ipv4Text } from '../../../foundation/ip.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { NETWORK_TAG_BYTES } from '../udp-socket.ts';

/** The version of the hellos. Its number is also in `TLS_PATH`. */
export const TLS_VERSION = 1;
/** The path of the upgrade request, step 2. */
export const TLS_PATH = '/svcd/1';
/**
 * Options of every TLS connection that carries others. Without the large key shares of post-quantum groups, the first
 * message fits into one packet, as some firewalls require. The connections inside have their own encryption.
 */
export const OUTER_TLS: Readonly<Pick<ConnectionOptions, 'ALPNProtocols' | 'ecdhCurve'>> = {
  ALPNProtocols: ['http/1.1'],
  ecdhCurve: 'X25519:P-256',
};
/** The headers of the 101 answer that carry the helper's nonce and its key, step 2. */
export const NONCE_HEADER = 'Svcd-Nonce';
export const NODE_HEADER = 'Svcd-Node';
/** Size of both nonces, bytes. */
export const NONCE_BYTES = 32;
/** The label of the exporter of the TLS session (RFC 8446, 7.5), step 3. */
export const EXPORTER_LABEL = 'EXPORTER-svcd-tls';
/** Size of the exporter, bytes. */
export const EXPORTER_BYTES = 32;
/** Size of the token of a hello, bytes. It resumes lent ports, or names a lane. */
export const TLS_TOKEN_BYTES = 16;
/** Largest message, bytes, step 5. Receivers close the connection on a longer one. */
export const MAX_TLS_MESSAGE_BYTES: number = 64 * 1024;
/** Largest datagram, bytes, step 5. */
export const MAX_CARRIED_BYTES = 1500;
/** The highest number of a lent port, step 5. The lowest is 1. */
export const MAX_LENT_NUMBER = 127;

const CLIENT_CONTEXT = new TextEncoder().encode('svcd/tls/client/1');
const HELPER_CONTEXT = new TextEncoder().encode('svcd/tls/helper/1');

/** Purpose of a connection, step 3: borrowed ports, or one end of a lane. */
export const TLS_PURPOSE = { ports: 0, lane: 1 } as const;
export type TlsPurpose = (typeof TLS_PURPOSE)[keyof typeof TLS_PURPOSE];

/** The first message of a client, step 3. */
export interface ClientHello {
  readonly purpose: TlsPurpose;
  /** The tag of the record network, 8 bytes. */
  readonly tag: Uint8Array;
  readonly nodeKey: Uint8Array;
  /** The key of the helper. Another helper refuses the hello. */
  readonly helperKey: Uint8Array;
  readonly nonce: Uint8Array;
  /** The exporter of the TLS session; zeros if there is none, as behind a web server. */
  readonly exporter: Uint8Array;
  /** Resumes the ports of an earlier connection, or names a lane; null for new ports. */
  readonly token: Uint8Array | null;
}

/** Status of a helper's hello, step 4. */
export const TLS_STATUS = {
  ok: 0,
  /** The helper does not help others. */
  notHelping: 1,
  full: 2,
  rateLimited: 3,
  otherNetwork: 4,
  badSignature: 5,
  unknownVersion: 6,
  /** The client wants a helper with another key. */
  otherNode: 7,
} as const;
export type TlsStatus = (typeof TLS_STATUS)[keyof typeof TLS_STATUS];

/** The first message of a helper, step 4. If the status is not `ok`, the helper closes the connection after it. */
export interface HelperHello {
  readonly status: TlsStatus;
  readonly nodeKey: Uint8Array;
  readonly exporter: Uint8Array;
  /** Resumes the ports within 30 s after the connection was lost. */
  readonly resume: Uint8Array;
  /** True if the ports of the earlier connection are still open, with the same numbers. */
  readonly isResumed: boolean;
  /** Ports that the client may use at the same time: their numbers may be 1 to 127. */
  readonly ports: number;
  /** The IP address of the lent ports as others see it; null if the helper does not know it. */
  readonly host: string | null;
}

/** A decoded hello whose signature is not verified yet. */
export interface SignedHello<H> {
  readonly hello: H;
  /** The signed bytes. */
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
}

const CLIENT_HELLO_BYTES: number =
  2 + NETWORK_TAG_BYTES + 2 * PUBLIC_KEY_BYTES + NONCE_BYTES + EXPORTER_BYTES + TLS_TOKEN_BYTES + SIGNATURE_BYTES;

/** Hosts that are cached as bytes, and as text. */
const MAX_CACHED_HOSTS = 1024;
const bytesOfHost = new LruCache<string, Uint8Array>({ maxEntries: MAX_CACHED_HOSTS });
const ipv6OfBytes = new LruCache<string, string>({ maxEntries: MAX_CACHED_HOSTS });

function ipv6Groups(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

function ipv6Bytes(host: string): Uint8Array {
  const [head = '', tail = ''] = host.split('::', 2);
  const [left, right] = [ipv6Groups(head), ipv6Groups(tail)];
  const bytes = Buffer.alloc(IPV6_BYTES);
  left.forEach((group, i) => bytes.writeUInt16BE(group, 2 * i));
  right.forEach((group, i) => bytes.writeUInt16BE(group, IPV6_BYTES - 2 * (right.length - i)));
  return bytes;
}

/**
 * The 4 or 16 bytes of an IP address in canonical form.
 * @throws TypeError for any other text
 */
function hostBytes(host: string): Uint8Array {
  const known = bytesOfHost.get(host);
  if (known !== undefined) return known;
  if (canonicalIp(host) !== host) throw new TypeError(`${host} is not a canonical IP address`);
  const bytes = host.includes(':') ? ipv6Bytes(host) : Uint8Array.from(host.split('.'), Number);
  bytesOfHost.set(host, bytes);
  return bytes;
}

/** The canonical text of 16 bytes; null for IPv4-mapped addresses, which are sent as IPv4. */
function ipv6Host(bytes: Buffer): string | null {
  const key = bytes.toString('latin1');
  const known = ipv6OfBytes.get(key);
  if (known !== undefined) return known;
  const host = canonicalIp(bytes.toString('hex').replace(/(.{4})(?!$)/g, '$1:'));
  if (host === null || !host.includes(':')) return null;
  ipv6OfBytes.set(key, host);
  return host;
}

/** Reads consecutive fields. @throws RangeError after the last byte */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  get at(): number {
    return this.#at;
  }

  uint8(): number {
    return this.#bytes.readUInt8(this.#at++);
  }

  uint16(): number {
    this.#at += 2;
    return this.#bytes.readUInt16BE(this.#at - 2);
  }

  /** A view of the next bytes. */
  view(length: number): Buffer {
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new RangeError('The message is too short.');
    return this.#bytes.subarray(from, this.#at);
  }

  /** A copy of the next bytes. */
  copy(length: number): Uint8Array {
    return Uint8Array.from(this.view(length));
  }

  /** An IP address; null for one that is not canonical. */
  host(isIpv6: boolean): string | null {
    return isIpv6 ? ipv6Host(this.view(IPV6_BYTES)) : ipv4Text(this.view(IPV4_BYTES).readUInt32BE());
  }
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

function nullIfZero(bytes: Uint8Array): Uint8Array | null {
  return isZero(bytes) ? null : bytes;
}

/** Null if a message ends early, as for any other invalid message. */
function decoded<T>(bytes: Uint8Array, read: (reader: Reader) => T | null): T | null {
  const reader = new Reader(bytes);
  try {
    return read(reader);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** The version of a hello, its first byte; null if it is empty. Helpers answer other versions with a status. */
export function helloVersion(bytes: Uint8Array): number | null {
  return bytes[0] ?? null;
}

/**
 * Step 3.
 * @param helperNonce of the header, 32 bytes
 * @param signer the key of `hello.nodeKey`
 */
export function encodeClientHello(hello: ClientHello, helperNonce: Uint8Array, signer: Signer): Uint8Array {
  const { purpose, tag, nodeKey, helperKey, nonce, exporter } = hello;
  const token = hello.token ?? new Uint8Array(TLS_TOKEN_BYTES);
  const head = Uint8Array.of(TLS_VERSION, purpose);
  const fields = Buffer.concat([head, tag, nodeKey, helperKey, nonce, exporter, token]);
  const signature = signer.sign(Buffer.concat([CLIENT_CONTEXT, helperNonce, fields]));
  return new Uint8Array(Buffer.concat([fields, signature]));
}

/**
 * Step 3; null if it is invalid.
 * @param helperNonce of the header, which the signature covers
 */
export function decodeClientHello(bytes: Uint8Array, helperNonce: Uint8Array): SignedHello<ClientHello> | null {
  if (bytes.length !== CLIENT_HELLO_BYTES) return null;
  return decoded(bytes, (reader) => {
    const [version, purpose] = [reader.uint8(), reader.uint8()];
    if (version !== TLS_VERSION || (purpose !== TLS_PURPOSE.ports && purpose !== TLS_PURPOSE.lane)) return null;
    const [tag, nodeKey] = [reader.copy(NETWORK_TAG_BYTES), reader.copy(PUBLIC_KEY_BYTES)];
    const helperKey = reader.copy(PUBLIC_KEY_BYTES);
    const [nonce, exporter] = [reader.copy(NONCE_BYTES), reader.copy(EXPORTER_BYTES)];
    const token = nullIfZero(reader.copy(TLS_TOKEN_BYTES));
    if (purpose === TLS_PURPOSE.lane && token === null) return null;
    const message = new Uint8Array(Buffer.concat([CLIENT_CONTEXT, helperNonce, bytes.subarray(0, reader.at)]));
    const hello = { purpose, tag, nodeKey, helperKey, nonce, exporter, token };
    return { hello, message, signature: reader.copy(SIGNATURE_BYTES) };
  });
}

/**
 * Step 4.
 * @param clientNonce of the client's hello; zeros if the hello was invalid
 * @param signer the key of `hello.nodeKey`
 */
export function encodeHelperHello(hello: HelperHello, clientNonce: Uint8Array, signer: Signer): Uint8Array {
  const { status, nodeKey, exporter, resume, isResumed, ports, host } = hello;
  const address = host === null ? new Uint8Array(IPV4_BYTES) : hostBytes(host);
  const fields = Buffer.concat([
    Uint8Array.of(TLS_VERSION, status),
    nodeKey,
    exporter,
    resume,
    Uint8Array.of(isResumed ? 1 : 0, ports, address.length === IPV6_BYTES ? 6 : 4),
    address,
  ]);
  const signature = signer.sign(Buffer.concat([HELPER_CONTEXT, clientNonce, fields]));
  return new Uint8Array(Buffer.concat([fields, signature]));
}

const STATUSES: ReadonlySet<number> = new Set(Object.values(TLS_STATUS));

function isStatus(value: number): value is TlsStatus {
  return STATUSES.has(value);
}

/**
 * Step 4; null if it is invalid.
 * @param clientNonce of the client's hello, which the signature covers
 */
export function decodeHelperHello(bytes: Uint8Array, clientNonce: Uint8Array): SignedHello<HelperHello> | null {
  return decoded(bytes, (reader) => {
    const [version, status] = [reader.uint8(), reader.uint8()];
    if (version !== TLS_VERSION || !isStatus(status)) return null;
    const [nodeKey, exporter] = [reader.copy(PUBLIC_KEY_BYTES), reader.copy(EXPORTER_BYTES)];
    const resume = reader.copy(TLS_TOKEN_BYTES);
    const [resumed, ports, family] = [reader.uint8(), reader.uint8(), reader.uint8()];
    if (resumed > 1 || ports > MAX_LENT_NUMBER || (family !== 4 && family !== 6)) return null;
    const isUnknown = isZero(bytes.subarray(reader.at, reader.at + (family === 6 ? IPV6_BYTES : IPV4_BYTES)));
    const host = reader.host(family === 6);
    if (host === null) return null;
    const message = new Uint8Array(Buffer.concat([HELPER_CONTEXT, clientNonce, bytes.subarray(0, reader.at)]));
    const signature = reader.copy(SIGNATURE_BYTES);
    if (!reader.isAtEnd) return null;
    const known = isUnknown ? null : host;
    return {
      hello: { status, nodeKey, exporter, resume, isResumed: resumed === 1, ports, host: known },
      message,
      signature,
    };
  });
}

/** A datagram on its way between a lent port and a remote node, step 5. */
export interface CarriedDatagram {
  /** The number of the lent port, 1 to 127. */
  readonly number: number;
  /** The remote node: destination on the way to the helper, source on the way to the client. Null closes the port. */
  readonly remote: Address | null;
  /** Empty if `remote` is null. Decoded ones are views of the message. */
  readonly datagram: Uint8Array;
}

const IPV6_BIT = 0x80;
/** Bytes before the address: length and number. */
const HEAD_BYTES = 3;
const PORT_BYTES = 2;
const NO_BYTES: Uint8Array = new Uint8Array();

/** The entry that closes a lent port, step 5. */
export function closingEntry(number: number): CarriedDatagram {
  return { number, remote: null, datagram: NO_BYTES };
}

/**
 * One entry of a batch, step 5. A message consists of one or more entries and has at most `MAX_TLS_MESSAGE_BYTES`.
 * @throws TypeError if the host is not an IP address in canonical form, RangeError if the number is not 1 to 127 or the
 *   datagram is longer than 1,500 bytes
 */
export function encodeEntry({ number, remote, datagram }: CarriedDatagram): Buffer {
  if (!Number.isInteger(number) || number < 1 || number > MAX_LENT_NUMBER)
    throw new RangeError(`${number} is not the number of a lent port`);
  if (datagram.length > MAX_CARRIED_BYTES) throw new RangeError(`a datagram of ${datagram.length} bytes is too long`);
  const host = hostBytes(remote?.host ?? '0.0.0.0');
  const entry = Buffer.allocUnsafe(HEAD_BYTES + host.length + PORT_BYTES + datagram.length);
  entry.writeUInt16BE(entry.length - 2, 0);
  entry[2] = host.length === IPV6_BYTES ? number | IPV6_BIT : number;
  entry.set(host, HEAD_BYTES);
  entry.writeUInt16BE(remote?.port ?? 0, HEAD_BYTES + host.length);
  entry.set(datagram, HEAD_BYTES + host.length + PORT_BYTES);
  return entry;
}

function readEntry(reader: Reader): CarriedDatagram | null {
  const length = reader.uint16();
  const from = reader.at;
  const first = reader.uint8();
  const number = first & MAX_LENT_NUMBER;
  const host = reader.host((first & IPV6_BIT) !== 0);
  const port = reader.uint16();
  const size = length - (reader.at - from);
  if (number === 0 || host === null || size < 0 || size > MAX_CARRIED_BYTES) return null;
  const datagram = reader.view(size);
  if (port !== 0) return { number, remote: { host, port }, datagram };
  return host === '0.0.0.0' && size === 0 ? closingEntry(number) : null;
}

/** The entries of a message in their order; null if any is invalid or the message is empty or too long. Step 5. */
export function decodeBatch(message: Uint8Array): CarriedDatagram[] | null {
  if (message.length === 0 || message.length > MAX_TLS_MESSAGE_BYTES) return null;
  return decoded(message, (reader) => {
    const entries: CarriedDatagram[] = [];
    while (!reader.isAtEnd) {
      const entry = readEntry(reader);
      if (entry === null) return null;
      entries.push(entry);
    }
    return entries;
  });
}

const COUNT_BYTES = 8;

/** The payload of a ping, step 6: the bytes written so far. */
export function encodePing(written: number): Buffer {
  const payload = Buffer.alloc(COUNT_BYTES);
  payload.writeBigUInt64BE(BigInt(written));
  return payload;
}

/** The bytes that a pong acknowledges, step 6; null if the payload is not 8 bytes or too large for a count of bytes. */
export function decodePing(payload: Uint8Array): number | null {
  if (payload.length !== COUNT_BYTES) return null;
  const count = Number(new DataView(payload.buffer, payload.byteOffset, COUNT_BYTES).getBigUint64(0));
  return Number.isSafeInteger(count) ? count : null;
}

/** The value of a header with 32 bytes, step 2. */
export function encodeNonce(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

/** The 32 bytes of a header, step 2, a nonce or a key; null if it does not have 32 bytes in base64url. */
export function decodeNonce(text: string | undefined): Uint8Array | null {
  const bytes = new Uint8Array(Buffer.from(text ?? '', 'base64url'));
  return bytes.length === NONCE_BYTES && encodeNonce(bytes) === text ? bytes : null;
}
