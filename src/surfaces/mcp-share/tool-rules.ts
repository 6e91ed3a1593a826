/**
 * Which tools each caller of a shared server may use. A caller without a list may use all; the access list decides who
 * may call at all.
 */
import { isObject } from '../../foundation/json.ts';
import { idOf, RPC, type RpcMessage, rpcError, rpcParamsOf } from './messages.ts';

/** AID → tool names. */
export type ToolLists = ReadonlyMap<string, ReadonlySet<string>>;

export class ToolRules {
  readonly #lists: ToolLists;

  constructor(lists: ToolLists) {
    this.#lists = lists;
  }

  /** True if responses to a caller must be filtered. */
  limits(caller: string): boolean {
    return this.#lists.has(caller);
  }

  /** The error response to a forbidden request; null if the request is allowed. */
  refusal(caller: string, message: RpcMessage): RpcMessage | null {
    const allowed = this.#lists.get(caller);
    if (allowed === undefined || message['method'] !== 'tools/call') return null;
    const { name } = rpcParamsOf(message);
    if (typeof name === 'string' && allowed.has(name)) return null;
    return rpcError(
      idOf(message) ?? null,
      RPC.invalidParams,
      'No tool with this name is available to you. See tools/list.',
    );
  }

  /** Filters a message of the server for a caller: a list of tools only has the allowed tools. */
  shown(caller: string, message: RpcMessage): RpcMessage {
    const allowed = this.#lists.get(caller);
    const { result } = message;
    if (allowed === undefined || !isObject(result) || !Array.isArray(result['tools'])) return message;
    const tools = result['tools'].filter(
      (tool) => isObject(tool) && typeof tool['name'] === 'string' && allowed.has(tool['name']),
    );
    return { ...message, result: { ...result, tools } };
  }
}
