/** Sends ended requests to an OpenTelemetry collector, in batches, from a queue with a limit. */
import { readFile } from 'node:fs/promises';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import type { Timer } from '../../foundation/clock.ts';
import { deadline } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { codeOf } from '../../foundation/errors.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import { type RequestFacts, type Span, spansOf } from '../../foundation/traces/traced-request.ts';
import type { TraceHolder } from '../../foundation/traces/traces.ts';
import { VERSION } from '../../foundation/version.ts';

/** Requests that wait, of strangers and of all others. */
export const MAX_QUEUED_REQUESTS = 1_024;
/** Requests in one batch. */
export const MAX_BATCH = 240;
/** Time between two batches, in milliseconds. */
export const BATCH_MS = 5_000;
/** Time limit for one batch, and for the last one when the daemon stops, in milliseconds. */
const SEND_TIMEOUT_MS = 10_000;
const LAST_SEND_TIMEOUT_MS = 1_000;
const RETRY: JitteredBackoff = { firstMs: BATCH_MS, maxMs: 300_000, jitter: 0.5 };
/** The statuses after which OTLP clients repeat a batch. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Longest file with headers, in characters. */
const MAX_HEADERS_CHARS = 16_384;

// Traced requests in the JSON encoding of OTLP (https://opentelemetry.io/docs/specs/otlp/).

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
function encodeOtlp(requests: readonly RequestFacts[], instance: string): string {
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

// The export.

export interface ExporterOptions extends RandomParts {
  /** The address of the collector. Spans go to `/v1/traces` below it. */
  readonly endpoint: string;
  /** A file with headers, one `Name: value` a line; empty for none. It is read before each batch. */
  readonly headersFile: string;
  /** The name of this node. */
  readonly instance: string;
}

/** The problem of a batch. It contains no text of the collector and no header. */
class ExportFailure extends Error {
  readonly mayRepeat: boolean;

  constructor(message: string, mayRepeat: boolean) {
    super(message);
    this.mayRepeat = mayRepeat;
  }
}

export class TraceExporter implements Component {
  readonly #options: ExporterOptions;
  readonly #url: string;
  #own: RequestFacts[] = [];
  #strangers: RequestFacts[] = [];
  #timer: Timer | null = null;
  #sending: Promise<void> | null = null;
  #failures = 0;
  #isStopped = false;
  /** Requests since the start. */
  #sent = 0;
  #dropped = 0;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.#url = `${options.endpoint.replace(/\/+$/, '')}/v1/traces`;
  }

  get state(): { readonly sent: number; readonly dropped: number; readonly isFailing: boolean } {
    return { sent: this.#sent, dropped: this.#dropped, isFailing: this.#failures > 0 };
  }

  /** Queues a request. Strangers cannot use the room of others. */
  add(request: RequestFacts, holder: TraceHolder): void {
    const queue = holder === 'stranger' ? this.#strangers : this.#own;
    if (this.#isStopped || queue.length >= MAX_QUEUED_REQUESTS) this.#dropped++;
    else queue.push(request);
    this.#plan(BATCH_MS);
  }

  async start(): Promise<void> {}

  /** Sends the last batch if the collector answers soon. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#sending;
    if (this.#failures === 0) await this.#sendBatch(LAST_SEND_TIMEOUT_MS);
  }

  #plan(ms: number): void {
    if (this.#timer !== null || this.#sending !== null || this.#isStopped) return;
    this.#timer = this.#options.clock.after(ms, () => {
      this.#timer = null;
      this.#sending = this.#sendBatch(SEND_TIMEOUT_MS).finally(() => {
        this.#sending = null;
        const wait = this.#failures === 0 ? BATCH_MS : backoff(RETRY, this.#failures, this.#options.random());
        if (this.#own.length + this.#strangers.length > 0) this.#plan(wait);
      });
      detach(this.#sending);
    });
  }

  /** Never rejects. */
  async #sendBatch(timeoutMs: number): Promise<void> {
    const own = this.#own.slice(0, MAX_BATCH);
    const batch = [...own, ...this.#strangers.slice(0, MAX_BATCH - own.length)];
    if (batch.length === 0) return;
    let isOver = true;
    try {
      await this.#post(encodeOtlp(batch, this.#options.instance), timeoutMs);
      this.#sent += batch.length;
      if (this.#failures > 0) this.#options.log.info({}, 'the collector accepts traces again');
      this.#failures = 0;
    } catch (error) {
      isOver = error instanceof ExportFailure && !error.mayRepeat;
      if (isOver) this.#dropped += batch.length;
      const reason = error instanceof ExportFailure ? error.message : codeOf(error, 'it does not answer');
      // Only the first of several failures is news.
      if (this.#failures++ === 0) this.#options.log.warn({ reason }, 'traces cannot be sent to the collector');
    }
    if (!isOver) return;
    // Requests were only appended meanwhile.
    this.#own = this.#own.slice(own.length);
    this.#strangers = this.#strangers.slice(batch.length - own.length);
  }

  /** @throws ExportFailure, or the error of `fetch` */
  async #post(body: string, timeoutMs: number): Promise<void> {
    const headers = { ...(await this.#headers()), 'content-type': 'application/json' };
    using limit = deadline(this.#options.clock, timeoutMs);
    let response: Response;
    try {
      response = await fetch(this.#url, { method: 'POST', headers, body, redirect: 'error', signal: limit.signal });
    } catch (error) {
      // The error of `fetch` is the cause.
      const cause = error instanceof Error ? error.cause : undefined;
      throw new ExportFailure(limit.signal.aborted ? 'timeout' : codeOf(cause, 'no connection'), true);
    }
    await response.body?.cancel();
    if (!response.ok) throw new ExportFailure(`status ${response.status}`, RETRYABLE.has(response.status));
  }

  /** @throws ExportFailure */
  async #headers(): Promise<Record<string, string>> {
    const { headersFile } = this.#options;
    if (headersFile === '') return {};
    let text: string;
    try {
      text = await readFile(headersFile, 'utf8');
    } catch (error) {
      throw new ExportFailure(`otlp_headers_file cannot be read (${codeOf(error)})`, true);
    }
    const headers = parseHeaders(text);
    if (headers === null) throw new ExportFailure('otlp_headers_file must have one "Name: value" a line', true);
    return headers;
  }
}

/** Null if a line is no header. Empty lines and lines that start with # are skipped. */
export function parseHeaders(text: string): Record<string, string> | null {
  if (text.length > MAX_HEADERS_CHARS) return null;
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:\s]+):\s*(.*?)\s*$/.exec(line) ?? [];
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      return null;
    }
    headers[name.toLowerCase()] = value;
  }
  return headers;
}
