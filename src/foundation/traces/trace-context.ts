/** The headers `traceparent` and `tracestate` of W3C Trace Context (https://www.w3.org/TR/trace-context-1/). */

import { isObject } from '../json.ts';

/** The position of a request in a trace. */
export interface TraceContext {
  /** 32 hex digits, not all zero. */
  readonly traceId: string;
  /** The span that sends the request: 16 hex digits, not all zero. */
  readonly parentId: string;
  /** The sender records its spans. */
  readonly isSampled: boolean;
}

/** The form of a trace ID, without the exclusion of zero. */
export const TRACE_ID_PATTERN = '^[0-9a-f]{32}$';
/** Highest share of sampled traces. */
export const MAX_PERCENT = 100;
/** Highest number of traces in one list. */
export const MAX_TRACES = 200;

/** Characters of a version 00 header. Later versions may continue after a hyphen. */
const LENGTH = 55;
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
const FORBIDDEN_VERSION = 'ff';
const SAMPLED = 0x01;
const ZEROS = /^0+$/;

/** Null for a value that the recommendation tells receivers to ignore. */
export function parseTraceparent(text: string): TraceContext | null {
  const [, version = '', traceId = '', parentId = '', flags = ''] = TRACEPARENT.exec(text) ?? [];
  if (version === '' || version === FORBIDDEN_VERSION || (version === '00' && text.length !== LENGTH)) return null;
  if (ZEROS.test(traceId) || ZEROS.test(parentId)) return null;
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}

export function formatTraceparent({ traceId, parentId, isSampled }: TraceContext): string {
  return `00-${traceId}-${parentId}-${isSampled ? '01' : '00'}`;
}

/** Longest `tracestate` that is passed on, in characters. Several headers count together, with commas. */
export const MAX_TRACESTATE_CHARS = 512;
/** Members of a `tracestate`. */
const MAX_TRACESTATE_MEMBERS = 32;
const MEMBER =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;

/** True for a valid `tracestate` within the limits. Several headers are joined with commas. */
export function isTracestate(text: string): boolean {
  if (text.length > MAX_TRACESTATE_CHARS) return false;
  const members = text.split(',').map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''));
  // Empty members are allowed.
  const keys = members.filter((member) => member !== '').map((member) => member.slice(0, member.indexOf('=')));
  if (keys.length > MAX_TRACESTATE_MEMBERS || new Set(keys).size !== keys.length) return false;
  return members.every((member) => member === '' || MEMBER.test(member));
}

/** The valid trace headers of a request to the API, for calls that it makes. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** The trace headers among other values, such as parsed headers or the `_meta` of an MCP request. */
export function traceHeadersIn(values: unknown): TraceHeaders | undefined {
  const { traceparent: text, tracestate } = isObject(values) ? values : {};
  const context = typeof text === 'string' ? parseTraceparent(text) : null;
  if (context === null) return undefined;
  // A later version may continue with any text.
  const traceparent = formatTraceparent(context);
  return typeof tracestate === 'string' && isTracestate(tracestate) ? { traceparent, tracestate } : { traceparent };
}
