/**
 * One HTTP request of the revisions since 2026-07-28: validates it, and sends the response as JSON or as an event
 * stream.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  classifyInboundRequest,
  PROTOCOL_VERSION_META_KEY,
  UnsupportedProtocolVersionError,
} from '@modelcontextprotocol/server';
import { MODERN_REVISIONS } from '../mcp/stdio-transport.ts';
import { idOf, isResponse, metaOf, RPC, type RpcId, type RpcMessage, rpcError, rpcParamsOf } from './messages.ts';
import { sendMessage } from './rpc-response.ts';

/** The parameter that the name header must match, by method. */
const NAMED: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

/** HTTP status for an error response, if it is not 200. */
const STATUS_OF: ReadonlyMap<number, number> = new Map([
  [RPC.unknownMethod, 404],
  [RPC.headerMismatch, 400],
  [RPC.missingCapability, 400],
  [RPC.unsupportedVersion, 400],
]);

function header({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value.trim() : undefined;
}

/** Values that are not plain ASCII are sent as `=?base64?…?=`. */
function decoded(value: string): string {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value) ?? [];
  return base64 === undefined ? value : Buffer.from(base64, 'base64').toString();
}

/** Type of a message according to its headers and body. */
export type MessageKind =
  | { readonly kind: 'legacy' | 'modern' }
  | { readonly kind: 'refused'; readonly status: number; readonly answer: RpcMessage };

function mismatch(id: RpcId | undefined, name: string): MessageKind {
  const text = `The header ${name} does not match the body.`;
  return { kind: 'refused', status: 400, answer: rpcError(id ?? null, RPC.headerMismatch, text) };
}

/**
 * Distinguishes requests of the older and newer revisions. Rejects requests with headers that do not match the body.
 */
export function kindOf(request: IncomingMessage, message: RpcMessage): MessageKind {
  const [version, method, name] = ['mcp-protocol-version', 'mcp-method', 'mcp-name'].map((one) => header(request, one));
  const outcome = classifyInboundRequest({
    httpMethod: request.method ?? 'POST',
    ...(version === undefined ? {} : { protocolVersionHeader: version }),
    ...(method === undefined ? {} : { mcpMethodHeader: method }),
    ...(name === undefined ? {} : { mcpNameHeader: name }),
    body: message,
  });
  const id = idOf(message);
  if (outcome.kind === 'legacy') return { kind: 'legacy' };
  if (outcome.kind === 'reject') {
    const { httpStatus: status, code, message: text, data } = outcome;
    return { kind: 'refused', status, answer: rpcError(id ?? null, code, text, data) };
  }
  if (id === undefined) return { kind: 'modern' };
  const requested = metaOf(message)[PROTOCOL_VERSION_META_KEY];
  // On stdio the SDK only checks the revision of the first request.
  if (typeof requested === 'string' && !MODERN_REVISIONS.includes(requested)) {
    const {
      code,
      message: text,
      data,
    } = new UnsupportedProtocolVersionError({ supported: MODERN_REVISIONS, requested });
    return { kind: 'refused', status: 400, answer: rpcError(id, code, text, data) };
  }
  if (version === undefined) return mismatch(id, 'MCP-Protocol-Version');
  if (method !== message['method']) return mismatch(id, 'Mcp-Method');
  const member = NAMED[String(message['method'])];
  const named = member === undefined ? undefined : rpcParamsOf(message)[member];
  if (typeof named === 'string' && (name === undefined || decoded(name) !== named)) return mismatch(id, 'Mcp-Name');
  return { kind: 'modern' };
}

/** Sends the messages about a request: one JSON text if the response comes first, otherwise an event stream. */
export class ModernResponse {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  take(message: RpcMessage): void {
    const response = this.#response;
    if (response.destroyed || response.writableEnded) return;
    const { error } = message;
    if (isResponse(message) && !response.headersSent) {
      const code = typeof error === 'object' && error !== null ? Number(Reflect.get(error, 'code')) : 0;
      return sendMessage(response, STATUS_OF.get(code) ?? 200, message);
    }
    if (!response.headersSent)
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' });
    response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    if (isResponse(message)) response.end();
  }
}
