/**
 * Reads the server name of a TLS ClientHello (RFC 8446, 4.1.2; RFC 6066, 3) that arrives in any number of chunks and
 * records. No byte is read twice, so a slow sender costs as much as a fast one. With an encrypted hello, the outer name counts.
 */

/** Longest start of a connection until the ClientHello is complete, bytes. Hellos have up to a few KiB. */
export const MAX_CLIENT_HELLO_BYTES: number = 16 * 1024;
/** First size of the buffer, bytes. Enough for the hellos of browsers. */
const FIRST_BUFFER_BYTES = 2048;

const RECORD_START_BYTES = 5;
const HANDSHAKE_HEADER_BYTES = 4;
const RECORD_HANDSHAKE = 22;
const MESSAGE_CLIENT_HELLO = 1;
const MAJOR_VERSION = 3;
const RANDOM_AND_VERSION_BYTES = 34;
const EXTENSION_SERVER_NAME = 0;
const HOST_NAME = 0;
/** Longest host name, bytes (RFC 1035). */
const MAX_HOST_NAME_BYTES = 255;

/** `more`: the hello is incomplete. `invalid`: it is no ClientHello, or too long. */
export type HelloState = 'more' | 'invalid' | 'done';

/** Reads fields of a complete message. @throws RangeError if bytes are missing */
class Fields {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  skip(length: number): void {
    if (length > this.left) throw new RangeError('cut short');
    this.#at += length;
  }

  u8(): number {
    this.skip(1);
    return this.#bytes.readUInt8(this.#at - 1);
  }

  u16(): number {
    this.skip(2);
    return this.#bytes.readUInt16BE(this.#at - 2);
  }

  /** The next bytes, as fields. */
  part(length: number): Fields {
    return new Fields(this.bytes(length));
  }

  bytes(length: number): Buffer {
    this.skip(length);
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

/** The host name of a `server_name` extension. A list has one name. @throws RangeError */
function hostNameOf(extension: Fields): string {
  const list = extension.part(extension.u16());
  if (extension.left > 0 || list.u8() !== HOST_NAME) throw new RangeError('no host name');
  const name = list.bytes(list.u16()).toString('latin1');
  if (list.left > 0 || name === '' || name.length > MAX_HOST_NAME_BYTES) throw new RangeError('no host name');
  return name.toLowerCase();
}

/** The server name of a ClientHello without its handshake header; null without one. @throws RangeError */
function serverNameOf(hello: Fields): string | null {
  hello.skip(RANDOM_AND_VERSION_BYTES);
  hello.skip(hello.u8());
  hello.skip(hello.u16());
  hello.skip(hello.u8());
  if (hello.left === 0) return null;
  const extensions = hello.part(hello.u16());
  if (hello.left > 0) throw new RangeError('extra bytes');
  let name: string | null = null;
  while (extensions.left > 0) {
    const type = extensions.u16();
    const extension = extensions.part(extensions.u16());
    if (type !== EXTENSION_SERVER_NAME) continue;
    if (name !== null) throw new RangeError('two server names');
    name = hostNameOf(extension);
  }
  return name;
}

/** Bytes in one buffer that grows. Small records would cost more memory as one buffer each. */
class GrowingBytes {
  #buffer: Buffer = Buffer.allocUnsafe(FIRST_BUFFER_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** All bytes, valid until the next `add`. */
  get all(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  add(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, this.#length);
    this.#length = length;
  }
}

export class ClientHelloReader {
  readonly #bytes = new GrowingBytes();
  /** The offset of the next record. */
  #next = 0;
  /** The handshake message so far, and its length with its header; 0 if unknown. */
  readonly #message = new GrowingBytes();
  #expected = 0;
  #state: HelloState = 'more';
  #name: string | null = null;

  /** The server name in lower case; null without one. */
  get serverName(): string | null {
    return this.#name;
  }

  /** All bytes so far. */
  get head(): Buffer {
    return this.#bytes.all;
  }

  /** Adds bytes. After another state than `more` they are only stored. */
  push(chunk: Uint8Array): HelloState {
    this.#bytes.add(chunk);
    while (this.#state === 'more' && this.#takeRecord());
    if (this.#state === 'more' && this.#bytes.length >= MAX_CLIENT_HELLO_BYTES) this.#state = 'invalid';
    return this.#state;
  }

  /** False if the next record is incomplete. */
  #takeRecord(): boolean {
    const bytes = this.#bytes.all;
    const [start, have] = [this.#next, bytes.length - this.#next];
    // Rejects other protocols by their first bytes.
    if (have > 0 && bytes[start] !== RECORD_HANDSHAKE) return this.#fail();
    if (have > 1 && bytes[start + 1] !== MAJOR_VERSION) return this.#fail();
    if (have < RECORD_START_BYTES) return false;
    const length = bytes.readUInt16BE(start + 3);
    // Empty handshake records are not allowed (RFC 8446, 5.1).
    if (length === 0 || start + RECORD_START_BYTES + length > MAX_CLIENT_HELLO_BYTES) return this.#fail();
    if (have < RECORD_START_BYTES + length) return false;
    this.#next = start + RECORD_START_BYTES + length;
    this.#message.add(bytes.subarray(start + RECORD_START_BYTES, this.#next));
    this.#takeMessage();
    return this.#state === 'more';
  }

  #takeMessage(): void {
    const message = this.#message.all;
    if (this.#expected === 0 && message.length >= HANDSHAKE_HEADER_BYTES) {
      this.#expected = HANDSHAKE_HEADER_BYTES + message.readUIntBE(1, 3);
      if (message[0] !== MESSAGE_CLIENT_HELLO || this.#expected > MAX_CLIENT_HELLO_BYTES) this.#fail();
    }
    // A ClientHello ends its record (RFC 8446, 5.1).
    if (this.#expected > 0 && message.length > this.#expected) this.#fail();
    if (this.#state === 'invalid' || message.length !== this.#expected) return;
    try {
      this.#name = serverNameOf(new Fields(message.subarray(HANDSHAKE_HEADER_BYTES)));
      this.#state = 'done';
    } catch {
      this.#fail();
    }
  }

  #fail(): false {
    this.#state = 'invalid';
    return false;
  }
}
