/** The MCP servers in the configuration of a user's assistants, used through the official client. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { Machine } from './namespaces.ts';

/** Where Claude Code and Cursor keep their servers, below the home directory. */
const CONFIGURATIONS = ['.claude.json', '.cursor/mcp.json'];

interface ServerEntry {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export class ConfiguredTools implements AsyncDisposable {
  readonly #machine: Machine;
  readonly #home: string;
  /** Texts of the channel of each session. */
  readonly events: string[] = [];
  /** Connected clients by the name of the server. */
  readonly #clients = new Map<string, Client>();

  constructor(machine: Machine, home: string) {
    this.#machine = machine;
    this.#home = home;
  }

  #servers(): [string, ServerEntry][] {
    return CONFIGURATIONS.map((name) => join(this.#home, name))
      .filter((file) => existsSync(file))
      .flatMap((file) => {
        const { mcpServers }: { mcpServers: Record<string, ServerEntry> } = JSON.parse(readFileSync(file, 'utf8'));
        return Object.entries(mcpServers);
      });
  }

  async #clientOf(name: string, { command, args = [], env = {} }: ServerEntry): Promise<Client> {
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    const client = new Client({ name: 'assistant', version: '1.0.0' });
    const transport = new StdioClientTransport({
      ...this.#machine.inside(command, args),
      env: { ...env, HOME: this.#home, PATH: process.env['PATH'] ?? '' },
      stderr: 'ignore',
    });
    client.fallbackNotificationHandler = async ({ method, params }) => {
      if (method === 'notifications/claude/channel') this.events.push(String(params?.['content']));
    };
    await client.connect(transport);
    this.#clients.set(name, client);
    return client;
  }

  /** Starts the sessions. */
  async start(): Promise<void> {
    for (const [name, server] of this.#servers()) await this.#clientOf(name, server);
  }

  /** Calls a tool of any configured server; it must succeed. Returns the text of the result. */
  async call(tool: string, args: Readonly<Record<string, unknown>>): Promise<string> {
    for (const [name, server] of this.#servers()) {
      const client = await this.#clientOf(name, server);
      const { tools } = await client.listTools();
      if (!tools.some((one) => one.name === tool)) continue;
      const result = await client.callTool({ name: tool, arguments: { ...args } });
      const text = result.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
      assert.notEqual(result.isError, true, text);
      return text;
    }
    throw new Error(`no configured MCP server on ${this.#machine.name} has the tool ${tool}`);
  }

  /** Ends the sessions. The next call starts them again. */
  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map((client) => client.close()));
    this.#clients.clear();
    this.events.length = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
