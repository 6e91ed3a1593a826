/** Requests between nodes: one stream each, on the connections that links use too. */
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import { Quota } from '../../foundation/quota.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import {
  NODE_REQUEST_KINDS,
  type NodeAt,
  type NodeRequestHandler,
  type NodeRequestKind,
  type NodeRequests,
  type RequestOptions,
} from '../node-requests.ts';
import { UNHELPED } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { type NodeSession, openStreamWithin, sessionHolder } from '../peers/session.ts';
import {
  BinaryReader,
  KIND,
  type Kind,
  LENGTH_BYTES,
  ProtocolBreach,
  Refusal,
  readExactly,
  STATUS,
  u32,
} from '../peers/wire.ts';
import type { Stream } from '../transport/types.ts';

/** Maximum size of a request about records and of its answer, bytes. */
const MAX_RECORD_MESSAGE_BYTES: number = 256 * 1024;
/** The same for requests about a connection to a third node, bytes. They have addresses, keys and a signature. */
const MAX_SIGNAL_MESSAGE_BYTES: number = 4 * 1024;
/** Maximum size of requests and answers of each kind, bytes. */
export const MAX_NODE_MESSAGE_BYTES: Readonly<Record<NodeRequestKind, number>> = {
  record: MAX_RECORD_MESSAGE_BYTES,
  signal: MAX_SIGNAL_MESSAGE_BYTES,
};
/** Default timeout of a request with its answer, milliseconds. */
export const REQUEST_TIMEOUT_MS = 10_000;
/** Timeout for answering a request and sending the answer, milliseconds. */
export const ANSWER_TIMEOUT_MS = 10_000;
/** Concurrent requests of one kind from one node. */
export const MAX_REQUESTS_PER_NODE = 16;
/** Concurrent requests of one kind from all nodes. */
export const MAX_REQUESTS = 128;
/** Concurrent requests of one kind from strangers at one IPv4 address or IPv6 /64. */
export const MAX_REQUESTS_PER_SOURCE = 32;
/** The same for strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_REQUESTS_PER_NETWORK = 64;
/** Concurrent requests of one kind that are reserved for known nodes. */
export const RESERVED_REQUESTS = 32;

/** The kind of stream for each kind of request. */
const STREAM_KIND: Readonly<Record<NodeRequestKind, Kind>> = { record: KIND.nodeRequest, signal: KIND.signal };

/** The handler of one kind, and its current requests. */
class Desk {
  readonly active = new Quota({
    perNode: MAX_REQUESTS_PER_NODE,
    perSource: MAX_REQUESTS_PER_SOURCE,
    perNetwork: MAX_REQUESTS_PER_NETWORK,
    total: MAX_REQUESTS,
    reserved: RESERVED_REQUESTS,
  });
  readonly maxBytes: number;
  handler: NodeRequestHandler | null = null;

  constructor(kind: NodeRequestKind) {
    this.maxBytes = MAX_NODE_MESSAGE_BYTES[kind];
  }

  /** @throws SvcError `too_large` */
  checkSize(message: Uint8Array): void {
    if (message.length > this.maxBytes)
      throw new SvcError('too_large', { details: { limit: this.maxBytes, size: message.length } });
  }
}

interface NodeRequestsDependencies {
  readonly pool: PeerTable;
  readonly clock: Clock;
}

export class PooledNodeRequests implements NodeRequests {
  readonly #pool: PeerTable;
  readonly #clock: Clock;
  readonly #desks: Readonly<Record<NodeRequestKind, Desk>> = { record: new Desk('record'), signal: new Desk('signal') };

  /** Handles the streams of requests. */
  constructor(dependencies: NodeRequestsDependencies) {
    this.#pool = dependencies.pool;
    this.#clock = dependencies.clock;
    for (const kind of NODE_REQUEST_KINDS)
      this.#pool.handle(STREAM_KIND[kind], (stream, session, signal) =>
        this.#answer(this.#desks[kind], stream, session, signal),
      );
  }

  onRequest(kind: NodeRequestKind, handler: NodeRequestHandler): void {
    const desk = this.#desks[kind];
    if (desk.handler !== null) throw new Error(`node requests of kind ${kind} are already answered`);
    desk.handler = handler;
  }

  async request(
    kind: NodeRequestKind,
    node: NodeAt,
    body: Uint8Array,
    options: RequestOptions = {},
  ): Promise<Uint8Array> {
    const { maxBytes } = this.#desks[kind];
    this.#desks[kind].checkSize(body);
    using limit = awakeTimeout(this.#clock, options.timeoutMs ?? REQUEST_TIMEOUT_MS, options.signal);
    const place = { nodeKey: node.nodeKey, addresses: [node.address], ...UNHELPED };
    const dialed = options.prefersOwnDial === true ? this.#pool.dialed(node.nodeKey) : null;
    const pooled = dialed ?? this.#pool.current(node.nodeKey);
    const session = pooled ?? (await this.#pool.connect(place, limit.signal));
    const stream = await openStreamWithin(session, limit.signal).catch(async (error: unknown) => {
      // Nothing was sent yet, so a dead connection is replaced silently.
      if (pooled === null || limit.signal.aborted) throw error;
      return await openStreamWithin(await this.#pool.connect(place, limit.signal, { insteadOf: pooled }), limit.signal);
    });
    const { connection } = stream;
    const received = connection.stats().bytesReceived;
    try {
      stream.end(Buffer.concat([Uint8Array.of(STREAM_KIND[kind]), u32(body.length), body]));
      const [status = STATUS.failed] = await readExactly(stream, 1, limit.signal);
      if (status !== STATUS.ok) throw new Refusal(status);
      return await readMessage(stream, maxBytes, limit.signal);
    } catch (error) {
      // Without any packet, later requests must not use this connection.
      const late = error instanceof SvcError && error.code === 'timeout';
      if (late && connection.stats().bytesReceived === received) this.#pool.reset(node.nodeKey);
      throw error;
    } finally {
      stream.destroy();
    }
  }

  async #answer(desk: Desk, stream: Stream, session: NodeSession, signal: AbortSignal): Promise<void> {
    // protocol-links.md, steps 15 and 16
    const { handler } = desk;
    if (handler === null) throw new Refusal(STATUS.unknownPurpose);
    const from = { nodeKey: session.there.nodeKey, path: session.connection.path };
    const share = desk.active.take(sessionHolder(session, this.#pool.known));
    if (share === null) throw new SvcError('rate_limited');
    try {
      const body = await readMessage(stream, desk.maxBytes, signal);
      using limit = awakeTimeout(this.#clock, ANSWER_TIMEOUT_MS);
      const answer = await abortable(Promise.race([handler(body, from), closed(stream)]), limit.signal);
      desk.checkSize(answer);
      await send(stream, Buffer.concat([Uint8Array.of(STATUS.ok), u32(answer.length), answer]), limit.signal);
    } finally {
      share.release();
    }
  }
}

/** Reads a message: four bytes of length, then its content. Missing bytes use no memory. */
async function readMessage(stream: Stream, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const length = new BinaryReader(await readExactly(stream, LENGTH_BYTES, signal)).u32();
  if (length > maxBytes) throw new ProtocolBreach(`A node message of ${length} bytes is too long.`);
  return await readExactly(stream, length, signal);
}

/** Rejects when a stream closes, because the caller has given up. */
function closed(stream: Stream): Promise<never> {
  return new Promise((_, reject) => {
    if (stream.destroyed) reject(new SvcError('connect_failed'));
    else stream.once('close', () => reject(new SvcError('connect_failed')));
  });
}

/** Writes the last bytes of a stream and waits until they are sent. */
function send(stream: Stream, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const sent = new Promise<void>((resolve, reject) => {
    stream.once('finish', resolve);
    stream.once('close', () => reject(new SvcError('connect_failed')));
    stream.end(bytes);
  });
  stream.resume();
  return abortable(sent, signal);
}
