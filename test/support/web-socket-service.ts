/** A WebSocket chat as a user's service: everyone receives each message. Implemented over node:http. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import type { BoundService } from '../../src/capabilities/calls/upstream.ts';

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const TEXT = 0x81;
const CLOSE = 0x88;

/** A complete, unmasked frame of a server. */
function frame(opcode: number, body: Buffer): Buffer {
  const head =
    body.length < 126 ? Buffer.of(opcode, body.length) : Buffer.of(opcode, 126, body.length >> 8, body.length & 255);
  return Buffer.concat([head, body]);
}

/** Removes one masked frame of less than 64 KiB from the received bytes. Null if it is incomplete. */
function takeFrame(bytes: Buffer): { opcode: number; body: Buffer; rest: Buffer } | null {
  if (bytes.length < 2) return null;
  const short = bytes.readUInt8(1) & 0x7f;
  const start = short === 126 ? 4 : 2;
  if (bytes.length < start) return null;
  const length = short === 126 ? bytes.readUInt16BE(2) : short;
  if (bytes.length < start + 4 + length) return null;
  const mask = bytes.subarray(start, start + 4);
  const masked = bytes.subarray(start + 4, start + 4 + length);
  const body = Buffer.from(masked.map((byte, i) => byte ^ (mask[i % 4] ?? 0)));
  return { opcode: bytes.readUInt8(0), body, rest: bytes.subarray(start + 4 + length) };
}

export interface ChatService {
  readonly bound: BoundService;
  /** Upgraded connections. */
  readonly sockets: Set<Duplex>;
  /** Headers of the upgrade requests. */
  readonly asked: IncomingHttpHeaders[];
}

function serve(server: Server, { sockets, asked }: ChatService): void {
  server.on('upgrade', (request, socket) => {
    asked.push(request.headers);
    socket.on('error', () => socket.destroy());
    if (request.url !== '/chat') {
      socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\nConnection: close\r\n\r\nno');
      return;
    }
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${ACCEPT_SUFFIX}`);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSet-Cookie: a=b\r\nSec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`,
    );
    socket.write(frame(TEXT, Buffer.from('welcome')));
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.once('end', () => socket.end());
    let received: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      for (let one = takeFrame(received); one !== null; one = takeFrame(received)) {
        received = one.rest;
        if (one.opcode === CLOSE) socket.end(frame(CLOSE, one.body));
        else for (const member of sockets) member.write(frame(TEXT, one.body));
      }
    });
  });
}

/** Starts the chat at `/chat`. It stops with the test. */
export async function chatService(t: TestContext): Promise<ChatService> {
  const server = createServer((_request, response) => void response.end('this is a chat'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const service: ChatService = {
    bound: { scheme: 'http', host: '127.0.0.1', port, acceptsCalls: true, verifyCertificate: true },
    sockets: new Set(),
    asked: [],
  };
  serve(server, service);
  t.after(() => {
    for (const socket of service.sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  return service;
}
