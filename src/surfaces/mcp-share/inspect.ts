/** Inspects a server before it is shared: whether it runs, which revisions it supports, and which tools it has. */
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { detach } from '../../foundation/detached.ts';
import { isErrorCode, SvcError } from '../../foundation/errors.ts';
import { VERSION } from '../../foundation/version.ts';
import { MODERN_REVISIONS } from '../mcp/stdio-transport.ts';
import { type ServerCommand, stdioTransport } from './server-process.ts';

/** Time limit for starting and initializing a server, in milliseconds. Some are first downloaded from a registry. */
const INSPECT_TIMEOUT_MS = 60_000;
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

async function toolsOf(client: Client): Promise<string[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const names: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await client.listTools(cursor === undefined ? {} : { cursor }, { timeout: INSPECT_TIMEOUT_MS });
    names.push(...answer.tools.map(({ name }) => name));
    cursor = answer.nextCursor;
    if (cursor === undefined) break;
  }
  return names;
}

async function inspect(transport: Transport, signal: AbortSignal | undefined): Promise<Inspection> {
  const client = new Client({ name: 'svc', version: VERSION }, { versionNegotiation: { mode: 'auto' } });
  const stop = (): void => detach(client.close());
  signal?.addEventListener('abort', stop, { once: true });
  try {
    signal?.throwIfAborted();
    await client.connect(transport, { timeout: INSPECT_TIMEOUT_MS });
    const info = client.getServerVersion();
    const isModern = MODERN_REVISIONS.includes(client.getNegotiatedProtocolVersion() ?? '');
    return { title: info?.title ?? info?.name ?? '', isModern, tools: await toolsOf(client) };
  } finally {
    signal?.removeEventListener('abort', stop);
    await Promise.all([client.close(), transport.close()]);
  }
}

/** @throws Error if the server cannot be started or initialized */
export function inspectCommand(what: ServerCommand, signal?: AbortSignal): Promise<Inspection> {
  return inspect(stdioTransport(what, null), signal);
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
export async function inspectUrl(url: URL, signal?: AbortSignal): Promise<Inspection> {
  let answer: Response | undefined;
  const observed = async (to: string | URL, init?: RequestInit): Promise<Response> => (answer = await fetch(to, init));
  try {
    return await inspect(new StreamableHTTPClientTransport(url, { fetch: observed }), signal);
  } catch (error) {
    if (needsAuthorization(error)) return { title: null, isModern: true, tools: [] };
    throw failureOf(answer, error);
  }
}

/** @param answer the last HTTP response; undefined if there was none */
function failureOf(answer: Response | undefined, cause: unknown): unknown {
  if (answer === undefined) return cause;
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
