/** Services, calls of services, and local addresses of remote agents. */
import { MAX_SERVICE_NAME_CHARS } from '../records/types.ts';

/** Pattern of a service name. The length is limited separately. */
export const SERVICE_NAME_FORM = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;

/** True for a well-formed service name such as `lang.translate`. */
export function isServiceName(name: string): boolean {
  return name.length <= MAX_SERVICE_NAME_CHARS && SERVICE_NAME_FORM.test(name);
}

// Calls: HTTP requests to remote agents with one complete response.

/** Default wait for the response headers, and then for each further byte, milliseconds. See docs/limits.md. */
export const DEFAULT_CALL_TIMEOUT_MS = 60_000;
/** Longest wait that a caller may request, milliseconds. 0 means no limit. */
export const MAX_CALL_TIMEOUT_MS = 600_000;
/** Longest path and query, characters. */
export const MAX_CALL_PATH_CHARS = 8192;
/** Part of a response body that is returned, bytes. The rest is not read. */
export const MAX_FETCHED_BYTES: number = 4 * 1024 * 1024;

/** Maximum number of local addresses of one daemon. */
export const MAX_ORIGINS = 64;

/** Path of a shared MCP server at its agent. The path of the original server may differ. */
export const MCP_PATH = '/mcp';
/** Members of a JSON-RPC message. */
export const RPC_MEMBERS = ['jsonrpc', 'id', 'method', 'params', 'result', 'error'] as const;
