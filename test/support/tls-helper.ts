/** A helper for UDP over TLS without limits. Tests control what it answers. */
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type WebSocket, WebSocketServer } from 'ws';
import { systemClock } from '../../src/foundation/clock.ts';
import type { KeyPair } from '../../src/foundation/identity/keys.ts';
import { PacedSocket, WEB_SOCKET_OPTIONS } from '../../src/network/transport/tls/pacing.ts';
import {
  type CarriedDatagram,
  decodeClientHello,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  encodeHelperHello,
  encodeNonce,
  NODE_HEADER,
  NONCE_BYTES,
  NONCE_HEADER,
  TLS_PATH,
  TLS_STATUS,
  TLS_TOKEN_BYTES,
  type TlsStatus,
} from '../../src/network/transport/tls/wire.ts';
import { SELF_SIGNED } from './self-signed.ts';

interface TlsHelperOptions {
  readonly host?: string;
  readonly port?: number;
  /** Default: ok. */
  readonly status?: TlsStatus;
  /** Default: 32. */
  readonly ports?: number;
  /** False: lost connections cannot be resumed. */
  readonly resumes?: boolean;
  /** The key that it states. Default: its own. */
  readonly statedKey?: Uint8Array;
}

/** The lent ports of one client. */
class Lent {
  readonly #host: string;
  readonly sockets = new Map<number, Socket>();
  socket: PacedSocket | null = null;

  constructor(host: string) {
    this.#host = host;
  }

  receive(entries: readonly CarriedDatagram[]): void {
    for (const { number, remote, datagram } of entries) {
      if (remote === null) {
        this.sockets.get(number)?.close();
        this.sockets.delete(number);
      } else this.#port(number).send(datagram, remote.port, remote.host, () => {});
    }
  }

  #port(number: number): Socket {
    const known = this.sockets.get(number);
    if (known !== undefined) return known;
    const socket = createSocket('udp4').on('error', () => {});
    socket.bind(0, this.#host);
    socket.on('message', (datagram, from) =>
      this.socket?.send({ number, remote: { host: from.address, port: from.port }, datagram }),
    );
    this.sockets.set(number, socket);
    return socket;
  }

  close(): void {
    for (const socket of this.sockets.values()) socket.close();
    this.sockets.clear();
  }
}

export class TlsHelper implements AsyncDisposable {
  readonly key: KeyPair;
  readonly #options: TlsHelperOptions;
  readonly #server = createServer({ ...SELF_SIGNED }, (_request, response) => {
    response.writeHead(404).end('Not found.\n');
  });
  readonly #sockets = new WebSocketServer({ noServer: true, ...WEB_SOCKET_OPTIONS });
  readonly #connections = new Set<TLSSocket>();
  /** By resume token. */
  readonly #lent = new Map<string, Lent>();
  /** Accepted hellos so far. */
  hellos = 0;
  /** The helpers that they named. */
  readonly named: Uint8Array[] = [];

  private constructor(key: KeyPair, options: TlsHelperOptions) {
    this.key = key;
    this.#options = options;
    this.#server.on('secureConnection', (socket: TLSSocket) => {
      this.#connections.add(socket.setNoDelay(true));
      socket.on('error', () => {});
      socket.once('close', () => this.#connections.delete(socket));
    });
    this.#server.on('upgrade', (request, socket: TLSSocket, head: Buffer) => {
      if (request.url !== TLS_PATH) return void socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
      const nonce = new Uint8Array(randomBytes(NONCE_BYTES));
      const answers = this.#sockets.once('headers', (lines: string[]) => {
        lines.push(`${NONCE_HEADER}: ${encodeNonce(nonce)}`, `${NODE_HEADER}: ${encodeNonce(this.#statedKey)}`);
      });
      answers.handleUpgrade(request, socket, head, (ws) => this.#greet(ws, socket, nonce));
    });
  }

  static async start(key: KeyPair, options: TlsHelperOptions = {}): Promise<TlsHelper> {
    const helper = new TlsHelper(key, options);
    helper.#server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
    await once(helper.#server, 'listening');
    return helper;
  }

  get #statedKey(): Uint8Array {
    return this.#options.statedKey ?? this.key.publicKey;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** UDP ports that are lent now. */
  get lentPorts(): readonly number[] {
    return [...this.#lent.values()].flatMap(({ sockets }) => [...sockets.values()].map((one) => one.address().port));
  }

  #greet(ws: WebSocket, tls: TLSSocket, helperNonce: Uint8Array): void {
    ws.on('error', () => {});
    ws.once('message', (data: Buffer) => {
      const signed = decodeClientHello(data, helperNonce);
      if (signed === null) return ws.terminate();
      this.hellos++;
      this.named.push(signed.hello.helperKey);
      const { nonce, token: resume } = signed.hello;
      const { status = TLS_STATUS.ok, ports = 32, resumes = true, host = '127.0.0.1' } = this.#options;
      const known = resume === null || !resumes ? undefined : this.#lent.get(Buffer.from(resume).toString('hex'));
      const lent = known ?? new Lent(host);
      const token = new Uint8Array(randomBytes(TLS_TOKEN_BYTES));
      this.#lent.set(Buffer.from(token).toString('hex'), lent);
      const exporter = new Uint8Array(tls.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, Buffer.alloc(0)));
      const hello = {
        status,
        nodeKey: this.key.publicKey,
        exporter,
        resume: token,
        isResumed: known !== undefined,
        ports,
        host,
      };
      ws.send(encodeHelperHello(hello, nonce, this.key));
      if (status !== TLS_STATUS.ok) return ws.close();
      lent.socket = new PacedSocket(
        ws,
        { onEntries: (entries) => lent.receive(entries), onEnd: () => {} },
        { clock: systemClock },
      );
    });
  }

  /** Cuts all connections. Lent ports stay. */
  cut(): void {
    for (const socket of this.#connections) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    for (const lent of this.#lent.values()) lent.close();
    this.#server.close();
    if (this.#server.listening) await once(this.#server, 'close');
  }
}
