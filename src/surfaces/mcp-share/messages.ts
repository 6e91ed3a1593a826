/** Messages of MCP as a share sees them: JSON-RPC, and what of it is the share's own. */
import { isObject } from '../../foundation/json.ts';

export type RpcMessage = Readonly<Record<string, unknown>>;
export type RpcId = string | number;

/** Where a wrapped server finds the AID of the caller, in `_meta` of each request. Callers cannot set it. */
const CALLER_META_KEY = 'svcd/caller';

/** What only a share writes into `_meta`: everything of this prefix. */
const OWN_PREFIX = 'svcd/';

/** Codes of JSON-RPC errors that a share itself answers with. */
export const RPC = {
  /** The server is not there: it ended, or could not be started. */
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

export function isAnswer(message: RpcMessage): boolean {
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

/** The message with these members of `_meta`, in place of what it has under those names; undefined takes one out. */
export function withMeta(message: RpcMessage, changes: RpcMessage): RpcMessage {
  const params = rpcParamsOf(message);
  const meta = Object.fromEntries(
    Object.entries({ ...metaOf(message), ...changes }).filter(([, value]) => value !== undefined),
  );
  return { ...message, params: { ...params, _meta: meta } };
}

/** A message of a caller as the server gets it: requests say who asks, and nothing else says it. */
export function fromCaller(message: RpcMessage, caller: string): RpcMessage {
  const forged = Object.keys(metaOf(message)).filter((key) => key.startsWith(OWN_PREFIX));
  const clean =
    forged.length === 0 ? message : withMeta(message, Object.fromEntries(forged.map((key) => [key, undefined])));
  return isRequest(message) ? withMeta(clean, { [CALLER_META_KEY]: caller }) : clean;
}

export function rpcError(id: RpcId | null, code: number, message: string, data?: unknown): RpcMessage {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } };
}
