/**
 * Requests to the bound services of local agents over pooled connections. A service that misjudges the end of a request
 * reads the rest as the next request. Therefore a connection only carries requests of one caller, and it is closed
 * after a body that the service may not have read.
 */
import { randomBytes } from 'node:crypto';
import { Agent, type ClientRequest, type RequestOptions } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { isIP, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { isEqual, type ProofRequirement, requireProof } from '../../foundation/daemon-proof.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import {
  CHALLENGE_BYTES,
  CHALLENGE_HEADER,
  SERVICE_PROOF_HEADER,
  serviceProof,
} from '../../foundation/service-proof.ts';
import { ExchangeFailure, exchange, type HttpExchange, type HttpResponse } from './exchange.ts';
import { BODILESS, IDEMPOTENT } from './methods.ts';

/** Time limit for connecting to a service, TLS included, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Address and properties of an agent's bound service. */
export interface BoundService {
  /** If false, only tunnels may lead to the service. */
  readonly acceptsCalls: boolean;
  /** `host:port` without a scheme means `http`. */
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** If false, any certificate is accepted. For `https` only. */
  readonly verifyCertificate: boolean;
  /** If true, the service proves on each connection that it is the program that was bound. For `http` only. */
  readonly provesItself?: boolean;
}

export type UpstreamRequest = Pick<HttpExchange, 'headers' | 'body' | 'trailers' | 'signal' | 'hinted'> & {
  readonly method: string;
  readonly path: string;
  /** The calling agent, or another name of the caller. Requests of different owners never share a connection. */
  readonly owner: string;
  /** The called agent, and the key of its service. */
  readonly called: Aid;
  readonly callerKey: Uint8Array;
  /** The request asks to switch protocols. Each side may then end its half of the connection on its own. */
  readonly switches?: boolean;
};

/** The `Host` header for a service, without the default port of the scheme. */
export function hostHeaderOf({ scheme, host, port }: BoundService): string {
  if (port === (scheme === 'http' ? 80 : 443)) return isIP(host) === 6 ? `[${host}]` : host;
  return formatAddress({ host, port });
}

/** Headers after which the connection closes. */
function withClose(headers: readonly string[]): string[] {
  return [...headers, 'Connection', 'close'];
}

export class Upstreams {
  readonly #clock: Clock;
  readonly #http: Agent;
  readonly #https: SecureAgent;

  /**
   * @param watch receives each new connection. If it destroys the connection during the connect event, the service counts as unreachable
   */
  constructor(clock: Clock, watch: (socket: Socket) => void) {
    this.#clock = clock;
    this.#http = upstreamAgent(new Agent(POOL), watch);
    this.#https = upstreamAgent(new SecureAgent(POOL), watch);
  }

  /**
   * Sends a request to a service. An idempotent request without a body is repeated once if its pooled connection was
   * dead.
   * @throws ExchangeFailure
   */
  async send(service: BoundService, request: UpstreamRequest): Promise<HttpResponse> {
    const secure = service.scheme === 'https';
    const { host, port } = service;
    const isProven = service.provesItself === true && !secure;
    const options: PoolOptions = {
      agent: secure ? this.#https : this.#http,
      host,
      port,
      method: request.method,
      path: request.path,
      // An upgrade uses a separate connection, because pooled connections do not stay half open.
      ...(request.switches === true ? { allowHalfOpen: true } : {}),
      owner: request.switches === true ? newId() : isProven ? `${request.owner} ${request.called}` : request.owner,
      ...(isProven ? { proof: { key: request.callerKey, port, clock: this.#clock } } : {}),
      ...(secure ? { rejectUnauthorized: service.verifyCertificate } : {}),
    };
    // Many services do not read the body of a request that usually has none.
    const isLast = request.body !== null && (BODILESS.has(request.method) || request.method === 'DELETE');
    const parts: HttpExchange = {
      ...request,
      headers: isLast ? withClose(request.headers) : request.headers,
      options,
      secure,
      watch: (sent) => {
        if (!sent.reusedSocket) this.#limitConnecting(sent, secure);
        if (isLast) sent.shouldKeepAlive = false;
      },
      // A service that responds before the end of the body may leave the rest unread.
      closesEarly: true,
    };
    try {
      return await exchange(parts);
    } catch (error) {
      const dead = error instanceof ExchangeFailure && error.reused && !error.malformed;
      if (!dead || request.body !== null || !IDEMPOTENT.has(request.method) || request.signal?.aborted === true)
        throw error;
      // This connection will not be reused. An upgrade request brings its own `Connection` header.
      const headers = request.headers.includes('Connection') ? request.headers : withClose(request.headers);
      const separate: PoolOptions = { ...options, owner: newId() };
      return await exchange({ ...parts, headers, options: separate });
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

// Pools of connections to bound services. Different owners never share a connection.

/** How long a connection stays idle before it is closed, in milliseconds. Many servers close after 5 s. */
const IDLE_MS = 4_000;
/** Idle connections of one owner to one service. */
const MAX_IDLE = 64;
/** Owners with idle connections. */
const MAX_IDLE_OWNERS = 256;

const POOL = { keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS } as const;

interface PoolOptions extends RequestOptions {
  /** Only requests of the same owner share a connection. */
  readonly owner?: string;
  readonly rejectUnauthorized?: boolean;
  readonly allowHalfOpen?: boolean;
  /** The proof that the service must give on each new connection, if any. */
  readonly proof?: ProofExpected;
}

/** Receives each new connection before it is connected. */
type Watch = (socket: Socket) => void;

/**
 * Changes an agent of `node:http` or `node:https` that was made with `POOL`. It keeps the connections of owners apart,
 * reports each new connection, and uses a connection only after the service has given its proof.
 */
function upstreamAgent<A extends Agent>(agent: A, watch: Watch): A {
  // protocol-calls.md, step 8
  const name = agent.getName.bind(agent);
  const create = agent.createConnection.bind(agent);
  const keep = agent.keepSocketAlive.bind(agent);
  agent.getName = (options: PoolOptions = {}) => `${name(options)} ${options.owner}`;
  agent.createConnection = (...[options, done]: Parameters<typeof create>) => {
    const { proof }: PoolOptions = options;
    // With the callback, the agent would use the connection before the proof.
    const made = proof === undefined ? create(options, done) : create(options);
    if (!(made instanceof Socket)) return made;
    watch(made);
    if (proof === undefined) return made;
    requireProof(made, requiredProof(proof), (error, socket) => done?.(error, socket ?? made));
    return undefined;
  };
  agent.keepSocketAlive = (socket: Duplex) =>
    Object.keys(agent.freeSockets).length < MAX_IDLE_OWNERS && Boolean(keep(socket));
  return agent;
}

// A new connection to a service that must prove its identity before it receives a call.

/** The proof that a service must give before it receives a request. */
interface ProofExpected {
  readonly key: Uint8Array;
  /** The port that was dialed. */
  readonly port: number;
  readonly clock: Clock;
}

/** The proof that a service must give. */
function requiredProof({ key, port, clock }: ProofExpected): ProofRequirement {
  return {
    challengeHeader: CHALLENGE_HEADER,
    proofHeader: SERVICE_PROOF_HEADER,
    // It refers to the whole server: the program chooses its own paths.
    path: '*',
    host: 'localhost',
    prove: async (ask) => {
      const challenge = randomBytes(CHALLENGE_BYTES).toString('hex');
      return isEqual(await ask(challenge), serviceProof(key, challenge, port));
    },
    clock,
  };
}
