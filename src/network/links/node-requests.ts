/** Requests between nodes beside links: one stream each, on the same pooled connections. */
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import { patience } from '../../foundation/stall.ts';
import type { NodeAt, NodeRequests, RequestOptions } from '../node-requests.ts';
import type { QuicStream } from '../quic/types.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { type NodeSession, openStreamWithin } from './node-session.ts';
import { SharedQuota, sourceOfHost } from './shared-quota.ts';
import { ProtocolBreach, Refusal, STATUS } from './status.ts';
import { KIND } from './stream-dispatcher.ts';
import { BinaryReader, LENGTH_BYTES, readExactly, u32 } from './wire.ts';

/** Largest request and largest answer, bytes. */
export const MAX_NODE_MESSAGE_BYTES = 256 * 1024;
/** Time for a request and its answer, where the asker names none: milliseconds. */
export const REQUEST_TIMEOUT_MS = 10_000;
/** Time to answer a request and to have the answer read, milliseconds. */
export const ANSWER_TIMEOUT_MS = 10_000;
/** Requests of one node that are worked on at a time. */
export const MAX_REQUESTS_PER_NODE = 16;
/** Requests of all nodes that are worked on at a time. */
export const MAX_REQUESTS = 128;
/** Requests of all nodes on one IPv4 address or IPv6 /64 that are worked on at a time. */
export const MAX_REQUESTS_PER_SOURCE = 32;

type RequestHandler = Parameters<NodeRequests['onRequest']>[0];

interface NodeRequestsDependencies {
  readonly pool: ConnectionPool;
  readonly clock: Clock;
}

export class PooledNodeRequests implements NodeRequests {
  readonly #pool: ConnectionPool;
  readonly #clock: Clock;
  readonly #active = new SharedQuota({
    perNode: MAX_REQUESTS_PER_NODE,
    perSource: MAX_REQUESTS_PER_SOURCE,
    all: MAX_REQUESTS,
  });
  #handler: RequestHandler | null = null;

  /** Takes the pool's streams of kind "node request". */
  constructor(dependencies: NodeRequestsDependencies) {
    this.#pool = dependencies.pool;
    this.#clock = dependencies.clock;
    this.#pool.handle(KIND.nodeRequest, (stream, session, signal) => this.#answer(stream, session, signal));
  }

  onRequest(handler: RequestHandler): void {
    if (this.#handler !== null) throw new Error('node requests are already answered');
    this.#handler = handler;
  }

  async request(node: NodeAt, body: Uint8Array, options: RequestOptions = {}): Promise<Uint8Array> {
    checkSize(body);
    using limit = patience(this.#clock, options.timeoutMs ?? REQUEST_TIMEOUT_MS, options.signal);
    const place = { nodeKey: node.nodeKey, addresses: [node.address] };
    const pooled = this.#pool.current(node.nodeKey);
    const session = pooled ?? (await this.#pool.connect(place, limit.signal));
    const stream = await openStreamWithin(session, limit.signal).catch(async (error: unknown) => {
      // Nothing was sent yet, so a broken pooled connection may be replaced in silence.
      if (pooled === null || limit.signal.aborted) throw error;
      return await openStreamWithin(await this.#pool.connect(place, limit.signal, pooled), limit.signal);
    });
    const { connection } = stream;
    const received = connection.stats().bytesReceived;
    try {
      stream.end(Buffer.concat([Uint8Array.of(KIND.nodeRequest), u32(body.length), body]));
      const [status = STATUS.failed] = await readExactly(stream, 1, limit.signal);
      if (status !== STATUS.ok) throw new Refusal(status);
      return await readMessage(stream, limit.signal);
    } catch (error) {
      // Not a packet since: the next request should not wait on this connection again.
      const late = error instanceof SvcError && error.code === 'timeout';
      if (late && connection.stats().bytesReceived === received) this.#pool.reset(node.nodeKey);
      throw error;
    } finally {
      stream.destroy();
    }
  }

  async #answer(stream: QuicStream, session: NodeSession, signal: AbortSignal): Promise<void> {
    if (this.#handler === null) throw new Refusal(STATUS.unknownPurpose);
    const from = { nodeKey: session.there.nodeKey, address: session.connection.remoteAddress };
    const leave = this.#active.take(session.nodeId, sourceOfHost(from.address.host));
    if (leave === null) throw new SvcError('rate_limited');
    try {
      const body = await readMessage(stream, signal);
      using limit = patience(this.#clock, ANSWER_TIMEOUT_MS);
      const answer = await abortable(this.#handler(body, from), limit.signal);
      checkSize(answer);
      await send(stream, Buffer.concat([Uint8Array.of(STATUS.ok), u32(answer.length), answer]), limit.signal);
    } finally {
      leave();
    }
  }
}

function checkSize(message: Uint8Array): void {
  if (message.length > MAX_NODE_MESSAGE_BYTES)
    throw new SvcError('too_large', { details: { limit: MAX_NODE_MESSAGE_BYTES, size: message.length } });
}

/** Reads a message: its length in four bytes, then as many bytes. What has not come takes no memory. */
async function readMessage(stream: QuicStream, signal: AbortSignal): Promise<Uint8Array> {
  const length = new BinaryReader(await readExactly(stream, LENGTH_BYTES, signal)).u32();
  if (length > MAX_NODE_MESSAGE_BYTES) throw new ProtocolBreach(`A node message of ${length} bytes is too long.`);
  return await readExactly(stream, length, signal);
}

/** Writes the last bytes of a stream and waits until the other side takes them. */
function send(stream: QuicStream, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const sent = new Promise<void>((resolve, reject) => {
    stream.once('finish', resolve);
    stream.once('close', () => reject(new SvcError('connect_failed')));
    stream.end(bytes);
  });
  stream.resume();
  return abortable(sent, signal);
}
