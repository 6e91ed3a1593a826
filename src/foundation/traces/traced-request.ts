/** One traced request on this node, as caller or as called side: when its steps began and ended, and their errors. */
import type { LinkPathKind } from '../domain/tunnels.ts';
import { type ErrorCode, SvcError } from '../errors.ts';
import type { Aid } from '../identity/aid.ts';

/**
 * The steps of a request. At the caller: the wait for a free slot, the lookup of the agent, the connection to its node,
 * its permission, the question to its owner, the wait for the response, and the body of the response. At the called
 * node: the check of the request, and the service.
 */
export const STEPS = ['queue', 'resolve', 'dial', 'link', 'ask', 'wait', 'body', 'access', 'service'] as const;
export type StepName = (typeof STEPS)[number];

/** Steps of one request that are kept. Repeated attempts add steps. */
export const MAX_STEPS = 16;

/** Times are Unix milliseconds with fractions. */
export interface Step {
  readonly name: StepName;
  readonly start: number;
  /** Null while it runs. */
  readonly end: number | null;
  readonly error: ErrorCode | null;
}

/** Ends a step, with the error that ended it, if any. */
export type EndStep = (error?: unknown) => void;

/** The part of a traced request that the opening of a link uses. */
export interface OpeningTrace {
  path: LinkPathKind | null;
  step(name: StepName): EndStep;
}

/** The record of a request. */
export interface RequestFacts {
  readonly traceId: string;
  readonly spanId: string;
  /** The span that sent the request; null at the start of a trace. */
  readonly parentId: string | null;
  readonly side: 'caller' | 'called';
  readonly caller: Aid;
  readonly called: Aid;
  readonly method: string;
  readonly start: number;
  /** Null while it runs. */
  readonly end: number | null;
  readonly status: number | null;
  readonly error: ErrorCode | null;
  readonly path: LinkPathKind | null;
  readonly steps: readonly Step[];
}

/** The two ends of a request. */
export type RequestOrigin = Pick<RequestFacts, 'side' | 'caller' | 'called' | 'method'>;

type RunningStep = { -readonly [K in keyof Step]: Step[K] };

/** Every call creates one, so it does little work. */
export class TracedRequest implements RequestFacts, OpeningTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | null;
  readonly side: RequestFacts['side'];
  readonly caller: Aid;
  readonly called: Aid;
  readonly method: string;
  readonly start: number;
  end: number | null = null;
  status: number | null = null;
  error: ErrorCode | null = null;
  path: LinkPathKind | null = null;
  readonly steps: RunningStep[] = [];
  readonly #recorder: Recorder;

  constructor(position: Position, { side, caller, called, method }: RequestOrigin, recorder: Recorder) {
    this.traceId = position.traceId;
    this.spanId = position.spanId;
    this.parentId = position.parentId;
    this.side = side;
    this.caller = caller;
    this.called = called;
    this.method = method;
    this.#recorder = recorder;
    this.start = recorder.now();
  }

  /** Begins a step. Steps over the limit are not kept. */
  step(name: StepName): EndStep {
    const step = this.#begin(name, this.#recorder.now());
    return (error) => {
      step.end ??= this.#recorder.now();
      if (error !== undefined) step.error = errorCode(error);
    };
  }

  /** Ends the running steps and begins another one. */
  next(name: StepName): void {
    const now = this.#recorder.now();
    this.#endSteps(now, null);
    this.#begin(name, now);
  }

  /** The span ID of the newest step. */
  get stepSpanId(): string {
    return stepSpanId(this.spanId, this.steps.length - 1);
  }

  /** Ends the request and its running steps. Only the first call has an effect. */
  finish(error?: unknown): void {
    if (this.end !== null) return;
    this.end = this.#recorder.now();
    if (error !== undefined) this.error = errorCode(error);
    this.#endSteps(this.end, this.error);
    this.#recorder.ended(this);
  }

  #begin(name: StepName, start: number): RunningStep {
    const step: RunningStep = { name, start, end: null, error: null };
    if (this.end === null && this.steps.length < MAX_STEPS) this.steps.push(step);
    return step;
  }

  #endSteps(at: number, error: ErrorCode | null): void {
    for (const step of this.steps) {
      if (step.end !== null) continue;
      step.end = at;
      step.error = error;
    }
  }
}

/** The position of a request in its trace. */
type Position = Pick<RequestFacts, 'traceId' | 'spanId' | 'parentId'>;

/** Shared by many requests. */
export interface Recorder {
  /** Unix milliseconds with fractions. */
  now(): number;
  ended(request: TracedRequest): void;
}

function errorCode(error: unknown): ErrorCode {
  return error instanceof SvcError ? error.code : 'internal';
}

/** Runs work as a step. */
export async function asStep<T>(trace: OpeningTrace | undefined, name: StepName, work: () => Promise<T>): Promise<T> {
  if (trace === undefined) return await work();
  const end = trace.step(name);
  try {
    const result = await work();
    end();
    return result;
  } catch (error) {
    end(error);
    throw error;
  }
}

/** Hex digits of the second half of a span ID. */
const HALF = 8;

/** The span ID of a step: it follows from the span ID of its request, so that steps need no random bytes. */
function stepSpanId(spanId: string, index: number): string {
  const low = (Number.parseInt(spanId.slice(HALF), 16) + index + 1) >>> 0;
  return spanId.slice(0, HALF) + low.toString(16).padStart(HALF, '0');
}

// Spans, with names and attributes of the semantic conventions of OpenTelemetry if there are any.

export const SPAN_KINDS = ['client', 'server', 'internal'] as const;

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | null;
  readonly name: string;
  readonly kind: (typeof SPAN_KINDS)[number];
  readonly start: number;
  readonly end: number | null;
  readonly isError: boolean;
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** Lowest statuses that count as errors of the caller and of the called side. */
const CALLER_ERROR_STATUS = 400;
const CALLED_ERROR_STATUS = 500;

/** The spans of a request: its own, and one for each step. */
export function spansOf(request: RequestFacts): readonly Span[] {
  const { traceId, spanId, parentId, side, caller, called, method, start, end, status, error, path } = request;
  const isCaller = side === 'caller';
  const isBad = status !== null && status >= (isCaller ? CALLER_ERROR_STATUS : CALLED_ERROR_STATUS);
  const errorType = error ?? (isBad ? String(status) : null);
  const own: Span = {
    ...{ traceId, spanId, parentId, name: method, kind: isCaller ? 'client' : 'server', start, end },
    isError: errorType !== null,
    attributes: {
      'http.request.method': method,
      'client.address': caller,
      'server.address': called,
      ...(status === null ? {} : { 'http.response.status_code': status }),
      ...(errorType === null ? {} : { 'error.type': errorType }),
      ...(path === null ? {} : { 'svcd.path.kind': path }),
    },
  };
  const steps = request.steps.map(
    (step, index): Span => ({
      ...{ traceId, spanId: stepSpanId(spanId, index), parentId: spanId, name: step.name },
      ...{ kind: step.name === 'service' ? 'client' : 'internal', start: step.start, end: step.end },
      isError: step.error !== null,
      attributes: step.error === null ? {} : { 'error.type': step.error },
    }),
  );
  return [own, ...steps];
}
