/** MCP messages in a share: JSON-RPC, with the fields that the share adds. */

import type { ServerResponse } from 'node:http';
import { declaresPlainJson } from '../../capabilities/calls/tool-limit.ts';
import { SvcError } from '../../foundation/errors.ts';
import { hasMoreValues, isObject } from '../../foundation/json.ts';
import { parseMessage } from '../../foundation/rpc-message.ts';
import { answerTo, MAX_SHARED_MESSAGE_BYTES, readMessageValue } from '../mcp/message-reader.ts';
import { readBytes } from '../rest/json-body.ts';
import type { SharedRequest } from './backend.ts';
import { type Backlog, MAX_ID_CHARS, MAX_MESSAGE_VALUES } from './limits.ts';

// HTTP responses of a share with one JSON-RPC message, and parsing of incoming messages.

export function sendMessage(response: ServerResponse, status: number, message: RpcMessage): void {
  const body = JSON.stringify(message);
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body);
}

/** Rejects a request that exceeds a limit, without reading the rest of its body. */
export function sendRejection(response: ServerResponse, status: number, code: number, message: string): void {
  sendMessage(response, status, rpcError(null, code, message));
}

/** A message of a caller. Its bytes count until `release` is called. */
interface ReadMessage {
  readonly message: RpcMessage;
  readonly release: () => void;
}

/** False if the ID or the progress token of a message is too long to store. */
function hasShortNames(message: RpcMessage): boolean {
  return [message['id'], metaOf(message)['progressToken']].every(
    (name) => typeof name !== 'string' || name.length <= MAX_ID_CHARS,
  );
}

/**
 * The message of a POST request, or null if it was rejected with a response. Batches are rejected: only one short-lived
 * revision had them.
 */
export async function readMessage(
  { request, response, caller }: Pick<SharedRequest, 'request' | 'response' | 'caller'>,
  backlog: Backlog,
): Promise<ReadMessage | null> {
  const refused = (status: number, code: number, why: string): null => {
    response.setHeader('connection', 'close');
    sendRejection(response, status, code, why);
    return null;
  };
  if (!declaresPlainJson(request))
    return refused(415, RPC.serverGone, 'Unsupported Media Type: Content-Type must be application/json in UTF-8');
  const share = backlog.begin(caller, () => request.destroy());
  const release = (): void => share.release();
  const counted = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of request) {
      if (!share.grow(chunk.length)) throw new SvcError('rate_limited');
      yield chunk;
    }
  };
  try {
    const bytes = await readBytes(counted(), MAX_SHARED_MESSAGE_BYTES);
    // Parsing it would delay all other callers.
    if (hasMoreValues(bytes.toString('utf8'), MAX_MESSAGE_VALUES)) {
      release();
      return refused(413, RPC.invalidRequest, `A message can have at most ${MAX_MESSAGE_VALUES} values.`);
    }
    const value = bytes.length === 0 ? undefined : parseMessage(bytes);
    if (!isObject(value)) {
      release();
      return refused(400, RPC.invalidRequest, 'The body must be one JSON-RPC message. Batches are not supported.');
    }
    const read = readMessageValue(value);
    if ('message' in read && hasShortNames(read.message)) return { message: read.message, release };
    release();
    if ('message' in read)
      return refused(
        400,
        RPC.invalidRequest,
        `An ID and a progress token can have at most ${MAX_ID_CHARS} characters.`,
      );
    response.setHeader('connection', 'close');
    sendMessage(response, 400, answerTo(read.odd));
    return null;
  } catch (error) {
    release();
    if (!(error instanceof SvcError)) throw error;
    if (error.code === 'too_large') return refused(413, RPC.invalidRequest, error.message);
    if (error.code === 'rate_limited')
      return refused(429, RPC.busy, 'Too many bytes of your messages are queued for the server. Try again later.');
    return refused(400, RPC.parse, error.message);
  }
}

export type RpcMessage = Readonly<Record<string, unknown>>;
export type RpcId = string | number;

/** The field in `_meta` of each request with the AID of the caller. Callers cannot set it. */
const CALLER_META_KEY = 'svcd/caller';

/** Only the share writes fields with this prefix into `_meta`. */
const OWN_PREFIX = 'svcd/';

/** JSON-RPC error codes of the share itself. */
export const RPC = {
  /** The server has stopped or could not be started. */
  serverGone: -32000,
  sessionUnknown: -32001,
  busy: -32003,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  parse: -32700,
} as const;

export function idOf(message: RpcMessage): RpcId | undefined {
  const { id } = message;
  return typeof id === 'string' || typeof id === 'number' ? id : undefined;
}

export function isRequest(message: RpcMessage): boolean {
  return typeof message['method'] === 'string' && idOf(message) !== undefined;
}

export function isResponse(message: RpcMessage): boolean {
  return message['method'] === undefined && ('result' in message || 'error' in message);
}

export function rpcParamsOf(message: RpcMessage): RpcMessage {
  const { params } = message;
  return isObject(params) ? params : {};
}

export function metaOf(message: RpcMessage): RpcMessage {
  const { _meta } = rpcParamsOf(message);
  return isObject(_meta) ? _meta : {};
}

/** Sets fields of `_meta` in a message; undefined removes a field. */
export function withMeta(message: RpcMessage, changes: RpcMessage): RpcMessage {
  const params = rpcParamsOf(message);
  const meta = Object.fromEntries(
    Object.entries({ ...metaOf(message), ...changes }).filter(([, value]) => value !== undefined),
  );
  return { ...message, params: { ...params, _meta: meta } };
}

/**
 * The message of a caller for the server. The share names the caller in requests and removes such fields from other
 * messages.
 */
export function fromCaller(message: RpcMessage, caller: string): RpcMessage {
  const forged = Object.keys(metaOf(message)).filter((key) => key.startsWith(OWN_PREFIX));
  const clean =
    forged.length === 0 ? message : withMeta(message, Object.fromEntries(forged.map((key) => [key, undefined])));
  return isRequest(message) ? withMeta(clean, { [CALLER_META_KEY]: caller }) : clean;
}

/** Characters at which some readers end a line, although JSON does not escape them. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g;

/** A message as one line, for every reader of lines. */
export function lineOf(message: RpcMessage): string {
  const text = JSON.stringify(message);
  return `${text.replaceAll(LINE_ENDS, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;
}

export function rpcError(id: RpcId | null, code: number, message: string, data?: unknown): RpcMessage {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } };
}
