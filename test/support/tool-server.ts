/** An MCP server in this process, built with the official SDK, whose tools a test changes. Calls return their input. */
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { createMcpHandler, Server, type Tool } from '@modelcontextprotocol/server';
import { detach } from '../../src/foundation/detached.ts';

export class ToolServer {
  tools: readonly Tool[];
  /** Names of called tools. */
  readonly called: string[] = [];
  /** Headers of the last request. */
  headers: IncomingMessage['headers'] = {};
  readonly #http: HttpServer;

  private constructor(tools: readonly Tool[]) {
    this.tools = tools;
    const handler = createMcpHandler(() => this.#server());
    this.#http = createServer((request, response) => detach(this.#serve(handler, request, response)));
  }

  static async start(tools: readonly Tool[]): Promise<ToolServer> {
    const server = new ToolServer(tools);
    await new Promise<void>((resolve) => server.#http.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    const address = this.#http.address();
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#http.close(() => resolve()));
    this.#http.closeAllConnections();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #server(): Server {
    const server = new Server({ name: 'tools', version: '1.0.0' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({ tools: [...this.tools] }));
    server.setRequestHandler('tools/call', ({ params: { name, arguments: args = {} } }) => {
      this.called.push(name);
      return { content: [{ type: 'text', text: JSON.stringify({ name, args }) }] };
    });
    return server;
  }

  async #serve(
    handler: ReturnType<typeof createMcpHandler>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    this.headers = request.headers;
    const body = Buffer.concat(await request.toArray());
    const answer = await handler.fetch(
      new Request(`http://localhost${request.url}`, {
        method: request.method ?? 'POST',
        headers: Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
        ...(request.method === 'POST' ? { body } : {}),
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body === null) response.end();
    else Readable.fromWeb(answer.body).pipe(response);
  }
}
