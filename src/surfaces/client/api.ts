/** Every operation of the daemon as a method: those that only tools offer are called as tools. */
import { type CallOptions, type Client, type ClientOptions, createClient } from '../../operations/client.ts';
import { operations } from '../../operations/index.ts';
import type { Declaration } from '../../operations/operation.ts';

/** All operations, by the names that the reference of the API gives them. */
export type SvcApi = Client<typeof operations>;

type Input = Readonly<Record<string, unknown>>;
type Method = (input?: Input, options?: CallOptions) => Promise<unknown>;

/** @throws SvcError `invalid_request` where the address is not an http or https URL */
export function apiOf(options: ClientOptions): SvcApi {
  const client = createClient(options, operations);
  const methods = Object.entries<Declaration>(operations).map(([name, { path, tool }]) => {
    if (path !== undefined || tool === undefined) return [name, Reflect.get(client, name)];
    const method: Method = (args = {}, call) => client.toolCall({ tool: tool.name, args }, call);
    return [name, method];
  });
  return Object.fromEntries(methods) as SvcApi;
}
