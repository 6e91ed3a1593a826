/**
 * Calls of callers that may use only some MCP tools. The daemon reads their messages itself, so the limit also holds for
 * services that know nothing about it.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { MCP_PATH, RPC_MEMBERS } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import { hasMoreValues, isObject } from '../../foundation/json.ts';
import { parseMessage, twinIn, usesTool } from '../../foundation/rpc-message.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { Admission } from '../../network/links/types.ts';
import { filterHeaders, type RawHeaders } from './headers.ts';

/** Largest message of a limited caller, bytes. */
export const MAX_LIMITED_MESSAGE_BYTES: number = 1024 * 1024;
/** Time for the complete message of a limited caller, milliseconds. */
export const LIMITED_MESSAGE_MS = 60_000;
/** JSON values of one message. Parsing more would delay other callers. */
const MAX_VALUES = 20_000;
/** Requests that any limited caller may send. */
const FREE_METHODS: ReadonlySet<string> = new Set(['initialize', 'ping', 'tools/list', 'server/discover']);
/** Other members are dropped. */
const MEMBERS: ReadonlySet<string> = new Set(RPC_MEMBERS);
/** In another charset, a server could read other JSON. */
const UTF8_JSON = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;
/**
 * The headers that reach the service. From others, a service could take another method or path, or another encoding of
 * the message.
 */
const PASSED_HEADERS =
  /^(?:accept|accept-encoding|accept-language|authorization|baggage|cookie|last-event-id|mcp-(?:method|name|protocol-version|session-id|param-[a-z0-9-]+)|origin|traceparent|tracestate|user-agent|x-api-key)$/;

/** Metadata of a server that requires authorization (RFC 8414, RFC 9728), without dot segments. */
const OAUTH_METADATA = /^\/\.well-known\/(?:oauth-|openid-)[\w-]+(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)*$/;

/** The permission of a limited caller. */
export type ToolLimit = Readonly<Pick<Admission, 'isServer'>> & { readonly tools: readonly string[] };

type Message = Readonly<Record<string, unknown>>;

/** A checked request. */
export interface LimitedMessage {
  /** True if it uses a tool. */
  readonly isToolCall: boolean;
  /** The message to forward; null without a body. */
  readonly body: Buffer | null;
  /** The headers to forward. */
  readonly headers: RawHeaders;
}

function denied(): SvcError {
  return new SvcError('access_denied');
}

/** Headers that cannot change how a service reads a message. @param name in lower case */
export function isPlainHeader(name: string): boolean {
  return PASSED_HEADERS.test(name);
}

/** True if the headers declare exactly one JSON body in UTF-8, without a content encoding. */
export function declaresPlainJson({ headers, rawHeaders }: IncomingMessage): boolean {
  // Node keeps only the first one, but a service could use the last.
  const types = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-type');
  return (
    types.length === 1 && UTF8_JSON.test(headers['content-type'] ?? '') && headers['content-encoding'] === undefined
  );
}

/**
 * The value of an MCP header. Values that are not plain ASCII are sent as `=?base64?…?=`. A value that decoders could
 * read differently stays as it is.
 */
export function decodedHeader(value: string): string {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value) ?? [];
  const decoded = Buffer.from(base64 ?? '', 'base64');
  return base64 === undefined || decoded.toString('base64') !== base64 ? value : decoded.toString();
}

/** Members of `params` that `Mcp-Name` may repeat. For a tool call it is the first. */
const NAMED = ['name', 'uri', 'taskId'] as const;

/**
 * True if the headers that repeat the method and the name of a message agree with it. A server may trust them.
 * @param message empty for a request without a body
 */
export function agreesWithHeaders({ headers }: IncomingMessage, { method, params }: Message): boolean {
  const { 'mcp-method': saidMethod, 'mcp-name': saidName } = headers;
  if (saidMethod !== undefined && saidMethod !== method) return false;
  if (saidName === undefined) return true;
  if (saidMethod === undefined || typeof saidName !== 'string' || !isObject(params)) return false;
  const name = decodedHeader(saidName);
  return (method === 'tools/call' ? NAMED.slice(0, 1) : NAMED).some((member) => params[member] === name);
}

/**
 * Checks a request of a caller that may use only some tools. Nothing else passes.
 * @throws SvcError `access_denied`, `too_large`, `timeout`, or the reason of the signal
 */
export async function checkLimited(
  request: IncomingMessage,
  limit: ToolLimit,
  clock: Clock,
  signal: AbortSignal,
): Promise<LimitedMessage> {
  const { method = '', url = '' } = request;
  const isMetadata = limit.isServer && method === 'GET' && OAUTH_METADATA.test(url);
  // Other paths of the service are no part of the MCP server. From a query, it could take another method.
  if (url !== MCP_PATH && url !== `${MCP_PATH}/` && !isMetadata) throw denied();
  const headers = filterHeaders(request.rawHeaders, isPlainHeader);
  // The stream of a session, and its end.
  if (method === 'GET' || method === 'DELETE') {
    if (!agreesWithHeaders(request, {})) throw denied();
    return { isToolCall: false, body: null, headers };
  }
  if (method !== 'POST' || !declaresPlainJson(request)) throw denied();
  using time = awakeTimeout(clock, LIMITED_MESSAGE_MS, signal);
  const read = await abortable(collectBody(request, MAX_LIMITED_MESSAGE_BYTES), time.signal);
  const { message, tool } = limitMessage(read, limit);
  if (!agreesWithHeaders(request, message)) throw denied();
  const body = Buffer.from(JSON.stringify(message));
  return { isToolCall: tool !== null, body, headers: [...headers, 'Content-Type', 'application/json'] };
}

/**
 * Reads a message of a limited caller. Write it again for the service: it could read the original bytes differently.
 * @returns the message with known members, and the tool that it uses; null for none
 * @throws SvcError `access_denied`, `too_large`
 */
export function limitMessage(
  bytes: Uint8Array,
  { tools, isServer }: ToolLimit,
): { readonly message: Message; readonly tool: string | null } {
  const message = knownMembers(bytes);
  const { method, params } = message;
  if (usesTool(method) && method !== 'tools/call') throw denied();
  const tool = method === 'tools/call' ? toolOf(params) : null;
  // Without a method it is a response to the server.
  const isFree = method === undefined || (typeof method === 'string' && (isServer || isFreeMethod(method)));
  if (tool === null ? !isFree : !tools.includes(tool)) throw denied();
  return { message, tool };
}

/** @throws SvcError `access_denied` */
function toolOf(params: unknown): string {
  const name = isObject(params) ? params['name'] : undefined;
  if (typeof name !== 'string') throw denied();
  return name;
}

function isFreeMethod(name: string): boolean {
  return FREE_METHODS.has(name) || name.startsWith('notifications/');
}

/** @throws SvcError `access_denied`, `too_large` */
function knownMembers(bytes: Uint8Array): Message {
  if (hasMoreValues(Buffer.from(bytes).toString('utf8'), MAX_VALUES)) throw new SvcError('too_large');
  let read: unknown;
  try {
    read = parseMessage(bytes);
  } catch {
    throw denied();
  }
  if (!isObject(read) || twinIn(read) !== undefined) throw denied();
  if (read['params'] !== undefined && !isObject(read['params'])) throw denied();
  return Object.fromEntries(Object.entries(read).filter(([name]) => MEMBERS.has(name)));
}

/** The complete body of a request. @throws SvcError `too_large` */
export async function collectBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new SvcError('too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
