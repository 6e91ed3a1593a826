/** Pools of connections to bound services. Different owners never share a connection. */
import { randomBytes } from 'node:crypto';
import type { Agent, RequestOptions } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { isEqual, type ProofRequirement, requireProof } from '../../foundation/daemon-proof.ts';
import {
  CHALLENGE_BYTES,
  CHALLENGE_HEADER,
  SERVICE_PROOF_HEADER,
  serviceProof,
} from '../../foundation/service-proof.ts';

/** How long a connection stays idle before it is closed, in milliseconds. Many servers close after 5 s. */
const IDLE_MS = 4_000;
/** Idle connections of one owner to one service. */
const MAX_IDLE = 64;
/** Owners with idle connections. */
const MAX_IDLE_OWNERS = 256;

export const POOL = { keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS } as const;

export interface PoolOptions extends RequestOptions {
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
export function upstreamAgent<A extends Agent>(agent: A, watch: Watch): A {
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
