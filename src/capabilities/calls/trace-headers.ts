/** The trace headers of a request. Invalid ones are dropped, as W3C Trace Context requires. */
import {
  formatTraceparent,
  isTracestate,
  parseTraceparent,
  type TraceContext,
  type TraceHeaders,
} from '../../foundation/traces/trace-context.ts';
import type { RequestOrigin, TracedRequest } from '../../foundation/traces/traced-request.ts';
import type { TraceHolder, Traces } from '../../foundation/traces/traces.ts';
import { filterHeaders, headerOf, type RawHeaders } from './headers.ts';

const TRACEPARENT = 'traceparent';
const TRACESTATE = 'tracestate';

/** All values of a header. Most headers are skipped by their length. */
function valuesOf(raw: RawHeaders, wanted: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2)
    if (raw[i]?.length === wanted.length && raw[i]?.toLowerCase() === wanted) values.push(raw[i + 1] ?? '');
  return values;
}

/** The trace that a request continues. Null without a valid `traceparent`, or with several. */
function traceOf(values: readonly string[]): TraceContext | null {
  const [value, ...others] = values;
  return value === undefined || others.length > 0 ? null : parseTraceparent(value.trim());
}

/** The headers for the next hop. */
function withTrace(raw: RawHeaders, traceparent: string, isContinued: boolean): string[] {
  const states = valuesOf(raw, TRACESTATE);
  // Without a valid `traceparent`, `tracestate` belongs to no trace.
  const keepsState = isContinued && states.length > 0 && isTracestate(states.join(','));
  const isReplaced = (name: string): boolean => name === TRACEPARENT || (name === TRACESTATE && !keepsState);
  const has = states.length > 0 || valuesOf(raw, TRACEPARENT).length > 0;
  return [...(has ? filterHeaders(raw, (name) => !isReplaced(name)) : raw), TRACEPARENT, traceparent];
}

/** One hop of a request: its trace, and the trace headers for the next hop. */
export interface TracedHop {
  /** Null if the trace is not sampled. */
  readonly request: TracedRequest | null;
  /**
   * The headers for the next hop.
   * @param spanId the span that sends them. Default: that of the request
   */
  readonly headers: (raw: RawHeaders, spanId?: string) => RawHeaders;
}

/** The headers pass as they are. */
export const UNTRACED: TracedHop = { request: null, headers: (raw) => raw };
/** Invalid trace headers are dropped. */
const DROPPED: TracedHop = {
  request: null,
  headers: (raw) => filterHeaders(raw, (name) => name !== TRACEPARENT && name !== TRACESTATE),
};

/** Continues the trace of a request. If its headers carry none, one may begin. */
export function traceHop(
  traces: Traces,
  raw: RawHeaders,
  origin: RequestOrigin,
  holderOf: () => TraceHolder,
): TracedHop {
  if (!traces.isOn) return UNTRACED;
  const isUntraced = headerOf(raw, TRACEPARENT) === undefined && headerOf(raw, TRACESTATE) === undefined;
  if (isUntraced && !traces.begins(origin.called)) return UNTRACED;
  const values = valuesOf(raw, TRACEPARENT);
  const parent = traceOf(values);
  const { traceparent, request } = traces[isUntraced ? 'start' : 'continue'](parent, origin, holderOf);
  const hasState = valuesOf(raw, TRACESTATE).length > 0;
  if (traceparent === null) return values.length > 0 || hasState ? DROPPED : UNTRACED;
  // Not sampled, and the headers already contain what is passed on.
  if (values[0] === traceparent && !hasState) return UNTRACED;
  const headers: TracedHop['headers'] = (sent, spanId) => {
    const header =
      request === null || spanId === undefined
        ? traceparent
        : formatTraceparent({ traceId: request.traceId, parentId: spanId, isSampled: true });
    return withTrace(sent, header, parent !== null);
  };
  return { request, headers };
}

/** The headers of a call. The trace headers of the request to the API are added unless the call has its own. */
export function withApiTrace(raw: readonly string[], trace: TraceHeaders | undefined): readonly string[] {
  if (trace === undefined || headerOf(raw, TRACEPARENT) !== undefined) return raw;
  const state = trace.tracestate === undefined ? [] : [TRACESTATE, trace.tracestate];
  return [...raw, TRACEPARENT, trace.traceparent, ...state];
}
