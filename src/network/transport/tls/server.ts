/**
 * The lending side of UDP over TLS (docs/protocol-tls.md): listeners, handshakes, hellos, and the clients with their
 * lent ports.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer, type Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer, TLSSocket, type Server as TlsOfNode } from 'node:tls';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { type Address, formatAddress, HTTPS_PORT } from '../../../foundation/address.ts';
import { equalBytes, toHex } from '../../../foundation/bytes.ts';
import {
  type CertificateFiles,
  readCertificate,
  selfSigned,
  type TlsCertificate,
} from '../../../foundation/certificate.ts';
import type { Timer } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import type { PortTrouble } from '../../../foundation/domain/tunnels.ts';
import { type KeyPair, verifySignature } from '../../../foundation/identity/keys.ts';
import { canonicalIp, IP_SCOPE, type IpScope, ipScope } from '../../../foundation/ip.ts';
import type { Component } from '../../../foundation/lifecycle.ts';
import type { NodeParts } from '../../../foundation/node-parts.ts';
import { Quota, type QuotaHolder, type QuotaShare } from '../../../foundation/quota.ts';
import { RateQuota } from '../../../foundation/rate-limit.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { describePortError, portTroubleOf } from '../../../foundation/sockets.ts';
import type { ServerNameRouter } from '../server-names.ts';
import type { LentPortAddresses } from '../udp-socket.ts';
import { Destinations } from './destinations.ts';
import { Lease, type LendingCounters, type LendingHosts } from './lease.ts';
import { PacedSocket, WEB_SOCKET_OPTIONS } from './pacing.ts';
import { MIN_CHARGED_BYTES, Pairs } from './pairs.ts';
import {
  type ClientHello,
  decodeClientHello,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  encodeHelperHello,
  encodeNonce,
  type HelperHello,
  helloVersion,
  NODE_HEADER,
  NONCE_BYTES,
  NONCE_HEADER,
  TLS_PATH,
  TLS_PURPOSE,
  TLS_STATUS,
  TLS_TOKEN_BYTES,
  TLS_VERSION,
  type TlsStatus,
} from './wire.ts';

/** Timeout of the TLS handshake, of the head and of the hello, each, milliseconds. */
export const TLS_HELLO_TIMEOUT_MS = 5_000;
/** Largest head of a request, bytes. */
export const MAX_TLS_HEAD_BYTES: number = 16 * 1024;
/** TCP connections of one IPv4 address or IPv6 /64. */
export const MAX_TLS_CONNECTIONS_PER_SOURCE = 64;
/** TCP connections of one IPv4 /24 or IPv6 /48. */
export const MAX_TLS_CONNECTIONS_PER_NETWORK = 128;
/** TCP connections beyond the number of clients and of ends of lanes, for handshakes. */
const MAX_PENDING_CONNECTIONS = 128;
/** Ports lent to one client. */
export const MAX_LENT_PORTS_PER_CLIENT = 32;
/** Ports lent for each client that the owner permits, on average. */
const PORTS_PER_CLIENT = 8;
/** Ends of lanes of one client, of one source and of one network. */
export const MAX_LANE_ENDS_PER_CLIENT = 16;
export const MAX_LANE_ENDS_PER_SOURCE = 32;
export const MAX_LANE_ENDS_PER_NETWORK = 48;
/** Part of the file descriptors of this process that lent ports may use. Each port uses up to two. */
const DESCRIPTOR_SHARE = 0.2;

/** TLS handshakes per second, and their burst. */
export const TLS_HANDSHAKES_PER_SOURCE = 2;
export const TLS_HANDSHAKES_PER_NETWORK = 4;
export const TLS_HANDSHAKES = 50;
/** Burst of these rates and of entries that are not permitted, in seconds. */
const BURST_S = 32;
/** New destinations per minute, and their burst. */
export const DESTINATIONS_PER_CLIENT = 64;
export const DESTINATIONS_PER_SOURCE = 512;
export const DESTINATIONS_PER_NETWORK = 1024;
export const MAX_NEW_DESTINATIONS = 8192;
/** Entries of clients that are not permitted, and pings that exceed a budget, per second. More cut the client off. */
export const REFUSED_ENTRIES_PER_SOURCE = 256;
export const REFUSED_ENTRIES_PER_NETWORK = 512;
export const MAX_REFUSED_ENTRIES = 4096;
/** Interval at which changed certificate files are read again, milliseconds. */
const CERTIFICATE_CHECK_MS: number = 60 * 60_000;

/** A listener to open. */
export interface TlsListener extends Address {
  /** False for plain HTTP behind a web server. */
  readonly isTls: boolean;
  /** True if the owner has named it: a failure is a warning. */
  readonly isNamed: boolean;
}

/** A listener whose port could not be opened. */
export interface FailedListener extends Omit<TlsListener, 'isTls'> {
  readonly trouble: PortTrouble;
}

export interface TlsServerOptions {
  readonly key: KeyPair;
  /** The tag of the record network. */
  readonly tag: Uint8Array;
  /** Clients at the same time; 0 lends no ports. */
  readonly sessions: number;
  readonly certificate: CertificateFiles;
  readonly hosts: LendingHosts;
}

/** The addresses of this node as others see them, and the sockets behind them. */
export interface OwnPlaces {
  /**
   * The local address for a host of this node: itself if an interface has it, an interface's for one in front of a NAT;
   * null for hosts of others.
   */
  localHost(host: string): string | null;
  /** The local port of the record network or of QUIC, if others reach it at this address of this node; otherwise null. */
  localPort(address: Address): number | null;
  /** The IP address of lent ports as others see it; null if unknown. */
  readonly seenHost: string | null;
}

interface TlsServerDependencies extends NodeParts {
  /** The listeners, when this node helps others. */
  readonly listeners: () => readonly TlsListener[];
  /** Whether this node helps others now. */
  readonly helps: () => boolean;
  readonly isKnown: (nodeKey: Uint8Array) => boolean;
  /** The relay's budgets of a client; null if one is used up. */
  readonly openAccount: (
    client: QuotaHolder & { readonly source: string },
  ) => { spend(bytes: number): boolean; close(): void } | null;
  /** As `DialGuard.mayDial`. */
  readonly mayDial: (address: Address) => boolean;
  readonly places: OwnPlaces;
  /** True if clients may connect over loopback. Otherwise only a web server or proxy of this machine does. */
  readonly usesLoopback: () => boolean;
  /** The limit of open files of this process. */
  readonly descriptors: () => number;
}

export interface LendingUsage extends LendingCounters {
  readonly clients: number;
  readonly ports: number;
}

/** A TCP connection before and after its hello. */
interface Pending {
  /** The IP address of the client, in canonical form; `UNNAMED` behind a web server that does not name it. */
  source: string;
  /** How far its datagrams may reach at least, `IpScope`: clients of a web server count as strangers on the Internet. */
  readonly scope: IpScope;
  share: QuotaShare;
  timer: Timer | null;
  readonly raw: Socket;
}

/** A connection whose hello has arrived. */
interface Greeter {
  readonly pending: Pending;
  readonly socket: Duplex;
  readonly webSocket: WebSocket;
}

/** A client, by its node key. */
interface Client {
  readonly lease: Lease;
  readonly token: Uint8Array;
}

/** The source of all clients behind a web server or proxy that does not name them. */
const UNNAMED = 'unnamed';
const NO_EXPORTER: Uint8Array = new Uint8Array(EXPORTER_BYTES);
const NO_TOKEN: Uint8Array = new Uint8Array(TLS_TOKEN_BYTES);
const NOT_FOUND = 'Not found.\n';

function perSecond(rate: number) {
  return { perSecond: rate, burst: rate * BURST_S };
}

function perMinute(rate: number) {
  return { perSecond: rate / 60, burst: rate };
}

/** The exporter of a TLS session; zeros for plain HTTP. */
function exporterOf(socket: Duplex): Uint8Array {
  if (!(socket instanceof TLSSocket)) return NO_EXPORTER;
  return new Uint8Array(socket.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, Buffer.alloc(0)));
}

/** The name of a TCP connection, which the TLS socket on it shares. */
function nameOf(socket: Duplex): string {
  if (!(socket instanceof Socket)) return '';
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  return [remoteAddress, remotePort, localAddress, localPort].join();
}

/** The client's address that a web server on this machine added; null if there is none. */
function forwardedFor(request: IncomingMessage): string | null {
  const header = request.headers['x-forwarded-for'];
  const last = (Array.isArray(header) ? header.join() : (header ?? '')).split(',').at(-1)?.trim() ?? '';
  return canonicalIp(last);
}

export class TlsServer implements Component, LentPortAddresses {
  readonly #options: TlsServerOptions;
  readonly #deps: TlsServerDependencies;
  readonly #http: HttpServer;
  readonly #tls: TlsOfNode;
  readonly #webSockets = new WebSocketServer({ noServer: true, clientTracking: false, ...WEB_SOCKET_OPTIONS });
  readonly #nonces = new WeakMap<IncomingMessage, Uint8Array>();
  /** TCP connections, by `nameOf`. */
  readonly #pending = new Map<string, Pending>();
  readonly #clients = new Map<string, Client>();
  readonly #counters: LendingCounters = { datagrams: 0, bytes: 0, dropped: 0 };
  /** The UDP ports that are lent now, with the sources of their clients. Clients of one helper reach each other there. */
  readonly #lentPorts = new Map<number, string>();
  readonly #connections: Quota;
  readonly #sessions: Quota;
  readonly #ports: Quota;
  readonly #laneEnds: Quota;
  readonly #pairs: Pairs;
  readonly #handshakes: RateQuota;
  readonly #newDestinations: RateQuota;
  readonly #refused: RateQuota;
  #certificate = '';
  #checks: RepeatingTask | null = null;
  #servers: readonly { readonly server: Server; readonly listener: TlsListener }[] = [];
  #failed: readonly FailedListener[] = [];
  readonly #closing = new Set<Promise<void>>();
  /** Reported failures to listen. */
  readonly #unusable = new Set<string>();
  /** True after the warning about a web server that does not name its clients. */
  #hasWarned = false;
  #isOpen = false;
  #isStarted = false;
  #isStopped = false;
  #router: ServerNameRouter | null = null;
  /** Settles after the last opening or closing of listeners, because they must not overlap. */
  #changes: Promise<void> = Promise.resolve();

  constructor(options: TlsServerOptions, dependencies: TlsServerDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    const { sessions } = options;
    const ports = Math.min(
      sessions * PORTS_PER_CLIENT,
      Math.floor((dependencies.descriptors() * DESCRIPTOR_SHARE) / 2),
    );
    this.#connections = new Quota({
      perSource: MAX_TLS_CONNECTIONS_PER_SOURCE,
      perNetwork: MAX_TLS_CONNECTIONS_PER_NETWORK,
      total: 2 * sessions + MAX_PENDING_CONNECTIONS,
    });
    this.#sessions = new Quota({ perNode: 1, total: sessions });
    this.#pairs = new Pairs(dependencies.clock);
    this.#laneEnds = new Quota({
      perNode: MAX_LANE_ENDS_PER_CLIENT,
      perSource: MAX_LANE_ENDS_PER_SOURCE,
      perNetwork: MAX_LANE_ENDS_PER_NETWORK,
      total: sessions,
    });
    this.#ports = new Quota({
      perNode: MAX_LENT_PORTS_PER_CLIENT,
      perSource: Math.ceil(ports / 2),
      perNetwork: Math.ceil((ports * 3) / 4),
      total: ports,
    });
    this.#handshakes = new RateQuota(
      {
        perKey: perSecond(TLS_HANDSHAKES),
        perSource: perSecond(TLS_HANDSHAKES_PER_SOURCE),
        perNetwork: perSecond(TLS_HANDSHAKES_PER_NETWORK),
        strangers: perSecond(TLS_HANDSHAKES),
      },
      dependencies,
    );
    this.#newDestinations = new RateQuota(
      {
        perKey: perMinute(DESTINATIONS_PER_CLIENT),
        perSource: perMinute(DESTINATIONS_PER_SOURCE),
        perNetwork: perMinute(DESTINATIONS_PER_NETWORK),
        strangers: perMinute(MAX_NEW_DESTINATIONS),
      },
      dependencies,
    );
    this.#refused = new RateQuota(
      {
        perKey: perSecond(REFUSED_ENTRIES_PER_SOURCE),
        perSource: perSecond(REFUSED_ENTRIES_PER_SOURCE),
        perNetwork: perSecond(REFUSED_ENTRIES_PER_NETWORK),
        strangers: perSecond(MAX_REFUSED_ENTRIES),
      },
      dependencies,
    );
    this.#http = createHttpServer({ maxHeaderSize: MAX_TLS_HEAD_BYTES, headersTimeout: 0, requestTimeout: 0 });
    for (const event of ['request', 'checkContinue'])
      this.#http.on(event, (_request: IncomingMessage, response: ServerResponse) => {
        response.writeHead(404, { 'Content-Type': 'text/plain', Connection: 'close' }).end(NOT_FOUND);
      });
    this.#http.on('clientError', (_error, socket) => socket.destroy());
    this.#http.on('upgrade', (request, socket, head) => this.#onUpgrade(request, socket, head));
    const tls = { ALPNProtocols: ['http/1.1'], handshakeTimeout: TLS_HELLO_TIMEOUT_MS };
    this.#tls = createTlsServer(tls, (socket) => this.#onSecure(socket));
    this.#tls.on('tlsClientError', (_error, socket) => socket.destroy());
    this.#webSockets.on('headers', (headers, request) => {
      const nonce = this.#nonces.get(request);
      if (nonce === undefined) return;
      headers.push(`${NONCE_HEADER}: ${encodeNonce(nonce)}`, `${NODE_HEADER}: ${encodeNonce(options.key.publicKey)}`);
    });
  }

  /** Sets the router of connections, before `start`. The listeners open for it, too. */
  routeBy(router: ServerNameRouter): void {
    this.#router = router;
  }

  /** @throws SvcError `config_invalid` if the certificate cannot be read */
  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.warn({ error }, 'cannot read the TLS certificate again');
    if (this.#hasFiles) {
      await this.#loadCertificate();
      this.#checks = every(this.#deps.clock, { periodMs: CERTIFICATE_CHECK_MS, onError }, () =>
        this.#loadCertificate(),
      );
    }
    this.#isStarted = true;
    this.update();
    await this.#changes;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#checks?.stop();
    this.update();
    await this.#changes;
    for (const { lease } of [...this.#clients.values()]) lease.end();
    this.#pairs.stop();
    for (const { raw, timer } of [...this.#pending.values()]) {
      timer?.cancel();
      raw.destroy();
    }
    await Promise.all(this.#closing);
  }

  /**
   * Call when this node begins or ceases to help others, or its addresses change. Opens or closes the listeners;
   * clients remain. Listeners that could not be opened before are tried again.
   */
  update(): void {
    if (!this.#isStarted) return;
    const isHelper = this.#options.sessions > 0 && this.#deps.helps();
    const shouldOpen = !this.#isStopped && (isHelper || this.#router?.isOn === true);
    if (!shouldOpen && !this.#isOpen) return;
    this.#isOpen = shouldOpen;
    this.#changes = this.#changes.then(() => (shouldOpen ? this.#open() : this.#close()));
  }

  /** The listening addresses, and whether they use TLS. */
  get addresses(): readonly (Address & { readonly isTls: boolean })[] {
    return this.#servers.flatMap(({ server, listener: { isTls } }) => {
      const address = server.address() as AddressInfo | null;
      return address === null ? [] : [{ host: address.address, port: address.port, isTls }];
    });
  }

  /** The listeners that could not be opened. */
  get failed(): readonly FailedListener[] {
    return this.#failed;
  }

  outer(address: Address): Address {
    if (!this.#lentPorts.has(address.port)) return address;
    const { places } = this.#deps;
    const seen = places.seenHost;
    return seen !== null && places.localHost(seen) === address.host ? { host: seen, port: address.port } : address;
  }

  local(address: Address): Address {
    if (!this.#lentPorts.has(address.port)) return address;
    const host = this.#deps.places.localHost(address.host);
    return host === null ? address : { host, port: address.port };
  }

  borrowerAt(address: Address): string | null {
    const source = this.#lentPorts.get(address.port);
    return source === undefined || this.#deps.places.localHost(address.host) === null ? null : source;
  }

  /** The highest number of clients. */
  get maxClients(): number {
    return this.#options.sessions;
  }

  /** Current clients and ports, and totals since the start. */
  get usage(): LendingUsage {
    return { clients: this.#sessions.used, ports: this.#ports.used, ...this.#counters };
  }

  /** True if the owner has named certificate files. */
  get #hasFiles(): boolean {
    const { cert, key } = this.#options.certificate;
    return cert !== '' || key !== '';
  }

  async #loadCertificate(): Promise<void> {
    this.#useCertificate(await readCertificate(this.#options.certificate));
  }

  #useCertificate({ cert, key }: TlsCertificate): void {
    if (cert === this.#certificate) return;
    this.#certificate = cert;
    this.#tls.setSecureContext({ cert, key, minVersion: 'TLSv1.2' });
  }

  async #open(): Promise<void> {
    // Most nodes never help, so they create none.
    if (this.#certificate === '') this.#useCertificate(selfSigned());
    const open = new Set(this.#servers.map(({ listener }) => formatAddress(listener)));
    const missing = this.#deps.listeners().filter((listener) => !open.has(formatAddress(listener)));
    const opened = await Promise.all(missing.map((listener) => this.#listen(listener)));
    const servers = opened.filter((one) => 'server' in one);
    this.#servers = [...this.#servers, ...servers];
    const isHttpsOpen = this.addresses.some(({ port }) => port === HTTPS_PORT);
    // The other default port is only an alternative to 443.
    this.#failed = opened.filter((one) => 'trouble' in one).filter(({ isNamed }) => isNamed || !isHttpsOpen);
    const addresses = this.addresses.map(formatAddress);
    if (servers.length > 0) this.#deps.log.info({ addresses }, 'lends UDP ports over TLS');
  }

  /** The listening sockets close immediately. A server reports its end after its last connection. */
  #close(): void {
    for (const { server } of this.#servers) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      this.#closing.add(closed);
      detach(closed.then(() => this.#closing.delete(closed)));
    }
    this.#servers = [];
    this.#failed = [];
  }

  /** Never rejects: the node works without the port. */
  async #listen(listener: TlsListener): Promise<{ server: Server; listener: TlsListener } | FailedListener> {
    const { log } = this.#deps;
    const server = createServer({ noDelay: true, keepAlive: true }, (socket) => this.#onConnection(socket, listener));
    const { promise, resolve } = Promise.withResolvers<{ server: Server; listener: TlsListener } | FailedListener>();
    server.on('error', (error) => {
      const fields = { error, address: formatAddress(listener) };
      const text = `TCP port ${listener.port} for UDP over TLS ${describePortError(error)}`;
      if (listener.isNamed && !this.#unusable.has(text)) log.warn(fields, text);
      else log.debug(fields, text);
      this.#unusable.add(text);
      const host = listener.host === '' ? '0.0.0.0' : listener.host;
      resolve({ host, port: listener.port, isNamed: listener.isNamed, trouble: portTroubleOf(error) });
    });
    const where = { port: listener.port, ...(listener.host === '' ? {} : { host: listener.host }) };
    server.listen(where, () => resolve({ server, listener }));
    return await promise;
  }

  #onConnection(raw: Socket, { isTls }: TlsListener): void {
    const peer = canonicalIp(raw.remoteAddress ?? '');
    raw.on('error', () => raw.destroy());
    if (peer === null || !isTls || this.#router?.isOn !== true) this.#admitConnection(raw, isTls, peer, null);
    else this.#router.route(raw, peer, (source) => this.#admitConnection(raw, isTls, peer, source));
  }

  /** @param named the client, if a web server in front of this node has named it */
  #admitConnection(raw: Socket, isTls: boolean, peer: string | null, named: string | null): void {
    const isDirect =
      named !== null || (isTls && (peer === null || ipScope(peer) !== IP_SCOPE.loopback || this.#deps.usesLoopback()));
    const source = named ?? (peer === null || isDirect || !isTls ? peer : UNNAMED);
    const share = source === null || this.#isStopped ? null : this.#admit(source);
    if (source === null || share === null) {
      raw.resetAndDestroy();
      return;
    }
    const pending: Pending = { source, scope: isDirect ? ipScope(source) : IP_SCOPE.public, share, raw, timer: null };
    const name = nameOf(raw);
    this.#pending.set(name, pending);
    this.#allowTime(pending);
    raw.once('close', () => {
      pending.timer?.cancel();
      pending.share.release();
      this.#pending.delete(name);
    });
    if (isTls) this.#tls.emit('connection', raw);
    else this.#http.emit('connection', raw);
  }

  #onSecure(socket: TLSSocket): void {
    const pending = this.#pending.get(nameOf(socket));
    if (pending === undefined) {
      socket.destroy();
      return;
    }
    socket.on('error', () => socket.destroy());
    this.#allowTime(pending);
    this.#http.emit('connection', socket);
  }

  /** Null if the source makes too many handshakes, or has too many connections. */
  #admit(source: string): QuotaShare | null {
    const holder = { node: source, source, named: false };
    return this.#handshakes.take(holder) ? this.#connections.take(holder) : null;
  }

  /** Gives a client time for the next step of the handshakes. */
  #allowTime(pending: Pending): void {
    pending.timer?.cancel();
    pending.timer = this.#deps.clock.after(TLS_HELLO_TIMEOUT_MS, () => pending.raw.destroy());
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const pending = this.#pending.get(nameOf(socket));
    if (pending === undefined || request.url !== TLS_PATH || this.#isStopped) {
      socket.end(
        `HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: ${NOT_FOUND.length}\r\n\r\n${NOT_FOUND}`,
      );
      return;
    }
    if (!(socket instanceof TLSSocket) && !this.#changeSource(pending, forwardedFor(request))) {
      socket.end('HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const nonce = new Uint8Array(randomBytes(NONCE_BYTES));
    this.#nonces.set(request, nonce);
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      this.#allowTime(pending);
      webSocket.on('error', () => webSocket.terminate());
      webSocket.once('message', (data, isBinary) => {
        this.#onHello({ pending, socket, webSocket }, nonce, isBinary ? data : null);
      });
    });
  }

  /**
   * Counts a connection of a web server on this machine for the client that it names, or for all clients that it does
   * not name. False if they have too many.
   */
  #changeSource(pending: Pending, named: string | null): boolean {
    if (ipScope(pending.source) !== IP_SCOPE.loopback) return true;
    const source = named === null || ipScope(named) === IP_SCOPE.loopback ? UNNAMED : named;
    if (source === UNNAMED && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#deps.log.warn(
        {},
        'The web server in front of tls_listen does not set X-Forwarded-For, so all its clients share limits. Set it',
      );
    }
    const share = this.#admit(source);
    if (share === null) return false;
    pending.share.release();
    pending.source = source;
    pending.share = share;
    return true;
  }

  #onHello(from: Greeter, helperNonce: Uint8Array, data: RawData | null): void {
    const bytes = Buffer.isBuffer(data) ? data : Buffer.alloc(0);
    const decoded = decodeClientHello(bytes, helperNonce);
    if (decoded === null) {
      const version = helloVersion(bytes);
      if (version === null || version === TLS_VERSION) from.webSocket.terminate();
      else this.#refuse(from, new Uint8Array(NONCE_BYTES), TLS_STATUS.unknownVersion);
      return;
    }
    const { hello, message, signature } = decoded;
    const status = this.#checkHello(hello, () => verifySignature(hello.nodeKey, message, signature));
    if (status !== TLS_STATUS.ok) this.#refuse(from, hello.nonce, status);
    else if (hello.purpose === TLS_PURPOSE.lane) this.#pair(from, hello);
    else this.#serve(from, hello);
  }

  #checkHello({ purpose, tag, nodeKey, helperKey }: ClientHello, isSigned: () => boolean): TlsStatus {
    const { publicKey } = this.#options.key;
    if (!equalBytes(tag, this.#options.tag)) return TLS_STATUS.otherNetwork;
    if (!equalBytes(helperKey, publicKey)) return TLS_STATUS.otherNode;
    // This node may be one end of a lane itself.
    const isOwn = purpose === TLS_PURPOSE.ports && equalBytes(nodeKey, publicKey);
    if (!this.#deps.helps() || isOwn) return TLS_STATUS.notHelping;
    return isSigned() ? TLS_STATUS.ok : TLS_STATUS.badSignature;
  }

  #refuse({ socket, webSocket }: Greeter, nonce: Uint8Array, status: TlsStatus): void {
    const { key } = this.#options;
    const hello = { status, nodeKey: key.publicKey, exporter: exporterOf(socket), resume: NO_TOKEN };
    webSocket.send(encodeHelperHello({ ...hello, isResumed: false, ports: 0, host: null }, nonce, key));
    webSocket.close();
  }

  #serve(from: Greeter, hello: ClientHello): void {
    const { pending, webSocket } = from;
    const name = toHex(hello.nodeKey);
    const previous = this.#clients.get(name);
    const mayResume = previous !== undefined && hello.token !== null && timingSafeEqual(previous.token, hello.token);
    if (!mayResume) previous?.lease.end();
    const client = mayResume ? previous : this.#admitClient(name, hello.nodeKey, pending);
    if (typeof client === 'number') {
      this.#refuse(from, hello.nonce, client);
      return;
    }
    this.#accept(from, hello, { resume: client.token, isResumed: mayResume, ports: MAX_LENT_PORTS_PER_CLIENT });
    const { lease } = client;
    const connection: PacedSocket = new PacedSocket(
      webSocket,
      { onEntries: (entries) => lease.onEntries(entries), onEnd: () => lease.detach(connection) },
      this.#deps,
    );
    webSocket.on('ping', () => lease.onPing());
    lease.attach(connection);
  }

  #accept(
    { pending, socket, webSocket }: Greeter,
    hello: ClientHello,
    granted: Pick<HelperHello, 'resume' | 'isResumed' | 'ports'>,
  ): void {
    const { key } = this.#options;
    const exporter = exporterOf(socket);
    if (!equalBytes(exporter, hello.exporter))
      this.#deps.log.debug({ client: pending.source }, 'a client and this node see different TLS sessions');
    pending.timer?.cancel();
    pending.timer = null;
    const reply = {
      status: TLS_STATUS.ok,
      nodeKey: key.publicKey,
      exporter,
      host: this.#deps.places.seenHost,
      ...granted,
    };
    webSocket.send(encodeHelperHello(reply, hello.nonce, key));
  }

  /** Step 9. */
  #pair(from: Greeter, hello: ClientHello): void {
    const { pending, webSocket } = from;
    const holder = { node: toHex(hello.nodeKey), source: pending.source, named: this.#deps.isKnown(hello.nodeKey) };
    const account = this.#deps.openAccount(holder);
    if (account === null) return this.#refuse(from, hello.nonce, TLS_STATUS.rateLimited);
    let close = (): void => {};
    const share = this.#laneEnds.take(holder, { onEvict: () => close() });
    if (share === null) {
      account.close();
      return this.#refuse(from, hello.nonce, TLS_STATUS.full);
    }
    this.#accept(from, hello, { resume: NO_TOKEN, isResumed: false, ports: 0 });
    // Nodes send none on a lane.
    webSocket.on('ping', () => {
      if (!account.spend(MIN_CHARGED_BYTES) && !this.#refused.take(holder)) close();
    });
    close = this.#pairs.add(hello.token ?? NO_TOKEN, {
      webSocket,
      spend: (bytes) => {
        if (!account.spend(bytes)) return false;
        this.#counters.bytes += bytes;
        return true;
      },
      onEnd: () => {
        share.release();
        account.close();
      },
    });
  }

  /** A client with new ports, or the status of the refusal. */
  #admitClient(name: string, nodeKey: Uint8Array, { source, scope }: Pending): Client | TlsStatus {
    const { clock, mayDial, places } = this.#deps;
    const toLocal = (address: Address): Address | null => this.#toLocal(address);
    const holder = { node: name, source, named: this.#deps.isKnown(nodeKey) };
    const account = this.#deps.openAccount(holder);
    if (account === null) return TLS_STATUS.rateLimited;
    let lease: Lease | null = null;
    const onEvict = (): void => lease?.end();
    const session = this.#sessions.take(holder, { onEvict });
    const ports = session === null ? null : this.#ports.take(holder, { amount: 0 });
    if (session === null || ports === null) {
      session?.release();
      account.close();
      return TLS_STATUS.full;
    }
    const takeNew = (): boolean => this.#newDestinations.take(holder);
    // A stranger must not appear as a program on this machine, or on its LAN.
    const isOwn = (address: Address): boolean =>
      toLocal(address) !== null && (ipScope(address.host) >= scope || address.host === places.seenHost);
    const destinations = new Destinations({ clock, tag: this.#options.tag, scope, mayDial, isOwn, takeNew });
    const client: Client = {
      token: new Uint8Array(randomBytes(TLS_TOKEN_BYTES)),
      lease: new Lease({
        clock,
        destinations,
        hosts: this.#options.hosts,
        spend: (bytes) => account.spend(Math.max(bytes, MIN_CHARGED_BYTES)),
        takeRefused: () => this.#refused.take(holder),
        share: ports,
        counters: this.#counters,
        source,
        lentPorts: this.#lentPorts,
        toLocal,
        onEnd: () => {
          session.release();
          account.close();
          if (this.#clients.get(name) === client) this.#clients.delete(name);
        },
      }),
    };
    ({ lease } = client);
    this.#clients.set(name, client);
    return client;
  }

  /** The local address of a socket of this node that others reach at an address; null for addresses of others. */
  #toLocal(address: Address): Address | null {
    const host = this.#deps.places.localHost(address.host);
    if (host === null) return null;
    const port = this.#deps.places.localPort(address) ?? (this.#lentPorts.has(address.port) ? address.port : null);
    return port === null ? null : { host, port };
  }
}
