/** The pools of connections to bound services: connections of different owners are never one. */
import { Agent as HttpAgent, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** How long a connection waits for its next request: shorter than the 5 s after which many servers hang up. */
const IDLE_MS = 4_000;
/** Connections of one owner to one service that wait for a request. */
const MAX_IDLE = 64;
/** Owners whose connections wait for a request. */
const MAX_IDLE_OWNERS = 256;

const POOL = { keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS } as const;

export interface PoolOptions extends RequestOptions {
  /** Who shares connections with nobody else. */
  readonly owner?: string;
  readonly rejectUnauthorized?: boolean;
}

/** Sees each connection that is being made. */
export type Watch = (socket: Socket) => void;
type Create = HttpAgent['createConnection'];

function watched(watch: Watch, made: ReturnType<Create>): ReturnType<Create> {
  if (made instanceof Socket) watch(made);
  return made;
}

function hasRoom({ freeSockets }: HttpAgent): boolean {
  return Object.keys(freeSockets).length < MAX_IDLE_OWNERS;
}

export class UpstreamHttpAgent extends HttpAgent {
  readonly #watch: Watch;

  constructor(watch: Watch) {
    super(POOL);
    this.#watch = watch;
  }

  override getName(options: PoolOptions = {}): string {
    return `${super.getName(options)} ${options.owner}`;
  }

  override createConnection(...args: Parameters<Create>): ReturnType<Create> {
    return watched(this.#watch, super.createConnection(...args));
  }

  override keepSocketAlive(socket: Duplex): boolean {
    return hasRoom(this) && Boolean(super.keepSocketAlive(socket));
  }
}

/** As `UpstreamHttpAgent`, over TLS. */
export class UpstreamHttpsAgent extends HttpsAgent {
  readonly #watch: Watch;

  constructor(watch: Watch) {
    super(POOL);
    this.#watch = watch;
  }

  override getName(options: PoolOptions = {}): string {
    return `${super.getName(options)} ${options.owner}`;
  }

  override createConnection(...args: Parameters<Create>): ReturnType<Create> {
    return watched(this.#watch, super.createConnection(...args));
  }

  override keepSocketAlive(socket: Duplex): boolean {
    return hasRoom(this) && Boolean(super.keepSocketAlive(socket));
  }
}
