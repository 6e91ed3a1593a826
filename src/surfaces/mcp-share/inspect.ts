/** Inspects a server before it is shared: whether it runs, which revisions it supports, and which tools it has. */
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import type { Clock } from '../../foundation/clock.ts';
import { abortable, deadline } from '../../foundation/deadline.ts';
import { isErrorCode, SvcError } from '../../foundation/errors.ts';
import { VERSION } from '../../foundation/version.ts';
import { MODERN_REVISIONS } from '../mcp/stdio-transport.ts';
import { type ServerCommand, stdioTransport } from './server-process.ts';

/** Time limit for the first response of a server, in milliseconds. Some are first downloaded from a registry. */
const FIRST_ANSWER_MS = 30_000;
/** Time limit for initializing it, and for all pages of its tools, in milliseconds. */
const INSPECT_TIMEOUT_MS = 60_000;
/** A server that has not answered after this time is reported, in milliseconds. */
const SILENT_AFTER_MS = 4_000;
/** Pages of tools to request. */
const MAX_PAGES = 20;

export interface Inspection {
  /** Its title; null if it requires authorization first. */
  readonly title: string | null;
  /** True if it supports revisions without sessions. */
  readonly isModern: boolean;
  /** Tool names; empty if it has none or does not list them yet. */
  readonly tools: readonly string[];
}

/** Arguments of an inspection. */
export interface Inspecting {
  readonly clock: Clock;
  /** Ends the inspection. */
  readonly signal?: AbortSignal | undefined;
  /** Called once if the server does not answer soon. @param text for the owner */
  readonly onSilent?: ((text: string) => void) | undefined;
}

async function toolsOf(client: Client, signal: AbortSignal): Promise<string[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const names: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await client.listTools(cursor === undefined ? {} : { cursor }, {
      timeout: INSPECT_TIMEOUT_MS,
      signal,
    });
    names.push(...answer.tools.map(({ name }) => name));
    cursor = answer.nextCursor;
    if (cursor === undefined) break;
  }
  return names;
}

/** @param output the output of the server so far, for the owner */
async function inspect(transport: Transport, inspecting: Inspecting, output: () => string): Promise<Inspection> {
  const { clock, signal: outer, onSilent } = inspecting;
  const client = new Client(
    { name: 'svc', version: VERSION },
    { versionNegotiation: { mode: 'auto', probe: { timeoutMs: FIRST_ANSWER_MS } } },
  );
  using limit = deadline(clock, FIRST_ANSWER_MS + INSPECT_TIMEOUT_MS, outer);
  const { signal } = limit;
  const silent = clock.after(SILENT_AFTER_MS, () =>
    onSilent?.(
      `The server has not answered yet.${output()} Waiting for up to ${(FIRST_ANSWER_MS + INSPECT_TIMEOUT_MS) / 1000} seconds.`,
    ),
  );
  try {
    // The client cannot be interrupted while it connects.
    await abortable(client.connect(transport, { timeout: INSPECT_TIMEOUT_MS }), signal);
    silent.cancel();
    limit.restart();
    const info = client.getServerVersion();
    const isModern = MODERN_REVISIONS.includes(client.getNegotiatedProtocolVersion() ?? '');
    const tools = await abortable(toolsOf(client, signal), signal);
    return { title: info?.title ?? info?.name ?? '', isModern, tools };
  } finally {
    silent.cancel();
    await Promise.all([client.close(), transport.close()]);
  }
}

/** The start of the output of a server, which may be a question for a user. */
function outputText(output: string): string {
  return output === '' ? '' : ` It wrote ${JSON.stringify(output)} to its standard output.`;
}

/** @throws Error if the server cannot be started or initialized */
export async function inspectCommand(what: ServerCommand, inspecting: Inspecting): Promise<Inspection> {
  const notes = { text: '', isNoisy: false };
  const transport = stdioTransport(what, null, notes);
  const output = (): string => outputText(notes.text);
  try {
    return await inspect(transport, inspecting, output);
  } catch (cause) {
    if (cause instanceof SvcError && cause.code === 'cancelled') throw cause;
    const why = cause instanceof Error ? cause.message : 'unknown error';
    throw new Error(`${why.replace(/[.]$/, '')}.${output()}`, { cause });
  }
}

/** Set by the daemon if a call fails. A service cannot set it. */
const ERROR_HEADER = 'svc-error';
/** Codes of the client for responses that are not MCP. */
const NOT_MCP = /^(?:CLIENT_HTTP_\w+|ERA_NEGOTIATION_FAILED)$/;

/**
 * A server that requires authorization counts as reachable.
 * @throws SvcError the error of the daemon for a local address, or `bad_response` if the service is no MCP server; other
 *   errors as `inspectCommand`
 */
export async function inspectUrl(url: URL, inspecting: Inspecting): Promise<Inspection> {
  let answer: Response | undefined;
  const observed = async (to: string | URL, init?: RequestInit): Promise<Response> => (answer = await fetch(to, init));
  try {
    return await inspect(new StreamableHTTPClientTransport(url, { fetch: observed }), inspecting, () => '');
  } catch (error) {
    if (needsAuthorization(error)) return { title: null, isModern: true, tools: [] };
    throw failureOf(answer, error);
  }
}

/** @param answer the last HTTP response; undefined if there was none */
function failureOf(answer: Response | undefined, cause: unknown): unknown {
  if (answer === undefined || (cause instanceof SvcError && cause.code === 'cancelled')) return cause;
  const code = answer.headers.get(ERROR_HEADER) ?? '';
  if (isErrorCode(code)) return new SvcError(code, { cause });
  const kind: unknown = cause instanceof Error ? Reflect.get(cause, 'code') : undefined;
  const isMcp = typeof kind !== 'string' || !NOT_MCP.test(kind);
  // A proxy in front of a server that is down answers with 502 or 503.
  if (isMcp || answer.status >= 500) return cause;
  return new SvcError('bad_response', { message: `It responds with status ${answer.status}, but not in MCP.`, cause });
}

function needsAuthorization(error: unknown): boolean {
  return error instanceof Error && (error.name === 'UnauthorizedError' || Reflect.get(error, 'status') === 401);
}
