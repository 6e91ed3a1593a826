/**
 * Serves public addresses at the node of the agent: ends TLS on the connections that entries pass on, speaks HTTP/1.1 and
 * HTTP/2, decides about each request, and forwards it to the service of the agent.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { type ClientHttp2Session, performServerHandshake, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type SecureContext, TLSSocket } from 'node:tls';
import { callQuota, eventStreamQuota, takeSlot } from '../../capabilities/calls/caller-limits.ts';
import { callerProof, PROOF_HEADER } from '../../capabilities/calls/caller-proof.ts';
import { daemonErrorResponse } from '../../capabilities/calls/error-response.ts';
import {
  CALL_STALL_MS,
  type Forwarding,
  forward,
  requestUpgrade,
  type ServedRequest,
  type ServedResponse,
} from '../../capabilities/calls/forward.ts';
import {
  EVIDENCE,
  filterHeaders,
  headerOf,
  isSteered,
  MAX_HEADERS,
  MAX_HTTP_HEADER_BYTES,
  pairs,
  type RawHeaders,
  SET_PER_HOP,
  withoutReservedHeaders,
} from '../../capabilities/calls/headers.ts';
import { answerUpgrade, lingerAfterEnd, sendErrorAndClose } from '../../capabilities/calls/switch.ts';
import { UNTRACED } from '../../capabilities/calls/trace-headers.ts';
import { maySwitch, protocolsIn } from '../../capabilities/calls/upgrades.ts';
import { type BoundService, Upstreams } from '../../capabilities/calls/upstream.ts';
import type { LocalCard } from '../../capabilities/cards/remote-cards.ts';
import { ClientHelloReader } from '../../capabilities/entry/client-hello.ts';
import type { Certificates } from '../../capabilities/exposures/certificates.ts';
import { bearerOf, type Exposures, type PublicAdmission } from '../../capabilities/exposures/exposures.ts';
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Card } from '../../foundation/cards/card.ts';
import { type Clock, type Timer, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { Quota, type QuotaHolder, type QuotaShare } from '../../foundation/quota.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { cardRequestHeaders, isCardRequest, withLocalCard } from '../origin/cards.ts';
import { headersForProgram, isMetadataRequest, withLocalMetadata } from '../origin/headers.ts';
import { MAX_PIPELINED } from '../rest/connections.ts';
import { hostOf, namesManyHosts } from '../rest/host.ts';
import { tooManyHeaders } from '../rest/response.ts';
import { forwardGrpc, isGrpc, openHttp2 } from './grpc.ts';
import { Http2Reply, requestOf } from './http2.ts';

/** Time for the TLS handshake and the first request of a connection, milliseconds. */
const FIRST_REQUEST_MS = 20_000;
/** How long a connection without a request stays open, milliseconds. */
const IDLE_MS = 75_000;
/** Connections from one IPv4 address or IPv6 /64, from one IPv4 /24 or IPv6 /48, and from all. */
export const MAX_CLIENTS_PER_SOURCE = 256;
export const MAX_CLIENTS_PER_NETWORK = 1024;
export const MAX_CLIENTS: number = 4 * MAX_CLIENTS_PER_NETWORK;
/** Requests of one HTTP/2 connection at the same time. */
const MAX_STREAMS = 100;
const HTTP2_OPTIONS = {
  settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HTTP_HEADER_BYTES, enablePush: false },
  // Some services send a header such as `X-Content-Type-Options` twice, as HTTP/1.1 permits.
  strictSingleValueFields: false,
} as const;
/** Name of public callers in the proof for the service. An AID never has this form. */
const PUBLIC_CALLER = 'public';

interface PublicServerDependencies extends NodeParts {
  readonly exposures: Pick<Exposures, 'served' | 'admit' | 'stillAdmits' | 'onChange'>;
  readonly certificates: Pick<Certificates, 'context' | 'challenge'>;
  readonly serviceOf: (aid: Aid) => BoundService | null;
  /** The address of an agent's service for protocols other than HTTP/1.1; null if it has none. */
  readonly rawServiceOf: (aid: Aid) => Address | null;
  /** Connects to it. */
  readonly connect: (address: Address) => Socket;
  readonly callerKey: (aid: Aid) => Uint8Array;
  /** An A2A card of an agent with an address in place of that of its service. */
  readonly publicCard: (card: Card, aid: Aid, to: string, signal: AbortSignal) => Promise<LocalCard>;
  /** Observes each new connection to a service. */
  readonly watch: (socket: Socket) => void;
}

/** A connection that an entry passes on. */
export interface PublicConnection {
  /** The whole public name. */
  readonly name: string;
  /** The agent that holds it. */
  readonly aid: Aid;
  /** The address of the client as the entry saw it. */
  readonly clientAddress: string;
  readonly clientPort: number;
}

/** A client, with its requests in progress. */
class Client {
  readonly connection: PublicConnection;
  readonly socket: TLSSocket;
  readonly requests = new Map<AbortController, PublicAdmission>();
  /** The connection for requests that need HTTP/2. */
  service: ClientHttp2Session | null = null;
  readonly #deps: NodeParts;
  #idle: SilenceWatch;
  #open = 0;

  constructor(connection: PublicConnection, socket: TLSSocket, deps: NodeParts) {
    this.connection = connection;
    this.socket = socket;
    this.#deps = deps;
    this.#idle = new SilenceWatch(deps.clock, FIRST_REQUEST_MS, () => socket.destroy());
    socket.once('close', () => {
      this.#idle.stop();
      for (const request of this.requests.keys()) request.abort();
      this.service?.destroy();
    });
  }

  /** Registers a request. False if there are too many. */
  begin(): boolean {
    this.#idle.stop();
    this.#open++;
    return this.#open <= MAX_STREAMS;
  }

  end(): void {
    this.#open--;
    if (this.#open > 0 || this.socket.destroyed) return;
    this.#idle = new SilenceWatch(this.#deps.clock, IDLE_MS, () => this.socket.destroy());
  }

  get open(): number {
    return this.#open;
  }
}

/** How a request is answered, for both versions of HTTP. */
interface Exchange {
  readonly client: Client;
  readonly request: ServedRequest;
  readonly response: ServedResponse;
  readonly stream: Forwarding['stream'];
  /** The stream of HTTP/2. */
  readonly http2?: ServerHttp2Stream;
  /** Tells the client to send the body (`Expect: 100-continue`). */
  readonly proceed: () => void;
  readonly hint: (links: readonly string[]) => void;
}

export class PublicServer implements Component {
  readonly #deps: PublicServerDependencies;
  readonly #upstreams: Upstreams;
  readonly #http: Server;
  readonly #clients = new Map<Duplex, Client>();
  readonly #connections = new Quota({
    perSource: MAX_CLIENTS_PER_SOURCE,
    perNetwork: MAX_CLIENTS_PER_NETWORK,
    total: MAX_CLIENTS,
  });
  readonly #calls = callQuota();
  readonly #eventStreams = eventStreamQuota();
  #unsubscribe: () => void = () => {};
  #stopped = false;

  constructor(dependencies: PublicServerDependencies) {
    this.#deps = dependencies;
    this.#upstreams = new Upstreams(dependencies.clock, dependencies.watch);
    this.#http = createServer({
      insecureHTTPParser: false,
      maxHeaderSize: MAX_HTTP_HEADER_BYTES,
      headersTimeout: 0,
      requestTimeout: 0,
      keepAliveTimeout: 0,
      shouldUpgradeCallback: maySwitch,
    });
    // Node would drop headers beyond the limit silently. They are rejected instead.
    this.#http.maxHeadersCount = 0;
    const serve = (request: IncomingMessage, response: ServerResponse): void => this.#onRequest(request, response);
    this.#http.on('request', serve).on('checkContinue', serve);
    this.#http.on('upgrade', (request, socket, head) => detach(this.#upgrade(request, socket, head)));
    this.#http.on('clientError', (_error, socket) => this.#malformed(socket));
  }

  async start(): Promise<void> {
    this.#unsubscribe = this.#deps.exposures.onChange((host) => this.#recheck(host));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    for (const { socket } of this.#clients.values()) socket.destroy();
    this.#upstreams.stop();
  }

  /** Requests in progress. */
  get active(): number {
    return this.#calls.used + this.#eventStreams.used;
  }

  /** Serves a connection that begins with a TLS ClientHello. Owns the stream. */
  readonly accept = (connection: PublicConnection, stream: Duplex): void => {
    const { exposures, certificates } = this.#deps;
    const { name, aid } = connection;
    stream.on('error', () => {});
    lingerAfterEnd(stream, this.#deps.clock);
    const onEvict = (): void => void stream.destroy();
    const isServed = !this.#stopped && exposures.served(name)?.aid === aid;
    const share = isServed ? this.#connections.take(holderOf(connection, false), { onEvict }) : null;
    if (share === null) return void stream.destroy();
    stream.once('close', () => share.release());
    const challenge = certificates.challenge(name);
    if (challenge === null) return this.#begin(connection, stream);
    detach(this.#verify(connection, stream, challenge));
  };

  /** Answers the ACME server while it verifies a host, and serves other clients. */
  async #verify(connection: PublicConnection, stream: Duplex, secureContext: SecureContext): Promise<void> {
    if (!(await offersOnly(stream, ACME_PROTOCOL, this.#deps.clock))) return this.#begin(connection, stream);
    const options = { isServer: true, secureContext, ALPNProtocols: [ACME_PROTOCOL] };
    const socket = new TLSSocket(stream, options);
    const silence = new SilenceWatch(this.#deps.clock, FIRST_REQUEST_MS, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.once('secure', () => socket.resume().end());
    socket.once('close', () => {
      silence.stop();
      stream.destroy();
    });
  }

  #begin(connection: PublicConnection, stream: Duplex): void {
    const secureContext = this.#deps.certificates.context(connection.name);
    if (secureContext === null || stream.destroyed) return void stream.destroy();
    const socket = new TLSSocket(stream, { isServer: true, secureContext, ALPNProtocols: ['h2', 'http/1.1'] });
    socket.on('error', () => socket.destroy());
    const client = new Client(connection, socket, this.#deps);
    this.#clients.set(socket, client);
    socket.once('close', () => {
      this.#clients.delete(socket);
      stream.destroy();
    });
    stream.once('close', () => socket.destroy());
    socket.once('secure', () => this.#secured(client));
  }

  #secured(client: Client): void {
    const { connection, socket } = client;
    // The entry reads this name too, but it may pass on a connection for another one.
    if (socket.servername !== connection.name) return void socket.destroy();
    if (socket.alpnProtocol === 'h2') this.#beginHttp2(client);
    else this.#http.emit('connection', socket);
  }

  #beginHttp2(client: Client): void {
    // As Node's `tls.Server` does, which cannot tell which connection a socket belongs to.
    Object.assign(client.socket, { secureConnecting: false });
    const session = performServerHandshake(client.socket, HTTP2_OPTIONS);
    session.on('error', () => client.socket.destroy());
    session.on('stream', (stream, headers, _flags, raw) => {
      stream.on('error', () => {});
      detach(
        this.#serve({
          client,
          request: requestOf(stream, headers, raw),
          response: new Http2Reply(stream, headers[':method'] ?? ''),
          stream: null,
          http2: stream,
          proceed: () => sendInterim(stream, { ':status': 100 }),
          hint: (links) => sendInterim(stream, { ':status': 103, link: [...links] }),
        }),
      );
    });
  }

  #recheck(host: string): void {
    const { exposures } = this.#deps;
    const isServed = exposures.served(host) !== null;
    for (const { connection, socket, requests } of this.#clients.values()) {
      if (connection.name !== host) continue;
      if (!isServed) socket.destroy();
      else
        for (const [request, admission] of requests)
          if (!exposures.stillAdmits(admission)) request.abort(new SvcError('access_denied'));
    }
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const client = this.#clients.get(request.socket);
    if (client === undefined || client.open >= MAX_PIPELINED) return void request.socket.destroy();
    response.once('close', () => {
      if (!request.complete) request.socket.destroy();
    });
    detach(
      this.#serve({
        client,
        request,
        response,
        stream: client.socket,
        proceed: () => response.writeContinue(),
        hint: (links) => response.writeEarlyHints({ link: [...links] }),
      }),
    );
  }

  /** The steps of a request: form, permission, service, slot, service. */
  async #serve(exchange: Exchange): Promise<void> {
    const { client, request, response } = exchange;
    const { clock } = this.#deps;
    const abort = new AbortController();
    let slot: Pick<QuotaShare, 'release'> | null = null;
    let stall: SilenceWatch | null = null;
    let end: Timer | null = null;
    const hasRoom = client.begin();
    response.once('close', () => {
      abort.abort();
      client.requests.delete(abort);
      client.end();
    });
    // Headers and body of a response that has begun cannot change.
    abort.signal.addEventListener('abort', () => response.destroy(), { once: true });
    try {
      if (!hasRoom) throw new SvcError('rate_limited');
      checkForm(request, client.connection.name);
      const admission = this.#admit(client, request);
      const { aid } = admission.exposure;
      const service = this.#service(aid);
      const holder = holderOf(client.connection, admission.token !== null);
      slot = takeSlot(this.#calls.share(holder, () => abort.abort(new SvcError('rate_limited'))));
      client.requests.set(abort, admission);
      end = this.#untilEnd(admission, abort);
      if (request.headers.expect !== undefined) exchange.proceed();
      stall = new SilenceWatch(clock, CALL_STALL_MS, () => abort.abort(new SvcError('timeout')));
      const asStream = (): void => {
        stall?.stop();
        const asCall = slot;
        slot = takeSlot(
          this.#eventStreams.share(holder, () => abort.abort(new SvcError('rate_limited'))),
          'event streams',
        );
        asCall?.release();
      };
      const forwarding = this.#forwarding(exchange, admission, service, abort);
      const { http2 } = exchange;
      const raw = isGrpc(request.headers['content-type']) ? this.#deps.rawServiceOf(aid) : null;
      if (raw === null || http2 === undefined || !(response instanceof Http2Reply))
        return await forward(forwarding, response, stall, asStream);
      request.on('data', stall.heard);
      response.on('drain', stall.heard);
      await this.#forwardGrpc(client, http2, response, raw, forwarding);
    } catch (error) {
      this.#answerError(exchange, error);
    } finally {
      end?.cancel();
      stall?.stop();
      slot?.release();
    }
  }

  async #forwardGrpc(
    client: Client,
    stream: ServerHttp2Stream,
    response: Http2Reply,
    service: Address,
    { request, headers, identity, abort }: Forwarding,
  ): Promise<void> {
    if (client.service === null || client.service.closed || client.service.destroyed)
      client.service = openHttp2(service, this.#deps.connect);
    const kept = withoutReservedHeaders(headers ?? request.rawHeaders, EVIDENCE | SET_PER_HOP);
    const { method = '', url: path = '' } = request;
    const authority = formatAddress(service);
    const sent = { method, path, authority, headers: [...kept, ...identity], signal: abort.signal };
    await forwardGrpc(client.service, stream, response, sent);
  }

  async #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const { clock } = this.#deps;
    stream.on('error', () => stream.destroy());
    const client = this.#clients.get(request.socket);
    if (client === undefined) return void stream.destroy();
    client.begin();
    const abort = new AbortController();
    abort.signal.addEventListener('abort', () => stream.destroy(), { once: true });
    stream.once('close', () => {
      abort.abort();
      client.requests.delete(abort);
    });
    try {
      checkForm(request, client.connection.name);
      const admission = this.#admit(client, request);
      const service = this.#service(admission.exposure.aid);
      const holder = holderOf(client.connection, admission.token !== null);
      const slot = takeSlot(
        this.#eventStreams.share(holder, () => abort.abort()),
        'event streams',
      );
      const end = this.#untilEnd(admission, abort);
      stream.once('close', () => {
        end?.cancel();
        slot.release();
      });
      client.requests.set(abort, admission);
      const parts = { client, request, stream: null, hint: () => {} };
      const forwarding = this.#forwarding(parts, admission, service, abort);
      const answer = await requestUpgrade(forwarding, protocolsIn(request.headers.upgrade));
      if (stream.destroyed) return void (answer.switched?.socket ?? answer.message).destroy();
      answerUpgrade(stream, head, answer, clock, forwarding.accepted);
    } catch (error) {
      if (!stream.destroyed) sendErrorAndClose(stream, this.#known(error), clock);
    }
  }

  /** Ends a request when its token ends. */
  #untilEnd({ token }: PublicAdmission, abort: AbortController): Timer | null {
    const { clock } = this.#deps;
    if (token === null || token.expiresAt === null) return null;
    return clock.after(token.expiresAt - clock.now(), () => abort.abort(new SvcError('unauthorized')));
  }

  /** @throws SvcError as `Exposures.admit` */
  #admit({ connection }: Client, { method = '', url = '', rawHeaders, headers }: ServedRequest): PublicAdmission {
    const { authorization } = headers;
    return this.#deps.exposures.admit(connection.name, {
      method,
      target: url,
      // A getter: most requests need no rule.
      get isSteered() {
        return isSteered(rawHeaders, url);
      },
      authorization,
      address: connection.clientAddress,
    });
  }

  /** @throws SvcError `no_inbound`, `tunnels_only` */
  #service(aid: Aid): BoundService {
    const service = this.#deps.serviceOf(aid);
    if (service === null) throw new SvcError('no_inbound');
    if (!service.acceptsCalls) throw new SvcError('tunnels_only');
    return service;
  }

  #forwarding(
    { client, request, stream, hint }: Pick<Exchange, 'client' | 'request' | 'stream' | 'hint'>,
    { exposure, token }: PublicAdmission,
    service: BoundService,
    abort: AbortController,
  ): Forwarding {
    const { clock } = this.#deps;
    const { aid: called, host } = exposure;
    const callerKey = this.#deps.callerKey(called);
    const { method = 'GET', url: target = '/' } = request;
    const { clientAddress, clientPort } = client.connection;
    const label = token?.label ?? '';
    const caller = label === '' ? PUBLIC_CALLER : `${PUBLIC_CALLER} ${label}`;
    const proof = callerProof(callerKey, { caller, called, method, target, at: unixSeconds(clock) });
    const from = formatAddress({ host: clientAddress, port: clientPort });
    const identity = [
      ...['Svc-Caller', PUBLIC_CALLER, ...(label === '' ? [] : ['Svc-Client', label]), 'Svc-Local-Aid', called],
      ...['Forwarded', `by=_${called};for="${from}";host=${host};proto=https`, PROOF_HEADER, proof],
    ];
    const place = { prefix: '', path: target, host, scheme: 'https' } as const;
    const asked = { method, url: target };
    const isCard = isCardRequest(asked);
    const reshape: Forwarding['reshape'] = (status, headers, body) => {
      const answer = { status, headers, body };
      if (!isCard) return withLocalMetadata(answer, place);
      const lead = (card: Card) => this.#deps.publicCard(card, called, `https://${host}`, abort.signal);
      return withLocalCard(answer, 'document', place, lead, () => {});
    };
    const headers = headersForService(request.rawHeaders, host);
    return {
      request,
      stream,
      // A connection to the service that another client has used could carry the rest of its request.
      owner: `${PUBLIC_CALLER} ${exposure.id} ${token?.id ?? clientAddress}`,
      called,
      service,
      upstreams: this.#upstreams,
      clock,
      callerKey,
      identity,
      evidence: [],
      accepted: (headers) => headersForProgram(headers, place, { id: '', isBrowser: true, shared: null }, ''),
      hinted: (headers) => {
        const links = [...pairs(headers)].filter(([name]) => name.toLowerCase() === 'link').map(([, value]) => value);
        if (links.length > 0) hint(links);
      },
      headers: isCard ? cardRequestHeaders(headers) : headers,
      ...(isCard || isMetadataRequest(asked) ? { reshape } : {}),
      trace: UNTRACED,
      abort,
    };
  }

  #known(cause: unknown): SvcError {
    if (cause instanceof SvcError && cause.code !== 'internal') return cause;
    this.#deps.log.error({ error: cause }, 'a request at a public address failed');
    return new SvcError('internal');
  }

  #answerError({ request, response, client }: Exchange, cause: unknown): void {
    if (response.destroyed) return;
    const error = this.#known(cause);
    const { status, headers, body } = daemonErrorResponse(error);
    const challenge = error.code === 'unauthorized' ? ['WWW-Authenticate', 'Bearer realm="svcd"'] : [];
    const last = response instanceof Http2Reply || request.readableEnded ? [] : ['Connection', 'close'];
    try {
      response.writeHead(status, STATUS_CODES[status] ?? '', [
        ...last,
        ...headers,
        ...challenge,
        'Cache-Control',
        'no-store',
      ]);
      response.end(response.req.method === 'HEAD' ? undefined : body);
    } catch {
      // The response has begun.
      response.destroy();
      if (!(response instanceof Http2Reply)) client.socket.destroy();
    }
  }

  #malformed(socket: Duplex): void {
    const isIdle = this.#clients.get(socket)?.open === 0;
    if (isIdle && socket.writable)
      socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    socket.destroy();
  }
}

/** The protocol of a verification (RFC 8737). */
const ACME_PROTOCOL = 'acme-tls/1';

/** True if a connection begins with a TLS ClientHello that offers this protocol and no other. Puts its bytes back. */
async function offersOnly(stream: Duplex, protocol: string, clock: Clock): Promise<boolean> {
  // The extension with its list of one name (RFC 7301). A client that sends these bytes elsewhere gets a certificate that
  // proves nothing to it.
  const name = Buffer.from(protocol);
  const wanted = Buffer.concat([Buffer.of(0, name.length + 1, name.length), name]);
  return new Promise((resolve) => {
    const hello = new ClientHelloReader();
    const over = (found: boolean): void => {
      silence.stop();
      stop();
      stream.pause();
      if (hello.head.length > 0 && !stream.destroyed) stream.unshift(hello.head);
      resolve(found);
    };
    const data = (chunk: Buffer): void => {
      if (hello.push(chunk) !== 'more') over(hello.head.includes(wanted));
    };
    const silence = new SilenceWatch(clock, FIRST_REQUEST_MS, () => stream.destroy());
    const stop = listen(stream, { data, end: () => over(false), close: () => over(false) });
    stream.resume();
  });
}

/** An owner that gave a client a token named it. */
function holderOf({ name, clientAddress }: PublicConnection, named: boolean): QuotaHolder {
  return { key: `${name} ${clientAddress}`, node: clientAddress, source: clientAddress, named };
}

function sendInterim(stream: ServerHttp2Stream, headers: Parameters<ServerHttp2Stream['additionalHeaders']>[0]): void {
  if (!stream.headersSent && !stream.destroyed) stream.additionalHeaders(headers);
}

/** @throws SvcError `invalid_request`, `forbidden_host`, `too_large` */
function checkForm(request: ServedRequest, name: string): void {
  const { url = '', method = '', headers, rawHeaders } = request;
  if (!url.startsWith('/') && !(url === '*' && method === 'OPTIONS'))
    throw new SvcError('invalid_request', { message: 'A request target must be a path.' });
  if (rawHeaders.length / 2 > MAX_HEADERS) throw tooManyHeaders(MAX_HEADERS);
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    throw new SvcError('invalid_request', { message: 'The transfer coding of this request is unknown.' });
  // Misdirected (RFC 9110, section 15.5.20): the client uses the connection for another name.
  if (namesManyHosts(request) || hostOf(headers.host ?? '') !== name)
    throw new SvcError('forbidden_host', { status: 421, message: 'This connection serves another host.' });
}

/** Headers of a client for the service: without the token, and without the origin of the address itself. */
function headersForService(raw: RawHeaders, host: string): string[] {
  const isOwn = headerOf(raw, 'origin') === `https://${host}`;
  const hasToken = bearerOf(headerOf(raw, 'authorization')) !== null;
  return filterHeaders(
    raw,
    (name) => !(name === 'origin' && isOwn) && !(name === 'authorization' && hasToken) && name !== 'via',
  );
}
