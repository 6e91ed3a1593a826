/** Operations on the traces of calls. */
import { Type } from 'typebox';
import { MAX_TRACES, TRACE_ID_PATTERN } from '../foundation/traces/trace-context.ts';
import { SPAN_KINDS } from '../foundation/traces/traced-request.ts';
import { declare } from './declare.ts';
import { AidParams, AidText, closed, nullable, oneOf, Timestamp } from './schemas.ts';

/** Default number of traces in one response. */
export const TRACES_DEFAULT = 20;

const TraceId = Type.String({ pattern: TRACE_ID_PATTERN, description: '32 hex digits.' });
const Milliseconds = Type.Number({ minimum: 0, description: 'Milliseconds.' });
const Duration = nullable(Milliseconds);

const Trace = Type.Object(
  {
    trace_id: TraceId,
    started_at: Timestamp,
    duration_ms: Duration,
    caller: AidText,
    called: AidText,
    method: Type.String(),
    status: nullable(Type.Integer({ description: 'HTTP status.' })),
    error: nullable(Type.String({ description: 'Error code.' })),
    requests: Type.Integer({ minimum: 1, description: 'Requests of the trace that this node knows.' }),
  },
  { description: 'A trace with its first request. Durations are null while a request runs.' },
);

const Span = Type.Object({
  span_id: Type.String(),
  parent_id: nullable(Type.String()),
  name: Type.String({
    description:
      'The HTTP method, or a step. At the caller: `queue`, `resolve`, `dial`, `link` (permission), `ask` (the owner), `wait` (for the response), `body`. At the called node: `access`, `service`.',
  }),
  kind: oneOf([...SPAN_KINDS]),
  start_ms: Type.Number({ description: 'After `started_at`.' }),
  duration_ms: Duration,
  attributes: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
    description: 'Semantic conventions of OpenTelemetry, and `svcd.path.kind`.',
  }),
  reported_by: nullable(Type.String({ description: 'The called agent whose node reported it; null for this node.' })),
});

export const traceOperations = declare(
  { tag: 'Diagnostics' },
  {
    traceList: {
      summary: 'Lists the latest traces of calls.',
      route: 'GET /traces',
      query: closed({
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_TRACES, default: TRACES_DEFAULT })),
      }),
      output: Type.Object({
        traces: Type.Array(Trace),
        export: nullable(
          Type.Object({
            sent: Type.Integer({ minimum: 0 }),
            dropped: Type.Integer({ minimum: 0, description: 'Requests that found no room or were rejected.' }),
            failing: Type.Boolean({ description: 'The last attempt failed.' }),
          }),
        ),
      }),
    },
    traceNext: {
      summary: 'Samples the next call to an agent, of this node or another one, that begins a trace here.',
      route: 'POST /traces/next/{aid}',
      params: AidParams,
      output: closed({}),
      errors: ['traces_off'],
    },
    traceGet: {
      summary: 'Shows one trace with the spans that called nodes share.',
      route: 'GET /traces/{trace_id}',
      params: closed({ trace_id: TraceId }),
      query: closed({
        local: Type.Optional(Type.Boolean({ default: false, description: 'Only the spans of this node.' })),
      }),
      output: Type.Object({
        trace_id: TraceId,
        started_at: Timestamp,
        spans: Type.Array(Span),
        missing: Type.Array(Type.Object({ aid: AidText, error: Type.String({ description: 'Error code.' }) }), {
          description: 'Called agents whose nodes showed no spans.',
        }),
      }),
      errors: ['not_found'],
    },
  },
);
