/** ClientHellos of Node, and records of any size. */
import { PassThrough } from 'node:stream';
import { type ConnectionOptions, connect } from 'node:tls';

/** The first bytes that Node sends for a TLS connection. */
export async function clientHelloOf(options: ConnectionOptions): Promise<Buffer> {
  const wire = new PassThrough();
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  wire.write = (chunk: Uint8Array) => {
    resolve(Buffer.from(chunk));
    return true;
  };
  const socket = connect({ ...options, socket: wire });
  socket.on('error', () => {});
  const hello = await promise;
  socket.destroy();
  return hello;
}

/** The same handshake message in records of this size. */
export function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 0xff]), part);
  }
  return Buffer.concat(records);
}

function field(length: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const prefix = Buffer.alloc(length);
  prefix.writeUIntBE(body.length, 0, length);
  return Buffer.concat([prefix, body]);
}

/** A ClientHello with only these extensions. */
export function helloWith(extensions: readonly (readonly [type: number, body: Uint8Array])[]): Buffer {
  const all = extensions.map(([type, body]) => Buffer.concat([Uint8Array.of(type >> 8, type & 0xff), field(2, body)]));
  const hello = Buffer.concat([
    Uint8Array.of(3, 3),
    Buffer.alloc(32, 7),
    field(1, Buffer.alloc(32, 8)),
    field(2, Uint8Array.of(0x13, 0x01)),
    field(1, Uint8Array.of(0)),
    field(2, ...all),
  ]);
  const message = Buffer.concat([Uint8Array.of(1), field(3, hello)]);
  return Buffer.concat([Uint8Array.of(22, 3, 1), field(2, message)]);
}

/** The `server_name` extension with these names. */
export function serverNames(...names: readonly string[]): readonly [number, Uint8Array] {
  return [0, field(2, ...names.map((name) => Buffer.concat([Uint8Array.of(0), field(2, Buffer.from(name))])))];
}
