/** Answers of a share that are one JSON-RPC message over HTTP, and the messages that come in. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { parseJsonBody, readBytes } from '../rest/json-body.ts';
import { parseExact } from './exact-json.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';
import { RPC, type RpcMessage, rpcError } from './messages.ts';

export function sendMessage(response: ServerResponse, status: number, message: RpcMessage): void {
  const body = JSON.stringify(message);
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body);
}

/** Refuses what is over a limit, at once and before the rest of the body. */
export function sendRefusal(response: ServerResponse, status: number, code: number, message: string): void {
  sendMessage(response, status, rpcError(null, code, message));
}

/**
 * The one message of a POST, with its bytes; null where it was refused, which the client has been told.
 * Batches are of a revision that had them for four months: nobody sends them.
 */
export async function readMessage(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<{ readonly message: RpcMessage; readonly bytes: Buffer } | null> {
  const refused = (status: number, code: number, why: string): null => {
    response.setHeader('connection', 'close');
    sendRefusal(response, status, code, why);
    return null;
  };
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? ''))
    return refused(415, RPC.serverGone, 'Unsupported Media Type: Content-Type must be application/json');
  try {
    const bytes = await readBytes(request, MAX_SHARED_MESSAGE_BYTES);
    // What is refused is refused by the one reader of foreign JSON.
    const checked = parseJsonBody(bytes);
    const message = checked === undefined ? undefined : parseExact(bytes.toString('utf8'));
    if (!isObject(message))
      return refused(400, RPC.invalidRequest, 'The body is one JSON-RPC message: no batch, and not empty.');
    return { message, bytes };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (error.code === 'too_large') return refused(413, RPC.invalidRequest, error.message);
    return refused(400, RPC.parse, error.message);
  }
}
