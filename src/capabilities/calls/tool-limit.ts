/**
 * Calls of callers that may use only some MCP tools. The daemon reads their messages itself, so the limit also holds for
 * services that know nothing about it.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { MCP_PATH, RPC_MEMBERS } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import { hasMoreValues, isObject, parseIntegers, parseJson } from '../../foundation/json.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { collectBody } from './request-body.ts';

/** Largest message of a limited caller, bytes. */
export const MAX_LIMITED_MESSAGE_BYTES: number = 1024 * 1024;
/** Time for the complete message of a limited caller, milliseconds. */
export const LIMITED_MESSAGE_MS = 60_000;
/** JSON values of one message. Parsing more would delay other callers. */
const MAX_VALUES = 20_000;
/** Requests that any limited caller may send. */
const FREE_METHODS: ReadonlySet<string> = new Set(['initialize', 'ping', 'tools/list', 'server/discover']);
/** Other members are dropped: some servers would read `METHOD` as `method`. */
const MEMBERS: ReadonlySet<string> = new Set(RPC_MEMBERS);
/** In another charset, a server could read other JSON. */
const UTF8_JSON = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

type Message = Readonly<Record<string, unknown>>;

/** A checked request. */
interface LimitedMessage {
  /** True if it uses a tool. */
  readonly isToolCall: boolean;
  /** The message to forward; null without a body. */
  readonly body: Buffer | null;
}

function denied(): SvcError {
  return new SvcError('access_denied');
}

/**
 * Checks a request of a caller that may use only some tools. Nothing else passes.
 * @throws SvcError `access_denied`, `too_large`, `timeout`, or the reason of the signal
 */
export async function checkLimited(
  request: IncomingMessage,
  tools: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<LimitedMessage> {
  const { method = '', url = '', headers } = request;
  const [path = ''] = url.split('?');
  // What else the service has is no part of the MCP server.
  if (path !== MCP_PATH && path !== `${MCP_PATH}/`) throw denied();
  // The stream of a session, and its end.
  if (method === 'GET' || method === 'DELETE') return { isToolCall: false, body: null };
  if (method !== 'POST' || !UTF8_JSON.test(headers['content-type'] ?? '') || headers['content-encoding'] !== undefined)
    throw denied();
  using limit = awakeTimeout(clock, LIMITED_MESSAGE_MS, signal);
  const body = await abortable(collectBody(request, MAX_LIMITED_MESSAGE_BYTES), limit.signal);
  const message = parseMessage(body.toString('utf8'));
  const { method: name, params } = message;
  const isToolCall = name === 'tools/call';
  const tool = isToolCall ? toolOf(params) : null;
  // Without a method it is a response to the server.
  const isFree = name === undefined || (typeof name === 'string' && isFreeMethod(name));
  if (tool === null ? !isFree : !tools.includes(tool)) throw denied();
  // A server may trust the headers that repeat the method and the tool.
  if ((headers['mcp-method'] ?? name) !== name || (headers['mcp-name'] ?? tool) !== tool) throw denied();
  // Written again, so that the service cannot read a repeated key differently.
  return { isToolCall, body: Buffer.from(JSON.stringify(message)) };
}

/** @throws SvcError `access_denied` if a server could read another name */
function toolOf(params: unknown): string {
  const names = isObject(params) ? Object.keys(params).filter((key) => key.toLowerCase() === 'name') : [];
  const name = isObject(params) ? params['name'] : undefined;
  if (names.length !== 1 || typeof name !== 'string') throw denied();
  return name;
}

function isFreeMethod(name: string): boolean {
  return FREE_METHODS.has(name) || name.startsWith('notifications/');
}

function parseMessage(text: string): Message {
  if (hasMoreValues(text, MAX_VALUES)) throw new SvcError('too_large');
  try {
    parseJson(text);
  } catch {
    throw denied();
  }
  const read = parseIntegers(text);
  if (!isObject(read)) throw denied();
  return Object.fromEntries(Object.entries(read).filter(([name]) => MEMBERS.has(name)));
}
