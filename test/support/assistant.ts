/** An assistant with nothing but the tools of an MCP server. Checks every result against the schema of its tool. */
import assert from 'node:assert/strict';
import { type CallToolResult, Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { eventually } from './eventually.ts';

export type Values = Readonly<Record<string, unknown>>;

export interface Pending {
  readonly mailbox?: number;
  readonly chat_invites?: number;
  readonly chat_unread?: number;
}

/** `legacy`: the 2025 revisions; `modern`: the 2026 revision. */
type Era = 'legacy' | 'modern';
const MODERN = '2026-07-28';

function newClient(era: Era): Client {
  const mode = era === 'legacy' ? 'legacy' : { pin: MODERN };
  return new Client({ name: 'assistant', version: '1.0.0' }, { versionNegotiation: { mode } });
}

export class Assistant {
  readonly client: Client;
  readonly tools: readonly string[];
  /** Pending items in the last result, by AID. */
  pending: Readonly<Record<string, Pending>> = {};
  readonly #checks: ReadonlyMap<string, ValidateFunction>;

  private constructor(client: Client, checks: ReadonlyMap<string, ValidateFunction>) {
    this.client = client;
    this.tools = [...checks.keys()];
    this.#checks = checks;
  }

  /** @param url of the MCP server of a daemon */
  static async overHttp(url: string, era: Era): Promise<Assistant> {
    const client = newClient(era);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return Assistant.#of(client);
  }

  /** Starts `svcd --mcp-stdio` on a data directory. */
  static async overStdio(dataDir: string, era: Era, args: readonly string[] = []): Promise<Assistant> {
    const client = newClient(era);
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: ['bin/svcd', '--data-dir', dataDir, '--mcp-stdio', ...args],
      env: { SVCD_MDNS: 'false' },
      stderr: 'ignore',
    });
    await client.connect(transport);
    return Assistant.#of(client);
  }

  static async #of(client: Client): Promise<Assistant> {
    const { tools } = await client.listTools();
    const ajv = new Ajv2020({ strict: false });
    const checks = tools.map(({ name, outputSchema }): [string, ValidateFunction] => {
      assert.ok(outputSchema, `${name} matches its output schema`);
      return [name, ajv.compile(Object.fromEntries(Object.entries(outputSchema)))];
    });
    return new Assistant(client, new Map(checks));
  }

  /** A call that may fail. A success is checked against the schema. */
  async attempt(name: string, args: Values = {}): Promise<CallToolResult> {
    const result = await this.client.callTool({ name, arguments: { ...args } });
    if (result.isError === true) return result;
    const check = this.#checks.get(name);
    assert.ok(check?.(result.structuredContent), `${name}: ${JSON.stringify(check?.errors)}`);
    const { pending = {} } = result.structuredContent as { pending?: Readonly<Record<string, Pending>> };
    this.pending = pending;
    return result;
  }

  /** A call that must succeed. @returns its structured result */
  async call<T = Values>(name: string, args: Values = {}): Promise<T> {
    const result = await this.attempt(name, args);
    assert.notEqual(result.isError, true, `${name}: ${JSON.stringify(result.content)}`);
    return result.structuredContent as T;
  }

  /** Repeats a call until it succeeds, because other nodes may not be ready. */
  async persist<T = Values>(name: string, args: Values = {}): Promise<T> {
    return eventually(`${name} succeeds`, async () => {
      const result = await this.attempt(name, args);
      return result.isError !== true && (result.structuredContent as T);
    });
  }

  /** Waits until an item is pending for an agent. */
  async waitFor(aid: string, what: keyof Pending): Promise<void> {
    await eventually(`${what} for ${aid}`, async () => {
      await this.call('svc_agents_list');
      return (this.pending[aid]?.[what] ?? 0) > 0;
    });
  }

  /** Creates, registers and publishes an agent. */
  async newAgent(more: Values = {}): Promise<string> {
    const { operational_private_key_hex, delegation_proof_hex } = await this.call('svc_identity_generate');
    const keys = { operational_private_key_hex, delegation_proof_hex };
    const { aid } = await this.call<{ aid: string }>('svc_agent_register', { ...keys, ...more });
    await this.persist('svc_agent_publish', { aid });
    return aid;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.client.close();
  }
}

/** The text of a result for a model. */
export function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export function fromBase64(text: unknown): string {
  return Buffer.from(String(text), 'base64').toString('utf8');
}
