/** MCP messages in a share: JSON-RPC, with the fields that the share adds. */
import { isObject } from '../../foundation/json.ts';

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

export function rpcError(id: RpcId | null, code: number, message: string, data?: unknown): RpcMessage {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } };
}
