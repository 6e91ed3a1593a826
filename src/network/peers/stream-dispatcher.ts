/**
 * Receives the streams that other nodes open. It reads the kind of each stream and calls the handler, with limits on
 * pending streams, their rate, and the time for a header.
 */

import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { Quota, type QuotaHolder } from '../../foundation/quota.ts';
import { type Rate, RateLimiter, RateQuota } from '../../foundation/rate-limit.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { KnownNodes } from '../known-nodes.ts';
import type { Stream } from '../transport/types.ts';
import { type NodeSession, sessionHolder } from './session.ts';
import { endWith, type Kind, ProtocolBreach, readExactly, STATUS, statusOf } from './wire.ts';

/** Timeout for the complete header of a stream, milliseconds. */
export const HEADER_TIMEOUT_MS = 10_000;
/** Pending streams of one node: before the end of their header or permission. */
export const MAX_WAITING_PER_NODE = 256;
/** The same for all nodes. */
export const MAX_WAITING = 4096;
/** The same for strangers at one IPv4 address or IPv6 /64. */
export const MAX_WAITING_PER_SOURCE = 1024;
/** The same for strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_WAITING_PER_NETWORK = 1536;
/** Pending streams that are reserved for known nodes. */
export const RESERVED_WAITING = 1024;
/** New streams of one node. */
export const STREAM_RATE: Rate = { perSecond: 2000, burst: 4000 };
/** New streams of all strangers at one IPv4 address or IPv6 /64. */
export const STREAM_RATE_PER_SOURCE: Rate = { perSecond: 3000, burst: 6000 };
/** New streams of all strangers in one IPv4 /24 or IPv6 /48. */
export const STREAM_RATE_PER_NETWORK: Rate = { perSecond: 4000, burst: 8000 };
/** New streams of all strangers. */
export const STREAM_RATE_OF_STRANGERS: Rate = { perSecond: 8000, burst: 16_000 };
/** Malformed headers and proofs of a node until its connection closes, as a burst and per second. */
export const OFFENCES_BURST = 16;
const OFFENCES_PER_S = 0.1;
/** Rate-limited streams of a node until its connection closes, as a burst and per second. */
export const STREAM_RATE_BURST = 4000;
const STREAM_RATE_PER_S = 100;
/** Maximum number of nodes with stored rates. */
export const MAX_LIMITED_NODES = 4096;

/** With these errors no status can be sent. */
const GONE: ReadonlySet<ErrorCode> = new Set(['connect_failed', 'timeout', 'cancelled']);

/**
 * Handles a stream of one kind after its first byte. The signal limits the time for a header. The stream is pending
 * until the handler settles. A rejection refuses the stream with the status of its error. A `ProtocolBreach` counts
 * against the node.
 */
export type StreamHandler = (stream: Stream, session: NodeSession, signal: AbortSignal) => Promise<void>;

interface GateDependencies extends NodeParts {
  readonly known: KnownNodes;
}

export class StreamDispatcher {
  readonly #deps: GateDependencies;
  readonly #handlers = new Map<number, StreamHandler>();
  readonly #opens: RateQuota;
  readonly #offences: RateLimiter;
  readonly #haste: RateLimiter;
  readonly #waiting = new Quota({
    perNode: MAX_WAITING_PER_NODE,
    perSource: MAX_WAITING_PER_SOURCE,
    perNetwork: MAX_WAITING_PER_NETWORK,
    total: MAX_WAITING,
    reserved: RESERVED_WAITING,
  });
  readonly #lingering = new RefusedStreams();

  constructor(dependencies: GateDependencies) {
    this.#deps = dependencies;
    const perNode = (perSecond: number, burst: number): RateLimiter =>
      new RateLimiter({ perSecond, burst, maxKeys: MAX_LIMITED_NODES }, dependencies);
    this.#opens = new RateQuota(
      {
        perKey: STREAM_RATE,
        perSource: STREAM_RATE_PER_SOURCE,
        perNetwork: STREAM_RATE_PER_NETWORK,
        strangers: STREAM_RATE_OF_STRANGERS,
      },
      dependencies,
    );
    this.#offences = perNode(OFFENCES_PER_S, OFFENCES_BURST);
    this.#haste = perNode(STREAM_RATE_PER_S, STREAM_RATE_BURST);
  }

  /** Sets the handler for streams of a kind. Each kind has one handler. */
  handle(kind: Kind, handler: StreamHandler): void {
    if (this.#handlers.has(kind)) throw new Error(`streams of kind ${kind} are already taken`);
    this.#handlers.set(kind, handler);
  }

  /** Number of pending streams. */
  get waiting(): number {
    return this.#waiting.used;
  }

  /** Number of streams that remain open after their last use. */
  get lingering(): number {
    return this.#lingering.size;
  }

  /** Accepts or refuses a stream. */
  admit(stream: Stream, session: NodeSession): void {
    session.adopt(stream);
    const holder = sessionHolder(session, this.#deps.known);
    const share = this.#waiting.take(holder, { onEvict: () => stream.destroy() });
    if (share === null) return this.#tooFast(stream, session, holder);
    const served = (): void => {
      share.release();
      this.#noteRefusedStreams(stream, holder);
    };
    if (this.#opens.take(holder)) return detach(this.#serve(stream, session).finally(served));
    share.release();
    this.#tooFast(stream, session, holder);
  }

  /** Counts a stream that this node ended, until the other side ends it. */
  #noteRefusedStreams(stream: Stream, holder: QuotaHolder): void {
    if (stream.writableEnded && !stream.destroyed) this.#lingering.count(stream, holder);
  }

  /** Counts a stream after its last use, until the other side ends it or it times out. */
  lingers(stream: Stream, session: NodeSession): void {
    this.#lingering.count(stream, sessionHolder(session, this.#deps.known));
  }

  /** Counts a breach of the protocol. Closes the connection after too many. */
  #offence(session: NodeSession, reason: string): void {
    if (this.#offences.take(session.nodeId)) return;
    this.#deps.log.warn({ node: session.nodeId, reason }, 'cut off a node that keeps breaking the protocol');
    session.close();
  }

  #tooFast(stream: Stream, session: NodeSession, holder: QuotaHolder): void {
    if (this.#haste.take(session.nodeId)) {
      endWith(stream, STATUS.rateLimited, this.#deps.clock);
      return this.#noteRefusedStreams(stream, holder);
    }
    this.#deps.log.warn({ node: session.nodeId }, 'cut off a node that opens streams without end');
    stream.destroy();
    session.close();
  }

  async #serve(stream: Stream, session: NodeSession): Promise<void> {
    using limit = awakeTimeout(this.#deps.clock, HEADER_TIMEOUT_MS);
    try {
      const [kind = 0] = await readExactly(stream, 1, limit.signal);
      const handler = this.#handlers.get(kind);
      if (handler === undefined) endWith(stream, STATUS.unknownPurpose, this.#deps.clock);
      else await handler(stream, session, limit.signal);
    } catch (error) {
      this.#failed(stream, session, error);
    }
  }

  #failed(stream: Stream, session: NodeSession, error: unknown): void {
    if (error instanceof ProtocolBreach) this.#offence(session, error.message);
    if (!(error instanceof SvcError)) this.#deps.log.error({ node: session.nodeId, error }, 'a stream handler failed');
    const gone = error instanceof SvcError && GONE.has(error.code);
    if (gone) stream.destroy();
    else endWith(stream, statusOf(error), this.#deps.clock);
  }
}

/** Streams of one node after their last use. */
export const MAX_LINGERING_PER_NODE = 512;
/** The same for strangers at one IPv4 address or IPv6 /64. */
export const MAX_LINGERING_PER_SOURCE = 768;
/** The same for strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_LINGERING_PER_NETWORK = 1024;
/** The same for all nodes. */
export const MAX_LINGERING = 2048;
/** Of these, streams of known nodes only. */
export const RESERVED_LINGERING = 512;

/** Timeout for the other side to end its half of a stream, milliseconds. */
const DRAIN_TIMEOUT_MS = 5000;

/** A stream that counts itself after its last use. Links that another node opened do. */
interface Lingering extends Duplex {
  lingers?(): void;
}

/** Releases a link after its own half ended. Discards the rest, and destroys the link after a timeout. */
export function drainAndDestroy(link: Lingering, clock: Clock): void {
  if (link.destroyed) return;
  const timer = clock.after(DRAIN_TIMEOUT_MS, () => link.destroy());
  link.once('close', () => timer.cancel());
  link.resume();
  link.lingers?.();
}

export class RefusedStreams {
  readonly #quota = new Quota(
    {
      perNode: MAX_LINGERING_PER_NODE,
      perSource: MAX_LINGERING_PER_SOURCE,
      perNetwork: MAX_LINGERING_PER_NETWORK,
      total: MAX_LINGERING,
      reserved: RESERVED_LINGERING,
    },
    { ownYields: true },
  );
  readonly #counted = new WeakSet<Duplex>();

  get size(): number {
    return this.#quota.used;
  }

  /** Counts a stream once, until it closes. Destroys a stream without room. */
  count(stream: Duplex, holder: QuotaHolder): void {
    if (stream.destroyed || this.#counted.has(stream)) return;
    this.#counted.add(stream);
    const share = this.#quota.take(holder, { onEvict: () => stream.destroy() });
    if (share === null) stream.destroy();
    else stream.once('close', () => share.release());
  }
}
