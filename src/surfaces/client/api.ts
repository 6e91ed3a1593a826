/** Every operation of the daemon as a method. Operations without a route are called as tools. */
import { type CallOptions, type Client, type ClientOptions, createClient } from '../../operations/client.ts';
import { operations } from '../../operations/index.ts';
import type { Declaration } from '../../operations/operation.ts';

// Base64 of the API.

/** UTF-8 in standard base64, in Node and in browsers. */
export function base64Of(text: string | Uint8Array): string {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** All operations, with the names of the API reference. */
export type SvcApi = Client<typeof operations>;

type Input = Readonly<Record<string, unknown>>;
type Method = (input?: Input, options?: CallOptions) => Promise<unknown>;

/** @throws SvcError `invalid_request` if the address is not an HTTP URL */
export function apiOf(options: ClientOptions): SvcApi {
  const client = createClient(options, operations);
  const methods = Object.entries<Declaration>(operations).map(([name, { path, tool }]) => {
    if (path !== undefined || tool === undefined) return [name, Reflect.get(client, name)];
    const method: Method = (args = {}, call) => client.toolCall({ tool: tool.name, args }, call);
    return [name, method];
  });
  return Object.fromEntries(methods) as SvcApi;
}
