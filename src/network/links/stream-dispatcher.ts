/**
 * The door for streams that other nodes open: reads what kind each is and hands it on, with limits
 * on how many may wait, how fast they may come, and how long a header may take.
 */

import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import { Quota, type QuotaHolder } from '../../foundation/quota.ts';
import { type Rate, RateLimiter, RateQuota } from '../../foundation/rate-limit.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { KnownNodes } from '../known-nodes.ts';
import type { NodeSession } from '../peers/session.ts';
import type { Stream } from '../transport/types.ts';
import { sessionHolder } from './holder.ts';
import { endWith, type Kind, ProtocolBreach, readExactly, STATUS, statusOf } from './wire.ts';

/** Time for the header of a stream to be whole, milliseconds. */
export const HEADER_TIMEOUT_MS = 10_000;
/** Streams of one node whose header or permission is still awaited. */
export const MAX_WAITING_PER_NODE = 256;
/** The same of all nodes together. */
export const MAX_WAITING = 4096;
/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const MAX_WAITING_PER_SOURCE = 1024;
/** The same of those in one IPv4 /24 or IPv6 /48. */
export const MAX_WAITING_PER_NETWORK = 1536;
/** Streams that only known nodes may have waiting. */
export const RESERVED_WAITING = 1024;
/** Streams that one node may open. */
export const STREAM_RATE: Rate = { perSecond: 2000, burst: 4000 };
/** Streams that the strangers on one IPv4 address or IPv6 /64 may open together. */
export const STREAM_RATE_PER_SOURCE: Rate = { perSecond: 3000, burst: 6000 };
/** Streams that those in one IPv4 /24 or IPv6 /48 may open together. */
export const STREAM_RATE_PER_NETWORK: Rate = { perSecond: 4000, burst: 8000 };
/** Streams that all strangers may open together. */
export const STREAM_RATE_OF_STRANGERS: Rate = { perSecond: 8000, burst: 16_000 };
/** Broken headers and proofs that a node may send before it is cut off, and per second after. */
export const OFFENCES_BURST = 16;
const OFFENCES_PER_S = 0.1;
/** Refusals for haste after which a node that does not slow down is cut off, and per second. */
export const STREAM_RATE_BURST = 4000;
const STREAM_RATE_PER_S = 100;
/** Nodes whose rates are remembered. */
export const MAX_LIMITED_NODES = 4096;

/** A stream that failed so has nobody left to tell, or never told us what it wants. */
const GONE: ReadonlySet<ErrorCode> = new Set(['connect_failed', 'timeout', 'cancelled']);

/**
 * Takes a stream of one kind, its first byte already read. It waits no longer for a header than
 * `signal` lets it; once it has settled, the stream no longer counts as waiting. A rejection
 * refuses the stream with the status of its error; a `ProtocolBreach` is held against the node.
 */
export type StreamHandler = (stream: Stream, session: NodeSession, signal: AbortSignal) => Promise<void>;

interface GateDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly known: Pick<KnownNodes, 'has'>;
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

  /** Names who takes the streams of a kind; once each. */
  handle(kind: Kind, handler: StreamHandler): void {
    if (this.#handlers.has(kind)) throw new Error(`streams of kind ${kind} are already taken`);
    this.#handlers.set(kind, handler);
  }

  /** How many streams wait for their header or for permission. */
  get waiting(): number {
    return this.#waiting.used;
  }

  /** How many streams linger after our last word. */
  get lingering(): number {
    return this.#lingering.size;
  }

  /** Lets a stream in or refuses it. */
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

  /** A stream on which we have said all waits for the other side's end. */
  #noteRefusedStreams(stream: Stream, holder: QuotaHolder): void {
    if (stream.writableEnded && !stream.destroyed) this.#lingering.count(stream, holder);
  }

  /** Counts a stream whose purpose is served, until the other side has ended it or its time is over. */
  lingers(stream: Stream, session: NodeSession): void {
    this.#lingering.count(stream, sessionHolder(session, this.#deps.known));
  }

  /** Counts a breach of the protocol; cuts the node off after too many. */
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

/** Lingering streams of one node. */
export const MAX_LINGERING_PER_NODE = 512;
/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const MAX_LINGERING_PER_SOURCE = 768;
/** The same of those in one IPv4 /24 or IPv6 /48. */
export const MAX_LINGERING_PER_NETWORK = 1024;
/** The same of all nodes together. */
export const MAX_LINGERING = 2048;
/** Of these, the ones that only known nodes may have. */
export const RESERVED_LINGERING = 512;

/** Time for the other side to end its half of a stream that is done with, milliseconds. */
const DRAIN_TIMEOUT_MS = 5000;

/** A stream that counts itself while it lingers, as links do that another node opened. */
interface Lingering extends Duplex {
  lingers?(): void;
}

/** Lets go of a link whose own half has ended: discards the rest of it, and destroys it if the other side does not end it in time. */
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

  /** Counts a stream once, until it closes; one without room is cut off at once. */
  count(stream: Duplex, holder: QuotaHolder): void {
    if (stream.destroyed || this.#counted.has(stream)) return;
    this.#counted.add(stream);
    const share = this.#quota.take(holder, { onEvict: () => stream.destroy() });
    if (share === null) stream.destroy();
    else stream.once('close', () => share.release());
  }
}
