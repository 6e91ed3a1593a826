/** Calls that a program answers instead of a service: it reads the request, and its output is the response. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { MAX_HOOK_CALL_BYTES } from '../../foundation/domain/hooks.ts';
import { isObject } from '../../foundation/json.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { HolderRequest } from '../../network/links/holder.ts';
import { badResponse } from './error-response.ts';
import { EVIDENCE, pairs, type RawHeaders, SET_PER_HOP, withoutReservedHeaders } from './headers.ts';
import { collectBody, type LimitedMessage } from './tool-limit.ts';
import type { TracedHop } from './trace-headers.ts';

/** Time for the complete body of a request, and for the caller to read the answer, milliseconds. */
const BODY_MS = 30_000;
const ANSWER_MS = 600_000;

/** A request, as the program reads it. */
export interface ProgramCall {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body if it is UTF-8 text; omitted if it is empty. */
  readonly body?: string;
  /** Any other body. */
  readonly body_base64?: string;
}

/**
 * Starts a program and returns its output; null if it failed.
 * @param read reads the request, once there is room for it
 * @throws SvcError `rate_limited`, `inbound_unreachable`, `timeout`, the error of `read`, and the reason of the signal
 */
export type CallProgram = (read: () => Promise<ProgramCall>, signal: AbortSignal) => Promise<Buffer | null>;

/** The program that answers calls of a caller; null if the bound service does. */
export type CallPrograms = (request: HolderRequest) => CallProgram | null;

interface Answering {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Replaces the body and the headers of the request. */
  readonly limited: LimitedMessage | null;
  readonly trace: TracedHop;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** @throws SvcError `too_large`, `timeout`, `bad_response`, and as `CallProgram` */
export async function answerByProgram(program: CallProgram, answering: Answering): Promise<void> {
  const { request, response, clock, signal, limited, trace } = answering;
  const answer = await program(async () => {
    if (limited === null) return callOf(request, request.rawHeaders, await wholeBody(request, clock, signal), trace);
    return callOf(request, limited.headers, limited.body ?? Buffer.alloc(0), trace);
  }, signal);
  if (answer === null) throw badResponse('program_failed');
  if (response.destroyed) return;
  if (trace.request !== null) trace.request.status = 200;
  trace.request?.finish();
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  response.once('close', resolve);
  response.writeHead(200, ['Content-Type', typeOf(answer), 'Content-Length', `${answer.length}`]);
  response.end(answer);
  const timer = clock.after(ANSWER_MS, () => response.destroy());
  await closed;
  timer.cancel();
}

async function wholeBody(request: IncomingMessage, clock: Clock, outer: AbortSignal): Promise<Buffer> {
  using limit = awakeTimeout(clock, BODY_MS, outer);
  return abortable(collectBody(request, MAX_HOOK_CALL_BYTES), limit.signal);
}

function callOf(
  { method = 'GET', url: path = '/' }: IncomingMessage,
  rawHeaders: RawHeaders,
  body: Buffer,
  trace: TracedHop,
): ProgramCall {
  const passed = withoutReservedHeaders(rawHeaders, EVIDENCE | SET_PER_HOP);
  const kept = trace.headers(passed, trace.request?.stepSpanId);
  const values = Map.groupBy(pairs(kept), ([name]) => name.toLowerCase());
  const headers = Object.fromEntries(
    values.entries().map(([name, all]) => [name, all.map(([, one]) => one).join(', ')]),
  );
  const content =
    body.length === 0 ? {} : isUtf8(body) ? { body: body.toString('utf8') } : { body_base64: body.toString('base64') };
  return { method, path, headers, ...content };
}

/** The type of an answer: a JSON object or list, text, or any bytes. */
function typeOf(answer: Buffer): string {
  if (!isUtf8(answer)) return 'application/octet-stream';
  try {
    const value: unknown = JSON.parse(answer.toString('utf8'));
    if (isObject(value) || Array.isArray(value)) return 'application/json';
  } catch {
    // Plain text.
  }
  return 'text/plain; charset=utf-8';
}
