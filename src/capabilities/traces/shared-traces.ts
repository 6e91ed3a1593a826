/**
 * Links of purpose `trace`: a caller reads the spans of its calls in one trace from the node of the called agent. Format:
 * docs/protocol-links.md, "Traces".
 */
import { asMap, type CborValue, decodeCbor, encodeCbor, isUint } from '../../foundation/cbor.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { LINK_PATH_KINDS } from '../../foundation/domain/tunnels.ts';
import { isErrorCode, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LISTED_ID_PATTERN } from '../../foundation/ids.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { TRACE_ID_PATTERN } from '../../foundation/traces/trace-context.ts';
import { type RequestFacts, STEPS, type Step } from '../../foundation/traces/traced-request.ts';
import type { Traces } from '../../foundation/traces/traces.ts';
import type { AccessRequest, LinkStream, Links } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { ProtocolBreach, readFrame, u16 } from '../../network/peers/wire.ts';

/** Time to reach the other node, and for its answer, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** Requests in an answer: the newest. */
export const MAX_TRACE_ANSWERS = 32;
/** Steps of a request in an answer. The called side has two. */
const MAX_SHARED_STEPS = 4;
/** Longest query and answer, in bytes. */
const MAX_QUERY_BYTES = 64;
export const MAX_SHARED_BYTES = 32_768;
const METHOD = /^[A-Z-]{1,20}$/;
const TRACE_ID = new RegExp(TRACE_ID_PATTERN);
const SPAN_ID = new RegExp(LISTED_ID_PATTERN);

// The messages. Times are Unix microseconds.

/** The called side's part of a request. The caller knows the rest. */
export type SharedRequest = Omit<RequestFacts, 'traceId' | 'side' | 'caller' | 'called'>;

function framed(value: CborValue): Uint8Array {
  const bytes = encodeCbor(value);
  return Buffer.concat([u16(bytes.length), bytes]);
}

/** A member of a map, or undefined if the bytes are malformed. */
function memberIn(bytes: Uint8Array, maxBytes: number, key: string): unknown {
  try {
    return asMap(decodeCbor(bytes, maxBytes), [key], 'any')?.[key];
  } catch {
    return undefined;
  }
}

/** Encodes a query with its length. */
export function encodeQuery(traceId: string): Uint8Array {
  return framed({ t: traceId });
}

/** The trace ID; null if the query is malformed. */
export function decodeQuery(bytes: Uint8Array): string | null {
  const id = memberIn(bytes, MAX_QUERY_BYTES, 't');
  return typeof id === 'string' && TRACE_ID.test(id) ? id : null;
}

function micros(ms: number): number {
  return Math.round(ms * 1000);
}

/** Beginning, end and error of a request or a step. */
function timesOf({ start, end, error }: Pick<Step, 'start' | 'end' | 'error'>): CborValue {
  return { s: micros(start), e: end === null ? null : micros(end), x: error };
}

/** Encodes an answer with its length. */
export function encodeShared(requests: readonly SharedRequest[]): Uint8Array {
  const encoded = requests.map(
    (request): CborValue => ({
      ...{ i: request.spanId, p: request.parentId, m: request.method, c: request.status, w: request.path },
      t: timesOf(request),
      n: request.steps.slice(0, MAX_SHARED_STEPS).map((step) => [step.name, timesOf(step)]),
    }),
  );
  return framed({ r: encoded });
}

function readTimes(value: unknown): Pick<Step, 'start' | 'end' | 'error'> | null {
  const { s, e, x } = asMap(value, ['s', 'e', 'x'], 'any') ?? {};
  if (!isUint(s) || (e !== null && (!isUint(e) || e < s))) return null;
  if (x !== null && (typeof x !== 'string' || !isErrorCode(x))) return null;
  return { start: s / 1000, end: e === null ? null : e / 1000, error: x };
}

function readStep(value: unknown): Step | null {
  const [text, rest]: readonly unknown[] = Array.isArray(value) ? value : [];
  const name = STEPS.find((one) => one === text);
  const times = readTimes(rest);
  return name === undefined || times === null ? null : { name, ...times };
}

function readRequest(value: unknown): SharedRequest | null {
  const { i, p, m, c, w, t, n } = asMap(value, ['i', 'p', 'm', 'c', 'w', 't', 'n'], 'any') ?? {};
  const isId = (id: unknown): id is string => typeof id === 'string' && SPAN_ID.test(id);
  if (!isId(i) || !isId(p) || typeof m !== 'string' || !METHOD.test(m)) return null;
  if (c !== null && !isUint(c)) return null;
  const path = w === null ? null : LINK_PATH_KINDS.find((kind) => kind === w);
  const times = readTimes(t);
  if (path === undefined || times === null || !Array.isArray(n) || n.length > MAX_SHARED_STEPS) return null;
  const steps = n.map(readStep).filter((step) => step !== null);
  return { spanId: i, parentId: p, method: m, status: c, path, ...times, steps };
}

/** Requests that are malformed, or have words of a later version, are skipped. Null if the answer is malformed. */
export function decodeShared(bytes: Uint8Array): readonly SharedRequest[] | null {
  const all = memberIn(bytes, MAX_SHARED_BYTES, 'r');
  if (!Array.isArray(all) || all.length > MAX_TRACE_ANSWERS) return null;
  return all.map(readRequest).filter((request) => request !== null);
}

// The called side.

export interface SharingDependencies extends NodeParts {
  readonly traces: Traces;
  /** False if the owner excludes the caller, or shares no traces. */
  readonly mayRead: (request: AccessRequest) => boolean;
}

/** Serves the queries of callers. */
export function shareTraces(links: Links, dependencies: SharingDependencies): void {
  const { log, mayRead } = dependencies;
  const check = (request: AccessRequest): void => {
    if (!mayRead(request)) throw new SvcError('access_denied');
  };
  const serve = (link: LinkStream): void => {
    link.on('error', () => {});
    detach(
      answer(link, dependencies).catch((error: unknown) => {
        log.debug({ caller: link.caller, error }, 'a query for a trace failed');
        link.destroy();
      }),
    );
  };
  links.accept('trace', serve, check);
}

async function answer(link: LinkStream, { traces, clock }: SharingDependencies): Promise<void> {
  using limit = awakeTimeout(clock, TIMEOUT_MS);
  const traceId = decodeQuery(await readFrame(link, MAX_QUERY_BYTES, limit.signal));
  if (traceId === null) throw new ProtocolBreach('A query for a trace is malformed.');
  const { caller, called } = link;
  // Only calls of this caller to this agent. The calls that the agent made itself reveal other agents.
  const own = traces
    .of(traceId)
    .filter((one) => one.side === 'called' && one.parentId !== null && one.caller === caller && one.called === called);
  link.end(encodeShared(own.slice(-MAX_TRACE_ANSWERS)));
  drainAndDestroy(link, clock);
}

// The calling side.

/**
 * Reads the spans of a local agent's calls from the node of the called agent.
 * @throws SvcError as `Links.open`, `protocol_error`
 */
export async function queryTrace(
  links: Links,
  clock: Clock,
  local: Aid,
  remote: Aid,
  traceId: string,
  signal: AbortSignal,
): Promise<readonly SharedRequest[]> {
  using limit = awakeTimeout(clock, TIMEOUT_MS, signal);
  const first = { bytes: () => encodeQuery(traceId) };
  const link = await links.open(local, remote, 'trace', { timeoutMs: TIMEOUT_MS, first, signal: limit.signal });
  link.on('error', () => {});
  try {
    const shared = decodeShared(await readFrame(link, MAX_SHARED_BYTES, limit.signal));
    if (shared === null) throw new SvcError('protocol_error');
    link.end();
    drainAndDestroy(link, clock);
    return shared;
  } catch (error) {
    link.destroy();
    throw error;
  }
}
