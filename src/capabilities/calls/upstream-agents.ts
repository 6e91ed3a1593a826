/** The pools of connections to bound services: connections of different owners are never one. */
import type { Agent, RequestOptions } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

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
}

/** Sees each connection that is being made. */
export type Watch = (socket: Socket) => void;

/** Has an agent made with `POOL`, of `node:http` or `node:https`, keep the connections of owners apart, and shows each new one. */
export function upstreamAgent<A extends Agent>(agent: A, watch: Watch): A {
  const name = agent.getName.bind(agent);
  const create = agent.createConnection.bind(agent);
  const keep = agent.keepSocketAlive.bind(agent);
  agent.getName = (options: PoolOptions = {}) => `${name(options)} ${options.owner}`;
  agent.createConnection = (...args: Parameters<typeof create>) => {
    const made = create(...args);
    if (made instanceof Socket) watch(made);
    return made;
  };
  agent.keepSocketAlive = (socket: Duplex) =>
    Object.keys(agent.freeSockets).length < MAX_IDLE_OWNERS && Boolean(keep(socket));
  return agent;
}
