/** Handlers of the operations on traces. */
import type { TraceExporter } from '../../capabilities/traces/exporter.ts';
import type { TraceReader } from '../../capabilities/traces/trace-reader.ts';
import { isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Traces } from '../../foundation/traces/traces.ts';
import type { Handlers } from '../operation.ts';
import { TRACES_DEFAULT, type traceOperations } from '../traces.ts';

export interface TraceHandlerDependencies {
  readonly traces: Traces;
  readonly traceReader: TraceReader;
  readonly traceExporter: TraceExporter | null;
}

/** Milliseconds with a resolution of a microsecond. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

function durationOf(start: number, end: number | null): number | null {
  return end === null ? null : rounded(Math.max(0, end - start));
}

export function traceHandlers({
  traces,
  traceReader,
  traceExporter,
}: TraceHandlerDependencies): Handlers<typeof traceOperations> {
  return {
    traceList: ({ limit = TRACES_DEFAULT }) => {
      const { sent, dropped, isFailing } = traceExporter?.state ?? { sent: 0, dropped: 0, isFailing: false };
      return {
        traces: traceReader.list(limit).map(({ first, requests, end }) => ({
          trace_id: first.traceId,
          started_at: isoTime(first.start),
          duration_ms: durationOf(first.start, end),
          caller: first.caller,
          called: first.called,
          method: first.method,
          status: first.status,
          error: first.error,
          requests,
        })),
        export: traceExporter === null ? null : { sent, dropped, failing: isFailing },
      };
    },
    traceNext: ({ aid }) => {
      if (!traces.isOn) throw new SvcError('traces_off');
      traces.sampleNext(aid);
      return {};
    },
    traceGet: async ({ trace_id, local = false }, { signal }) => {
      const { spans, missing } = await traceReader.get(trace_id, local, signal);
      const start = spans[0]?.start ?? 0;
      return {
        trace_id,
        started_at: isoTime(start),
        spans: spans.map((span) => ({
          span_id: span.spanId,
          parent_id: span.parentId,
          name: span.name,
          kind: span.kind,
          start_ms: rounded(span.start - start),
          duration_ms: durationOf(span.start, span.end),
          attributes: span.attributes,
          reported_by: span.reportedBy,
        })),
        missing: missing.map(({ aid, error }) => ({ aid, error: error.code })),
      };
    },
  };
}
