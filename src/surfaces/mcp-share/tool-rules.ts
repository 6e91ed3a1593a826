/** Which tools each caller of a shared server may use. Without a list for a caller they are all: access lists say who calls. */
import { isObject } from '../../foundation/json.ts';
import { idOf, RPC, type RpcMessage, rpcError, rpcParamsOf } from './messages.ts';

/** AID → names of tools. */
export type ToolLists = ReadonlyMap<string, ReadonlySet<string>>;

export class ToolRules {
  readonly #lists: ToolLists;

  constructor(lists: ToolLists) {
    this.#lists = lists;
  }

  /** True where answers to a caller have to be looked into. */
  limits(caller: string): boolean {
    return this.#lists.has(caller);
  }

  /** The answer to a request that a caller may not make; null where it goes on to the server. */
  refusal(caller: string, message: RpcMessage): RpcMessage | null {
    const allowed = this.#lists.get(caller);
    if (allowed === undefined || message['method'] !== 'tools/call') return null;
    const { name } = rpcParamsOf(message);
    if (typeof name === 'string' && allowed.has(name)) return null;
    return rpcError(idOf(message) ?? null, RPC.invalidParams, 'There is no tool of this name for you: see tools/list.');
  }

  /** A message of the server as the caller gets it: a list of tools names those that are open to it. */
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
