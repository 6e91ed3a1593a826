/**
 * The traced requests of this node, in memory. Outgoing calls, calls of named callers and calls of strangers each have
 * their own buffer, so that strangers push out only strangers. Of the outgoing calls that are not sampled, the last one
 * that failed is kept.
 */
import type { Clock } from '../clock.ts';
import { SvcError } from '../errors.ts';
import type { Aid } from '../identity/aid.ts';
import { formatTraceparent, MAX_PERCENT, type TraceContext } from './trace-context.ts';
import { type Recorder, type RequestFacts, type RequestOrigin, TracedRequest } from './traced-request.ts';

/** Requests that each buffer keeps. */
export const MAX_TRACED_REQUESTS = 1_000;
/** Requests of one trace that each buffer keeps. */
export const MAX_REQUESTS_PER_TRACE = 100;
/** Size of the pool of random bytes. */
const RANDOM_BYTES = 2_040;
const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
const DRAW_BYTES = 4;
/** If the precise time is this far from the clock, the clock was set or the machine slept. Milliseconds. */
const MAX_TIME_ERROR_MS = 100;
/** Number of values of the bytes that decide whether a trace is sampled. */
const DRAWS: number = 2 ** 32;
/** Maximum number of agents whose next call is sampled. The oldest one is evicted first. */
const MAX_WANTED = 64;

/** The kind of caller. `own`: an agent of this node. */
export const TRACE_HOLDERS = ['own', 'named', 'stranger'] as const;
export type TraceHolder = (typeof TRACE_HOLDERS)[number];

/** Unix milliseconds with fractions, for short durations. */
function preciseTime(clock: Clock): () => number {
  let origin = performance.timeOrigin;
  return () => {
    const wall = clock.now();
    const precise = origin + performance.now();
    if (Math.abs(precise - wall) <= MAX_TIME_ERROR_MS) return precise;
    origin += wall - precise;
    return wall;
  };
}

/** A request that continues its trace. */
export interface Continued {
  /** For the next hop. If the request is traced, its parent is the span of the request. Null outside of traces. */
  readonly traceparent: string | null;
  /** Null if it is not sampled. */
  readonly request: TracedRequest | null;
}

export interface TracesOptions {
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  /** If false, trace headers pass unchanged. Default: true. */
  readonly isOn?: boolean;
  /** Share of the traces begun here that are sampled, 0 to 100. */
  readonly percent: number;
}

/** The newest requests of some callers. */
class RequestBuffer implements Recorder {
  readonly now: () => number;
  readonly ended: (request: TracedRequest) => void;
  readonly #requests: TracedRequest[] = [];
  #oldest = 0;
  /** Numbers of requests, by trace. A trace without a parent begins here and has one request in this buffer. */
  readonly #counts = new Map<string, { count: number }>();

  constructor(now: () => number, ended: (request: TracedRequest) => void) {
    this.now = now;
    this.ended = ended;
  }

  /** Replaces the oldest if there is no room. Ignores the request if its trace has enough. */
  add(request: TracedRequest): void {
    if (request.parentId !== null && !this.#count(request.traceId)) return;
    const replaced = this.#requests[this.#oldest];
    this.#requests[this.#oldest] = request;
    this.#oldest = (this.#oldest + 1) % MAX_TRACED_REQUESTS;
    if (replaced !== undefined && replaced.parentId !== null) this.#uncount(replaced.traceId);
  }

  all(): readonly TracedRequest[] {
    return this.#requests;
  }

  #count(traceId: string): boolean {
    const known = this.#counts.get(traceId);
    if (known === undefined) this.#counts.set(traceId, { count: 1 });
    else if (known.count < MAX_REQUESTS_PER_TRACE) known.count++;
    else return false;
    return true;
  }

  #uncount(traceId: string): void {
    const known = this.#counts.get(traceId);
    if (known !== undefined && --known.count === 0) this.#counts.delete(traceId);
  }
}

const UNSAMPLED: Continued = { traceparent: null, request: null };

export class Traces {
  /** If false, trace headers pass unchanged. */
  readonly isOn: boolean;
  /** Share of the traces begun here that are sampled, 0 to 100. */
  readonly percent: number;
  readonly #randomBytes: TracesOptions['randomBytes'];
  readonly #wanted = new Set<Aid>();
  #failed: TracedRequest | null = null;
  /** Unix milliseconds with fractions. */
  readonly now: () => number;
  readonly #buffers: Readonly<Record<TraceHolder, RequestBuffer>>;
  #random: Buffer = Buffer.alloc(0);
  #used = 0;
  /** Receives each request at its end. */
  onEnd: ((request: TracedRequest, holder: TraceHolder) => void) | null = null;

  constructor(options: TracesOptions) {
    this.isOn = options.isOn !== false;
    this.percent = options.percent;
    this.#randomBytes = options.randomBytes;
    this.now = preciseTime(options.clock);
    const buffer = (holder: TraceHolder) => new RequestBuffer(this.now, (request) => this.onEnd?.(request, holder));
    this.#buffers = { own: buffer('own'), named: buffer('named'), stranger: buffer('stranger') };
  }

  /**
   * Continues the trace of a request, or begins one.
   * @param parent from the valid `traceparent` of the request, if it has one
   * @param holderOf called only for sampled requests
   */
  continue(parent: TraceContext | null, origin: RequestOrigin, holderOf: () => TraceHolder): Continued {
    if (parent?.isSampled === false) return { traceparent: formatTraceparent(parent), request: null };
    if (parent === null && !this.begins(origin.called)) return UNSAMPLED;
    return this.start(parent, origin, holderOf);
  }

  /** Decides whether a call without a trace begins one that is sampled. */
  begins(called: Aid): boolean {
    if (this.#wanted.delete(called) || this.percent === MAX_PERCENT) return true;
    const draw = this.#pool(DRAW_BYTES).readUInt32LE(this.#used - DRAW_BYTES);
    return (draw / DRAWS) * MAX_PERCENT < this.percent;
  }

  /** Samples a request. Parameters as in `continue`. */
  start(parent: TraceContext | null, origin: RequestOrigin, holderOf: () => TraceHolder): Continued {
    const traceId = parent?.traceId ?? this.#id(TRACE_ID_BYTES);
    const spanId = this.#id(SPAN_ID_BYTES);
    const buffer = this.#buffers[holderOf()];
    const request = new TracedRequest({ traceId, spanId, parentId: parent?.parentId ?? null }, origin, buffer);
    buffer.add(request);
    return { traceparent: formatTraceparent({ traceId, parentId: spanId, isSampled: true }), request };
  }

  /** Samples the next call to an agent that begins a trace here. */
  sampleNext(called: Aid): void {
    this.#wanted.delete(called);
    this.#wanted.add(called);
    const [oldest] = this.#wanted;
    if (this.#wanted.size > MAX_WANTED && oldest !== undefined) this.#wanted.delete(oldest);
  }

  /** Keeps an outgoing call that was not sampled and failed, without its steps. @param begunAt from `now` */
  failed(origin: RequestOrigin, begunAt: number, error: unknown): void {
    if (!this.isOn || (error instanceof SvcError && error.code === 'cancelled')) return;
    const position = { traceId: this.#id(TRACE_ID_BYTES), spanId: this.#id(SPAN_ID_BYTES), parentId: null };
    let at = begunAt;
    this.#failed = new TracedRequest(position, origin, { now: () => at, ended: () => {} });
    at = this.now();
    this.#failed.finish(error);
  }

  /** All kept requests, in no order. */
  all(): readonly RequestFacts[] {
    const failed = this.#failed === null ? [] : [this.#failed];
    return [...Object.values(this.#buffers).flatMap((buffer) => buffer.all()), ...failed];
  }

  /** The kept requests of a trace, in no order. */
  of(traceId: string): readonly RequestFacts[] {
    return this.all().filter((request) => request.traceId === traceId);
  }

  /** Takes bytes from the pool: the last ones before `#used`. */
  #pool(bytes: number): Buffer {
    if (this.#used + bytes > this.#random.length) {
      this.#random = Buffer.from(this.#randomBytes(RANDOM_BYTES));
      this.#used = 0;
    }
    this.#used += bytes;
    return this.#random;
  }

  /** Random hex digits, not all zero. */
  #id(bytes: number): string {
    const id = this.#pool(bytes).toString('hex', this.#used - bytes, this.#used);
    return /[1-9a-f]/.test(id) ? id : this.#id(bytes);
  }
}
