/** Traced requests in the JSON encoding of OTLP (https://opentelemetry.io/docs/specs/otlp/). */

import { type RequestFacts, type Span, spansOf } from '../../foundation/traces/traced-request.ts';
import { VERSION } from '../../foundation/version.ts';

/** Values of the enumerations of OTLP. */
const KINDS: Readonly<Record<Span['kind'], number>> = { internal: 1, server: 2, client: 3 };
const STATUS_ERROR = 2;

function attribute([key, value]: readonly [string, string | number]) {
  // OTLP writes 64-bit integers as text.
  return { key, value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value } };
}

/** Unix milliseconds as nanoseconds, with a resolution of a microsecond. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}

function encodeSpan({ traceId, spanId, parentId, name, kind, start, end, isError, attributes }: Span) {
  return {
    traceId,
    spanId,
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(start),
    endTimeUnixNano: nanoseconds(Math.max(start, end ?? start)),
    attributes: Object.entries(attributes).map(attribute),
    status: isError ? { code: STATUS_ERROR } : {},
  };
}

/** The body of an export request. @param instance the name of this node */
export function encodeOtlp(requests: readonly RequestFacts[], instance: string): string {
  const resource = { 'service.name': 'svcd', 'service.version': VERSION, 'service.instance.id': instance };
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: Object.entries(resource).map(attribute) },
        scopeSpans: [{ scope: { name: 'svcd', version: VERSION }, spans: requests.flatMap(spansOf).map(encodeSpan) }],
      },
    ],
  });
}
