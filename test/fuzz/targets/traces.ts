/** Trace headers of strangers, queries for traces, and the answers of called nodes. */
import {
  decodeQuery,
  decodeShared,
  encodeQuery,
  encodeShared,
  MAX_TRACE_ANSWERS,
  type SharedRequest,
} from '../../../src/capabilities/traces/shared-traces.ts';
import { isTracestate, parseTraceparent } from '../../../src/foundation/traces/trace-context.ts';
import { editCbor } from '../engine/cbor.ts';
import { bytesOf, decoder, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

function body(framed: Uint8Array): Uint8Array {
  return framed.subarray(2);
}

const headers = decoder({
  name: 'trace-headers',
  inputs: 4000,
  seeds: () =>
    bytesOf(
      `00-${TRACE}-${SPAN}-01`,
      `cc-${TRACE}-${SPAN}-00-later`,
      'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
      't@v=1, \tb/c_d-e*f=x y',
    ),
  decode: (bytes) => {
    const text = Buffer.from(bytes).toString('latin1');
    const context = parseTraceparent(text);
    return context !== null || isTracestate(text) ? { text, context } : null;
  },
  check: ({ text, context }, bytes) => {
    // It goes into a header. A `traceparent` is written again.
    if (context === null && /[^\t\x20-\x7e]/.test(text)) throw violation('an unsafe character', bytes);
    if (context !== null && !/^[0-9a-f]{32}[0-9a-f]{16}$/.test(context.traceId + context.parentId))
      throw violation('an invalid ID', bytes);
  },
});

const query = decoder({
  name: 'trace-query',
  inputs: 1000,
  edit: editCbor,
  seeds: () => [body(encodeQuery(TRACE))],
  decode: decodeQuery,
  encode: (traceId) => body(encodeQuery(traceId)),
  check: (traceId, bytes) => {
    if (!/^[0-9a-f]{32}$/.test(traceId)) throw violation('an invalid ID', bytes);
  },
});

const REQUEST: SharedRequest = {
  ...{ spanId: SPAN, parentId: SPAN, method: 'GET', start: 1.5, end: 2, status: 200, error: null, path: 'lan' },
  steps: [
    { name: 'access', start: 1.5, end: 1.75, error: null },
    { name: 'service', start: 1.75, end: null, error: 'timeout' },
  ],
};

const answer = decoder({
  name: 'trace-answer',
  inputs: 2000,
  edit: editCbor,
  seeds: () => [
    body(encodeShared([])),
    body(encodeShared([REQUEST, { ...REQUEST, end: null, status: null, path: null, steps: [] }])),
  ],
  decode: decodeShared,
  check: (requests, bytes) => {
    if (requests.length > MAX_TRACE_ANSWERS) throw violation('too many requests', bytes);
    for (const { spanId, parentId, method, start, end, steps } of requests) {
      if (!/^[0-9a-f]{16}$/.test(spanId) || !/^[0-9a-f]{16}$/.test(parentId ?? '') || !/^[A-Z-]{1,20}$/.test(method))
        throw violation('a foreign text', bytes);
      for (const one of [{ start, end }, ...steps])
        if (one.start < 0 || (one.end !== null && one.end < one.start)) throw violation('an invalid time', bytes);
    }
  },
});

export const traceTargets: readonly FuzzTarget[] = [headers, query, answer];
