/** Requests to the bound services of local agents, over pooled connections. */
import { type ClientRequest, Agent as HttpAgent, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { ExchangeFailure, errorCode, exchange, type HttpAnswer, type HttpExchange } from './exchange.ts';
import { isIdempotent } from './methods.ts';

/** How long a service may take to accept a connection, TLS included, milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection waits for its next request: shorter than the 5 s after which many servers hang up. */
const IDLE_MS = 4_000;
/** Connections to one service that wait for a request. */
const MAX_IDLE = 64;

/** Where the service of an agent listens. */
export interface BoundService {
  /** `host:port` without a scheme is `http` here. */
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** False: any certificate is taken; for `https` only. */
  readonly verifyCertificate: boolean;
}

export type UpstreamRequest = Pick<HttpExchange, 'headers' | 'body' | 'trailers' | 'signal'> & {
  readonly method: string;
  readonly path: string;
};

/** The `Host` of requests to a service; the port is left out where it is the scheme's own. */
export function hostHeaderOf({ scheme, host, port }: BoundService): string {
  if (port === (scheme === 'http' ? 80 : 443)) return isIP(host) === 6 ? `[${host}]` : host;
  return formatAddress({ host, port });
}

export class Upstreams {
  readonly #clock: Clock;
  readonly #http = new HttpAgent({ keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS });
  readonly #https = new HttpsAgent({ keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Sends a request to a service. Where a pooled connection was found dead, an idempotent request
   * without a body is sent once more.
   * @throws ExchangeFailure
   */
  async send(service: BoundService, request: UpstreamRequest): Promise<HttpAnswer> {
    const secure = service.scheme === 'https';
    const options: RequestOptions & { rejectUnauthorized?: boolean } = {
      agent: secure ? this.#https : this.#http,
      host: service.host,
      port: service.port,
      method: request.method,
      path: request.path,
      ...(secure ? { rejectUnauthorized: service.verifyCertificate } : {}),
    };
    const parts: HttpExchange = { ...request, options, secure, watch: (sent) => this.#limitConnecting(sent, secure) };
    try {
      return await exchange(parts);
    } catch (error) {
      const dead = error instanceof ExchangeFailure && error.reused && !error.malformed;
      if (!dead || request.body !== null || !isIdempotent(request.method) || request.signal?.aborted === true)
        throw error;
      return await exchange({ ...parts, options: { ...options, agent: false } });
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
  const code = errorCode(error instanceof ExchangeFailure ? error.cause : error);
  if (code === 'ECONNREFUSED') return 'it refuses connections';
  if (code === 'ETIMEDOUT') return 'it does not accept connections in time';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'its host name does not resolve';
  if (/CERT|TLS|SSL/.test(code)) return 'its certificate is not trusted';
  if (error instanceof ExchangeFailure && error.malformed) return 'it answers with broken HTTP';
  return 'it hung up without an answer';
}
