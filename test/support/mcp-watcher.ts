/** An official MCP client that keeps a stream open and records its notifications. */
import { type Client, type McpSubscription, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { TestDaemon } from './daemon.ts';
import { connected, MODERN } from './shared-mcp.ts';

/** A client that reconnects its stream, like one that runs for days. */
const RESUME = {
  initialReconnectionDelay: 100,
  reconnectionDelayGrowFactor: 1.2,
  maxReconnectionDelay: 1000,
  maxRetries: 1000,
} as const;

export class Watcher {
  readonly #client: Client;
  readonly #isModern: boolean;
  #changes = 0;
  #streams = 0;
  #subscription: McpSubscription | null = null;

  private constructor(client: Client, revision: string) {
    this.#client = client;
    this.#isModern = revision === MODERN;
    client.setNotificationHandler('notifications/tools/list_changed', () => void this.#changes++);
  }

  static async overHttp(url: URL, revision: string): Promise<Watcher> {
    let streams = 0;
    const counting: typeof fetch = (input, init) => {
      if (init?.method === 'GET') streams++;
      return fetch(input, init);
    };
    const transport = new StreamableHTTPClientTransport(url, { fetch: counting, reconnectionOptions: RESUME });
    const watcher = new Watcher(await connected(transport, revision), revision);
    watcher.#begun = () => streams;
    return watcher;
  }

  /** Through `svc mcp use --stdio`, as a host starts it. */
  static async overStdio({ api }: TestDaemon, aid: string, revision: string): Promise<Watcher> {
    const args = ['bin/svc', 'mcp', 'use', aid, '--stdio'];
    const env = { ...process.env, SVC_API: api };
    const transport = new StdioClientTransport({ command: process.execPath, args, env });
    return new Watcher(await connected(transport, revision), revision);
  }

  #begun: () => number = () => 0;

  /** Received notifications. */
  get changes(): number {
    return this.#changes;
  }

  /** Number of streams that it opened itself. */
  get streams(): number {
    return this.#streams + this.#begun();
  }

  /** Requests notifications if the revision requires that, and again after the end of a stream. */
  async listen(): Promise<void> {
    if (!this.#isModern || this.#subscription !== null) return;
    const subscription = await this.#client.listen({ toolsListChanged: true }).catch(() => null);
    if (subscription === null) return;
    this.#streams++;
    this.#subscription = subscription;
    subscription.closed.then(
      () => {
        this.#subscription = null;
      },
      () => {},
    );
  }

  /** The result of a tool. Null if the call fails. */
  async echo(text: string): Promise<unknown> {
    try {
      return (await this.#client.callTool({ name: 'echo', arguments: { text } })).content;
    } catch {
      return null;
    }
  }

  async tools(): Promise<string[]> {
    return (await this.#client.listTools()).tools.map(({ name }) => name);
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}
