/** The pools of connections to bound services: connections of different owners are never one. */
import type { Agent, RequestOptions } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { requireProof } from '../../foundation/proven-connection.ts';
import { type ProofExpected, proofOfService } from './proven-connection.ts';

/** How long a connection waits for its next request: shorter than the 5 s after which many servers hang up. */
const IDLE_MS = 4_000;
/** Connections of one owner to one service that wait for a request. */
const MAX_IDLE = 64;
/** Owners whose connections wait for a request. */
const MAX_IDLE_OWNERS = 256;

export const POOL = { keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS } as const;

export interface PoolOptions extends RequestOptions {
  /** Who shares connections with nobody else. */
  readonly owner?: string;
  readonly rejectUnauthorized?: boolean;
  readonly allowHalfOpen?: boolean;
  /** What the service has to prove on each new connection; left out where it has nothing to prove. */
  readonly proof?: ProofExpected;
}

/** Sees each connection that is being made. */
export type Watch = (socket: Socket) => void;

/**
 * Has an agent made with `POOL`, of `node:http` or `node:https`, keep the connections of owners apart, show each new one,
 * and use none before it has proven what it has to.
 */
export function upstreamAgent<A extends Agent>(agent: A, watch: Watch): A {
  // protocol-calls.md, step 8
  const name = agent.getName.bind(agent);
  const create = agent.createConnection.bind(agent);
  const keep = agent.keepSocketAlive.bind(agent);
  agent.getName = (options: PoolOptions = {}) => `${name(options)} ${options.owner}`;
  agent.createConnection = (...[options, done]: Parameters<typeof create>) => {
    const { proof }: PoolOptions = options;
    // Given the callback, it would be told of the connection before there is a proof.
    const made = proof === undefined ? create(options, done) : create(options);
    if (!(made instanceof Socket)) return made;
    watch(made);
    if (proof === undefined) return made;
    requireProof(made, proofOfService(proof), (error, socket) => done?.(error, socket ?? made));
    return undefined;
  };
  agent.keepSocketAlive = (socket: Duplex) =>
    Object.keys(agent.freeSockets).length < MAX_IDLE_OWNERS && Boolean(keep(socket));
  return agent;
}
