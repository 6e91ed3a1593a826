/**
 * Requests to the bound services of local agents, over pooled connections. A service that misreads where
 * a request ends takes the rest of it for the next one: so a connection carries the requests of one caller
 * only, and none after a body that the service may have left unread.
 */
import { Agent, type ClientRequest } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { codeOf } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import { UNPROVEN } from '../../foundation/proven-connection.ts';
import { ExchangeFailure, exchange, type HttpAnswer, type HttpExchange } from './exchange.ts';
import { BODILESS, IDEMPOTENT } from './methods.ts';
import { POOL, type PoolOptions, upstreamAgent } from './upstream-agents.ts';

/** How long a service may take to accept a connection, TLS included, milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Where the service of an agent listens. */
export interface BoundService {
  /** False: only tunnels may lead there. */
  readonly takesCalls: boolean;
  /** `host:port` without a scheme is `http` here. */
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** False: any certificate is taken; for `https` only. */
  readonly verifyCertificate: boolean;
  /** True: it proves on each connection that it is the program which was bound; for `http` only. */
  readonly provesItself?: boolean;
}

export type UpstreamRequest = Pick<HttpExchange, 'headers' | 'body' | 'trailers' | 'signal'> & {
  readonly method: string;
  readonly path: string;
  /** Whose request it is. */
  readonly caller: Aid;
  /** Whose service is asked, and the key that it has. */
  readonly called: Aid;
  readonly callerKey: Uint8Array;
  /** It asks to switch protocols, and each side may end its half of that connection alone. */
  readonly switches?: boolean;
};

export interface UpstreamsDependencies {
  readonly clock: Clock;
  /** Sees each connection that is being made: what it destroys in the moment that it connects is no service. */
  readonly watch: (socket: Socket) => void;
}

/** The `Host` of requests to a service; the port is left out where it is the scheme's own. */
export function hostHeaderOf({ scheme, host, port }: BoundService): string {
  if (port === (scheme === 'http' ? 80 : 443)) return isIP(host) === 6 ? `[${host}]` : host;
  return formatAddress({ host, port });
}

/** Headers with which a connection carries nothing further. */
function closing(headers: readonly string[]): string[] {
  return [...headers, 'Connection', 'close'];
}

export class Upstreams {
  readonly #clock: Clock;
  readonly #http: Agent;
  readonly #https: SecureAgent;

  constructor({ clock, watch }: UpstreamsDependencies) {
    this.#clock = clock;
    this.#http = upstreamAgent(new Agent(POOL), watch);
    this.#https = upstreamAgent(new SecureAgent(POOL), watch);
  }

  /**
   * Sends a request to a service. Where a pooled connection was found dead, an idempotent request
   * without a body is sent once more.
   * @throws ExchangeFailure
   */
  async send(service: BoundService, request: UpstreamRequest): Promise<HttpAnswer> {
    const secure = service.scheme === 'https';
    const { host, port } = service;
    const isProven = service.provesItself === true && !secure;
    const options: PoolOptions = {
      agent: secure ? this.#https : this.#http,
      host,
      port,
      method: request.method,
      path: request.path,
      // A connection of its own: those that wait for requests close both halves at once.
      ...(request.switches === true ? { allowHalfOpen: true } : {}),
      owner: request.switches === true ? newId() : isProven ? `${request.caller} ${request.called}` : request.caller,
      ...(isProven ? { proof: { key: request.callerKey, port, clock: this.#clock } } : {}),
      ...(secure ? { rejectUnauthorized: service.verifyCertificate } : {}),
    };
    // A body where none is usual is left unread by many services.
    const isLast = request.body !== null && (BODILESS.has(request.method) || request.method === 'DELETE');
    const parts: HttpExchange = {
      ...request,
      headers: isLast ? closing(request.headers) : request.headers,
      options,
      secure,
      watch: (sent) => {
        this.#limitConnecting(sent, secure);
        if (isLast) sent.shouldKeepAlive = false;
        // Who answers before the body is over may leave the rest of it unread.
        sent.once('response', () => {
          if (!sent.writableFinished) sent.shouldKeepAlive = false;
        });
      },
    };
    try {
      return await exchange(parts);
    } catch (error) {
      const dead = error instanceof ExchangeFailure && error.reused && !error.malformed;
      if (!dead || request.body !== null || !IDEMPOTENT.has(request.method) || request.signal?.aborted === true)
        throw error;
      // On a connection of its own, which nobody would use again. One to be switched says itself what becomes of it.
      const headers = request.headers.includes('Connection') ? request.headers : closing(request.headers);
      return await exchange({ ...parts, headers, options: { ...options, owner: newId() } });
    }
  }

  stop(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  #limitConnecting(request: ClientRequest, secure: boolean): void {
    const timer = this.#clock.after(CONNECT_TIMEOUT_MS, () =>
      request.destroy(Object.assign(new Error('the service does not accept connections'), { code: 'ETIMEDOUT' })),
    );
    const cancel = (): void => timer.cancel();
    request.once('close', cancel);
    request.once('socket', (socket: Socket) => {
      if (request.reusedSocket || (!secure && !socket.connecting)) cancel();
      else socket.once(secure ? 'secureConnect' : 'connect', cancel);
    });
  }
}

/** Why a service could not be reached, in a few words that give away nothing about its machine. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error instanceof ExchangeFailure ? error.cause : error);
  if (code === 'ECONNREFUSED') return 'it refuses connections';
  if (code === UNPROVEN) return 'another program has its port';
  if (code === 'ETIMEDOUT') return 'it does not accept connections in time';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'its host name does not resolve';
  if (/CERT|TLS|SSL/.test(code)) return 'its certificate is not trusted';
  return 'it hung up without an answer';
}
